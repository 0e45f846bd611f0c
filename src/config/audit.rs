//! The options of auditing, which have the names, defaults and meaning of kube-apiserver's.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{ConfigError, Span, defaults};

/// The form of the lines of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditFormat {
    /// Each event as a JSON object.
    Json,
    /// Some facts of each event as text.
    Legacy,
}

/// Whether requests wait for their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditMode {
    /// They do not wait: a thread writes or sends the events.
    Batch,
    /// They wait. An event that cannot be written or sent is lost.
    Blocking,
    /// They wait. A request is refused if its event of the stage RequestReceived cannot be written or sent.
    BlockingStrict,
}

/// The API version of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum AuditVersion {
    /// The only one that Kubernetes 1.36 has.
    #[value(name = "audit.k8s.io/v1")]
    #[serde(rename = "audit.k8s.io/v1")]
    V1,
}

/// The options of auditing.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AuditOptions {
    /// File with the policy of auditing (Policy of audit.k8s.io). It selects the requests to record, and the parts of
    /// them.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_policy_file: Option<PathBuf>,

    /// File of the audit log, or `-` for standard output. Needs --audit-policy-file.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log_path: Option<PathBuf>,

    /// Form of the lines of the audit log.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = AuditFormat::Json)]
    pub audit_log_format: AuditFormat,

    /// API version of the events in the audit log.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = AuditVersion::V1)]
    pub audit_log_version: AuditVersion,

    /// Whether requests wait until their events are written.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = AuditMode::Blocking)]
    pub audit_log_mode: AuditMode,

    /// Days for which full files of the audit log are kept. 0 for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    pub audit_log_maxage: u64,

    /// Full files of the audit log that are kept. 0 for all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub audit_log_maxbackup: usize,

    /// Megabytes at which a file of the audit log is full. 0 for files that never become full.
    #[arg(long, value_name = "MIB", default_value_t = 100)]
    pub audit_log_maxsize: u64,

    /// Compress full files of the audit log.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub audit_log_compress: bool,

    /// Events that may wait to be written, with --audit-log-mode batch; further ones are lost.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub audit_log_batch_buffer_size: usize,

    /// Events to write at once, with --audit-log-mode batch. With 1, all waiting events are written at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub audit_log_batch_max_size: usize,

    /// Time for which an event waits for a full batch, with --audit-log-mode batch.
    #[arg(long, value_name = "SPAN", default_value_t = Span::default())]
    pub audit_log_batch_max_wait: Span,

    /// Limit how many batches are written a second, with --audit-log-mode batch.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub audit_log_batch_throttle_enable: bool,

    /// Batches to write a second, with --audit-log-batch-throttle-enable.
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    pub audit_log_batch_throttle_qps: f32,

    /// Batches to write at once after a rest, with --audit-log-batch-throttle-enable.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub audit_log_batch_throttle_burst: u32,

    /// Leave the objects out of events that are too large to write, and drop events that are still too large.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub audit_log_truncate_enabled: bool,

    /// Most bytes of events to write at once, with --audit-log-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760)]
    pub audit_log_truncate_max_batch_size: usize,

    /// Most bytes of an event in the audit log, with --audit-log-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    pub audit_log_truncate_max_event_size: usize,

    /// Kubeconfig that names the server to send events to, as lists (EventList of audit.k8s.io). Needs
    /// --audit-policy-file.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_webhook_config_file: Option<PathBuf>,

    /// API version of the events that are sent.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = AuditVersion::V1)]
    pub audit_webhook_version: AuditVersion,

    /// Whether requests wait until their events are sent.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = AuditMode::Batch)]
    pub audit_webhook_mode: AuditMode,

    /// Wait before a list that could not be sent is sent again. Each further wait is half as long again.
    #[arg(long, value_name = "SPAN", alias = "audit-webhook-batch-initial-backoff",
          default_value_t = Span(std::time::Duration::from_secs(10)))]
    pub audit_webhook_initial_backoff: Span,

    /// Events that may wait to be sent, with --audit-webhook-mode batch; further ones are lost.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub audit_webhook_batch_buffer_size: usize,

    /// Events to send at once, with --audit-webhook-mode batch.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub audit_webhook_batch_max_size: usize,

    /// Time for which an event waits for a full batch, with --audit-webhook-mode batch.
    #[arg(long, value_name = "SPAN", default_value_t = Span(std::time::Duration::from_secs(30)))]
    pub audit_webhook_batch_max_wait: Span,

    /// Limit how many batches are sent a second, with --audit-webhook-mode batch.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub audit_webhook_batch_throttle_enable: bool,

    /// Batches to send a second, with --audit-webhook-batch-throttle-enable.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub audit_webhook_batch_throttle_qps: f32,

    /// Batches to send at once after a rest, with --audit-webhook-batch-throttle-enable.
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub audit_webhook_batch_throttle_burst: u32,

    /// Leave the objects out of events that are too large to send, and drop events that are still too large.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub audit_webhook_truncate_enabled: bool,

    /// Most bytes of events to send at once, with --audit-webhook-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760)]
    pub audit_webhook_truncate_max_batch_size: usize,

    /// Most bytes of an event that is sent, with --audit-webhook-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    pub audit_webhook_truncate_max_event_size: usize,
}

