//! Auditing (`audit.k8s.io/v1`): records the events of requests that a policy selects, in a log and at a webhook.

mod batch;
mod destination;
pub mod event;
mod fields;
mod form;
mod level;
pub mod log;
mod losses;
pub mod policy;
pub mod requested;
mod rule;
mod stage;
mod webhook;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use self::destination::{Destination, Taken};
use self::form::EventDraft;
use self::level::Level;
use self::log::{LogFile, Rotation};
use self::policy::{Policy, PolicyError};
use crate::config::AuditOptions;
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::KubeconfigError;
use crate::prometheus::{Meter, families};
use crate::webhooks::Backend;

pub use event::Audited;

/// Bytes of a megabyte, the unit of `--audit-log-maxsize`.
const MEGABYTE: u64 = 1_048_576;

/// The reasons why the server cannot record events as its flags demand.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The kubeconfig of the webhook cannot be used.
    #[error(transparent)]
    Webhook(#[from] KubeconfigError),
    /// The log cannot be opened.
    #[error("cannot open {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

/// Counts events.
pub struct Counts {
    events: metrics::Counter,
    rejected: metrics::Counter,
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

/// The policy, and the destinations of events.
#[derive(Debug)]
pub struct Audit {
    policy: Arc<Policy>,
    counts: Counts,
    destinations: Vec<Destination>,
    /// Becomes true when the server stops.
    closing: watch::Sender<bool>,
}

/// The policy, the log and the webhook that flags name, as the server reads them before it answers requests.
#[derive(Debug, Clone)]
pub struct Prepared {
    policy: Arc<Policy>,
    log: Option<Arc<Mutex<LogFile>>>,
    webhook: Option<Arc<Backend>>,
    options: AuditOptions,
}

impl Prepared {
    /// Reads the policy, opens the log, and reads the kubeconfig of the webhook. Returns `None` if the flags name no
    /// policy, or neither a log nor a webhook: nothing is recorded then.
    ///
    /// # Errors
    /// The policy or the kubeconfig is not valid, or the log cannot be opened.
    pub fn of(options: &AuditOptions) -> Result<Option<Self>, AuditError> {
        let policy = options.audit_policy_file.as_deref().map(Policy::read).transpose()?;
        let log = options.audit_log_path.as_ref().map(|path| {
            let rotation = Rotation {
                bytes: options.audit_log_maxsize.saturating_mul(MEGABYTE),
                files: options.audit_log_maxbackup,
                days: options.audit_log_maxage,
                compress: options.audit_log_compress,
            };
            let log = LogFile::open(path, rotation);
            log.map_err(|source| AuditError::Log { path: path.clone(), source })
        });
        let log = log.transpose()?.map(|log| Arc::new(Mutex::new(log)));
        let kubeconfig = options.audit_webhook_config_file.as_deref();
        if log.is_none() && kubeconfig.is_none() {
            return Ok(None);
        }
        let Some(policy) = policy else {
            tracing::warn!("nothing is recorded for auditing: --audit-policy-file is not given");
            return Ok(None);
        };
        let webhook = kubeconfig.map(Backend::read).transpose()?.map(Arc::new);
        Ok(Some(Self { policy: Arc::new(policy), log, webhook, options: options.clone() }))
    }

    /// Begins to record. `outbound` has the proxies through which the webhook is reached.
    ///
    /// # Errors
    /// A thread that writes or sends cannot be started.
    pub fn start(self, meter: &Meter, outbound: &Outbound) -> io::Result<Arc<Audit>> {
        let Self { policy, log, webhook, options } = self;
        let (closing, told) = watch::channel(false);
        let mut destinations = Vec::new();
        if let Some(log) = &log {
            let (format, batches) = (options.audit_log_format, options.log_batches());
            destinations.push(Destination::log(log, format, &batches, meter, &told)?);
        }
        if let Some(webhook) = &webhook {
            let (first_wait, batches) = (options.audit_webhook_initial_backoff.0, options.webhook_batches());
            destinations.push(Destination::webhook((webhook, outbound.apart()), first_wait, &batches, meter, &told)?);
        }
        Ok(Arc::new(Audit { policy, counts: Counts::new(meter), destinations, closing }))
    }
}

impl Audit {
    /// Records an event.
    fn take(&self, draft: &EventDraft<'_>) -> Taken {
        let mut all = Taken::default();
        for destination in &self.destinations {
            let taken = destination.take(draft);
            all.is_refused |= taken.is_refused;
            all.later = all.later.or(taken.later); // requests wait for the webhook alone
        }
        all
    }

    /// Returns whether requests wait until their events are sent or lost.
    fn is_awaited(&self) -> bool {
        self.destinations.iter().any(Destination::is_awaited)
    }

    /// Counts a request that is refused because its event cannot be recorded.
    pub fn rejected(&self) {
        self.counts.rejected.increment(1);
    }

    /// Writes and sends the events that wait, for `limits::AUDIT_FLUSH` at most. No event may be recorded after that.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let ended = async {
            for destination in &self.destinations {
                destination.ended().await;
            }
        };
        let _ = tokio::time::timeout(limits::AUDIT_FLUSH, ended).await; // `finish` logs the events that still wait
        self.destinations.iter().for_each(Destination::finish);
    }
}
