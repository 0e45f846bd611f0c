//! The limits of certificates.

use std::time::Duration;

/// How long an authority is valid.
pub const AUTHORITY_VALIDITY: Duration = Duration::from_secs(3_650 * 86_400);

/// An authority with less time left gets a new certificate for its key.
pub const AUTHORITY_RENEWAL: Duration = Duration::from_secs(400 * 86_400);

/// How long a certificate of the server's own is valid.
pub const LEAF_VALIDITY: Duration = Duration::from_secs(365 * 86_400);

/// A certificate with less time left is issued again.
pub const LEAF_RENEWAL: Duration = Duration::from_secs(30 * 86_400);

/// How often a running server checks whether a certificate must be renewed.
pub const RENEWAL_CHECK_INTERVAL: Duration = Duration::from_secs(6 * 3_600);

/// How far clocks may differ: the server's own certificates are valid from this long before they are issued.
pub const PKI_CLOCK_SKEW: Duration = Duration::from_secs(24 * 3_600);

/// How far the clock of a verifier may be behind: a certificate that a client requests is valid from this long before
/// it is issued.
pub const REQUESTED_BACKDATE: Duration = Duration::from_secs(300);

/// A certificate for less than this keeps its whole time: the backdating is not subtracted from its end.
pub const REQUESTED_SHORT: Duration = Duration::from_secs(8 * 3_600);