impl Default for AuditOptions {
    fn default() -> Self {
        defaults()
    }
}

/// The batches of events for one destination: the log or the webhook.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    /// Whether requests wait for their events.
    pub mode: AuditMode,
    /// Events that may wait.
    pub buffer_size: usize,
    /// Events of a batch.
    pub max_size: usize,
    /// The time for which an event waits for a full batch.
    pub max_wait: Span,
    /// The batches that may be written or sent a second, and at once. `None` if both are unlimited.
    pub throttle: Option<(f32, u32)>,
    /// Most bytes of an event and of a batch. `None` if both are unlimited.
    pub truncate: Option<(usize, usize)>,
}

impl AuditOptions {
    /// Returns the options of the batches for the log.
    pub fn log_batches(&self) -> BatchOptions {
        let throttle = (self.audit_log_batch_throttle_qps, self.audit_log_batch_throttle_burst);
        let truncate = (self.audit_log_truncate_max_event_size, self.audit_log_truncate_max_batch_size);
        BatchOptions {
            mode: self.audit_log_mode,
            buffer_size: self.audit_log_batch_buffer_size,
            max_size: self.audit_log_batch_max_size,
            max_wait: self.audit_log_batch_max_wait,
            throttle: self.audit_log_batch_throttle_enable.then_some(throttle),
            truncate: self.audit_log_truncate_enabled.then_some(truncate),
        }
    }

    /// Returns the options of the batches for the webhook.
    pub fn webhook_batches(&self) -> BatchOptions {
        let throttle = (self.audit_webhook_batch_throttle_qps, self.audit_webhook_batch_throttle_burst);
        let truncate = (self.audit_webhook_truncate_max_event_size, self.audit_webhook_truncate_max_batch_size);
        BatchOptions {
            mode: self.audit_webhook_mode,
            buffer_size: self.audit_webhook_batch_buffer_size,
            max_size: self.audit_webhook_batch_max_size,
            max_wait: self.audit_webhook_batch_max_wait,
            throttle: self.audit_webhook_batch_throttle_enable.then_some(throttle),
            truncate: self.audit_webhook_truncate_enabled.then_some(truncate),
        }
    }

    /// Checks the options of the destinations that are configured.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.audit_log_path.is_some() {
            let sizes = (self.audit_log_truncate_max_event_size, self.audit_log_truncate_max_batch_size);
            self.log_batches().check("log", sizes).map_err(|why| invalid("audit-log-path", why))?;
        }
        if self.audit_webhook_config_file.is_some() {
            let sizes = (self.audit_webhook_truncate_max_event_size, self.audit_webhook_truncate_max_batch_size);
            self.webhook_batches().check("webhook", sizes).map_err(|why| invalid("audit-webhook-config-file", why))?;
        }
        Ok(())
    }
}

fn invalid(option: &'static str, why: String) -> ConfigError {
    ConfigError::Invalid { option, why }
}

impl BatchOptions {
    /// Checks the options. Errors have the wording of the reference. As in the reference, sizes in bytes are checked
    /// even if nothing is truncated.
    fn check(&self, of: &str, (event_bytes, batch_bytes): (usize, usize)) -> Result<(), String> {
        let wrong = |what: &str, value: &dyn std::fmt::Display| {
            Err(format!("invalid audit batch {of} {what} {value}, must be a positive number"))
        };
        if self.mode == AuditMode::Batch {
            match self.throttle {
                _ if self.buffer_size == 0 => return wrong("buffer size", &0),
                _ if self.max_size == 0 => return wrong("max batch size", &0),
                Some((rate, _)) if rate.is_nan() || rate <= 0.0 => return wrong("throttle QPS", &rate),
                Some((_, 0)) => return wrong("throttle burst", &0),
                _ => {}
            }
        }
        if event_bytes == 0 {
            return Err(format!("invalid audit truncate {of} max event size 0, must be a positive number"));
        }
        if batch_bytes < event_bytes {
            return Err(format!(
                "invalid audit truncate {of} max batch size {batch_bytes}, must be greater than max event size \
                 ({event_bytes})"
            ));
        }
        Ok(())
    }
}
