//! Auditing (`audit.k8s.io/v1`): events about requests, as a policy asks for them, in a log.

pub mod event;
pub mod log;
pub mod policy;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{io, thread};

use parking_lot::Mutex;

use self::log::{LogFile, Rotation};
use self::policy::{Level, Policy, PolicyError};
use crate::config::{AuditFormat, AuditMode, Config};
use crate::limits;
use crate::prometheus::{Meter, families};

pub use event::Audited;

/// The unit in which the size of a file of the log is stated, in bytes.
const MEGABYTE: u64 = 1_048_576;

/// Why the server cannot record what its flags ask for.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The log cannot be opened.
    #[error("cannot open {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Counts events.
pub struct Counts {
    events: metrics::Counter,
    rejected: metrics::Counter,
    failed: metrics::Counter,
    levels: [metrics::Counter; 4],
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}

impl Counts {
    /// Makes the counters.
    pub fn new(meter: &Meter) -> Self {
        Self {
            events: meter.counter(families::AUDIT_EVENTS, &[]),
            rejected: meter.counter(families::AUDIT_REJECTED, &[]),
            failed: meter.counter(families::AUDIT_ERRORS, &[("plugin", "log")]),
            levels: Level::ALL.map(|level| meter.counter(families::AUDIT_LEVELS, &[("level", level.name())])),
        }
    }

    fn level(&self, level: Level) {
        self.levels[level as usize].increment(1);
    }

    fn event(&self) {
        self.events.increment(1);
    }
}

/// Where events go.
#[derive(Debug)]
enum Sink {
    /// Requests wait until their events are written. `is_strict` says that requests are refused if that fails.
    Blocking { log: Arc<Mutex<LogFile>>, is_strict: bool },
    /// A thread writes them.
    Batch(SyncSender<Vec<u8>>),
}

/// A policy with a log.
#[derive(Debug)]
pub struct Audit {
    policy: Arc<Policy>,
    format: AuditFormat,
    counts: Counts,
    sink: Sink,
}

/// The policy and the log that flags name, before requests are answered.
#[derive(Debug, Clone)]
pub struct Prepared {
    policy: Arc<Policy>,
    log: Arc<Mutex<LogFile>>,
    format: AuditFormat,
    mode: AuditMode,
    waiting: usize,
}

impl Prepared {
    /// Reads the policy, and opens the log. `None` if the flags name only one of them: then nothing is recorded.
    ///
    /// # Errors
    /// The policy is not valid, or the log cannot be opened.
    pub fn of(config: &Config) -> Result<Option<Self>, AuditError> {
        let policy = config.audit_policy_file.as_deref().map(Policy::read).transpose()?;
        let Some(path) = &config.audit_log_path else { return Ok(None) };
        let rotation = Rotation {
            bytes: config.audit_log_maxsize.saturating_mul(MEGABYTE),
            files: config.audit_log_maxbackup,
            days: config.audit_log_maxage,
            compress: config.audit_log_compress,
        };
        let log = LogFile::open(path, rotation).map_err(|source| AuditError::Log { path: path.clone(), source })?;
        let (format, mode) = (config.audit_log_format, config.audit_log_mode);
        let log = Arc::new(Mutex::new(log));
        let waiting = config.audit_log_batch_buffer_size;
        Ok(policy.map(|policy| Self { policy: Arc::new(policy), log, format, mode, waiting }))
    }

    /// Begins to record.
    ///
    /// # Errors
    /// The thread that writes cannot be started.
    pub fn start(self, meter: &Meter) -> io::Result<Arc<Audit>> {
        let Self { policy, log, format, mode, waiting } = self;
        let counts = Counts::new(meter);
        let sink = match mode {
            AuditMode::Blocking | AuditMode::BlockingStrict => {
                Sink::Blocking { log, is_strict: mode == AuditMode::BlockingStrict }
            }
            AuditMode::Batch => {
                let (sender, lines) = sync_channel(waiting);
                let failed = counts.failed.clone();
                thread::Builder::new().name("audit-log".into()).spawn(move || write_batches(&log, &lines, &failed))?;
                Sink::Batch(sender)
            }
        };
        Ok(Arc::new(Audit { policy, format, counts, sink }))
    }
}

/// Writes lines until no sender is left: all that wait, up to a bound, in one call.
fn write_batches(log: &Mutex<LogFile>, lines: &Receiver<Vec<u8>>, failed: &metrics::Counter) {
    while let Ok(mut batch) = lines.recv() {
        let mut count = 1;
        while batch.len() < limits::AUDIT_BATCH_BYTES
            && let Ok(line) = lines.try_recv()
        {
            batch.extend_from_slice(&line);
            count += 1;
        }
        if let Err(error) = log.lock().append(&batch) {
            failed.increment(count);
            tracing::error!(%error, count, "events of the audit log were lost");
        }
    }
}

impl Audit {
    /// Records an event. Returns false if the request must be refused since that failed.
    fn take(&self, line: Vec<u8>) -> bool {
        match &self.sink {
            Sink::Blocking { log, is_strict } => {
                let Err(error) = log.lock().append(&line) else { return true };
                self.counts.failed.increment(1);
                tracing::error!(%error, "an event of the audit log was lost");
                !is_strict
            }
            Sink::Batch(sender) => {
                if sender.try_send(line).is_err() {
                    self.counts.failed.increment(1);
                    tracing::error!("an event of the audit log was lost: too many wait");
                }
                true
            }
        }
    }

    /// Counts a request that is refused since its event cannot be recorded.
    pub fn rejected(&self) {
        self.counts.rejected.increment(1);
    }
}
