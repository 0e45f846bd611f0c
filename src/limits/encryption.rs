//! The limits of encryption at rest.

use std::time::Duration;

/// Bytes of an answer of a KMS plugin.
pub const KMS_ANSWER_BYTES: usize = 64 << 10;

/// Keys that a KMS plugin has encrypted and that are remembered.
pub const KMS_KEYS_MAX: usize = 1_024;

/// Time between attempts to connect to a KMS plugin.
pub const KMS_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How long a call of a KMS plugin may take unless the configuration says otherwise, as in kube-apiserver.
pub const KMS_TIMEOUT: Duration = Duration::from_secs(3);
