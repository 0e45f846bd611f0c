//! A destination of events: the log or the webhook, at once or in batches.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::{self, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};

use super::batch::{self, Batches, Queue};
use super::form::EventDraft;
use super::log::LogFile;
use super::losses::Losses;
use super::webhook::AuditWebhook;
use crate::config::{AuditFormat, AuditMode, BatchOptions, Span};
use crate::limits;
use crate::outbound::Outbound;
use crate::prometheus::Meter;
use crate::tasks;
use crate::webhooks::Backend;

/// The consequences of an event for its request.
#[derive(Debug, Default)]
pub struct Taken {
    /// Whether the request must be refused because its event is lost.
    pub is_refused: bool,
    /// The delivery that the request waits for. `None` if it waits for none.
    pub later: Option<Later>,
}

/// An event on its way to the webhook, for which the request waits.
#[derive(Debug)]
pub struct Later {
    sent: oneshot::Receiver<bool>,
    is_strict: bool,
}

impl Later {
    /// Waits until the event is sent or lost. Returns whether the request may go on.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        Pin::new(&mut self.sent).poll(cx).map(|sent| sent.unwrap_or(false) || !self.is_strict)
    }
}

/// A destination.
#[derive(Debug)]
pub struct Destination {
    format: AuditFormat,
    /// The largest size of an event, in bytes. `None` if it is unlimited.
    event_bytes: Option<usize>,
    /// Whether requests are refused if their events are lost.
    is_strict: bool,
    way: Way,
    failed: Arc<Losses>,
    buffered: Losses,
    truncate: Losses,
    /// Completes when the thread ends. `None` if there is no thread.
    over: Mutex<Option<oneshot::Receiver<()>>>,
}

#[derive(Debug)]
enum Way {
    /// Into the log, at once.
    Log(Arc<Mutex<LogFile>>),
    /// To the webhook, at once.
    Webhook(Arc<AuditWebhook>, runtime::Handle, Arc<Semaphore>),
    /// To a thread, in batches.
    Batches(Queue),
}

impl Destination {
    /// Begins to write a log.
    ///
    /// # Errors
    /// The thread that writes batches cannot be started.
    pub fn log(
        log: &Arc<Mutex<LogFile>>,
        format: AuditFormat,
        options: &BatchOptions,
        meter: &Meter,
        closing: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let failed = Arc::new(Losses::new(meter, "log"));
        let (way, over) = match options.mode {
            AuditMode::Blocking | AuditMode::BlockingStrict => (Way::Log(Arc::clone(log)), None),
            AuditMode::Batch => {
                let bytes = options.truncate.map_or(limits::AUDIT_BATCH_BYTES, |(_, bytes)| bytes);
                let options = match options.max_size {
                    // No event waits for a full batch, but all that wait for the disk are written together.
                    1 => BatchOptions { max_size: options.buffer_size, max_wait: Span::default(), ..*options },
                    _ => *options,
                };
                let (queue, batches) = batch::queue(&options, bytes, closing.clone());
                let (log, failed) = (Arc::clone(log), Arc::clone(&failed));
                let over = start("audit-log", move |runtime| runtime.block_on(write_batches(&log, batches, &failed)))?;
                (Way::Batches(queue), Some(over))
            }
        };
        Ok(Self::new(format, options, way, (failed, over), meter))
    }

    /// Begins to send to a webhook. Nothing else uses the connections of `outbound`, because the thread of this webhook
    /// drives them. `first_wait` is the wait before events are sent a second time.
    ///
    /// # Errors
    /// The thread that sends cannot be started.
    pub fn webhook(
        (backend, outbound): (&Arc<Backend>, Outbound),
        first_wait: std::time::Duration,
        options: &BatchOptions,
        meter: &Meter,
        closing: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let failed = Arc::new(Losses::new(meter, "webhook"));
        let webhook = Arc::new(AuditWebhook {
            backend: Arc::clone(backend),
            first_wait,
            failed: Arc::clone(&failed),
            closing: closing.clone(),
            outbound,
        });
        let (way, over) = match options.mode {
            AuditMode::Blocking | AuditMode::BlockingStrict => {
                let mut closing = closing.clone();
                let sends = Arc::new(Semaphore::new(limits::AUDIT_SENT_EVENTS));
                let all = Arc::clone(&sends);
                let (handle, handed) = std::sync::mpsc::channel();
                let over = start("audit-webhook", move |runtime| {
                    let _ = handle.send(runtime.handle().clone());
                    runtime.block_on(async move {
                        batch::closed(&mut closing).await;
                        let _ = all.acquire_many(limits::AUDIT_SENT_EVENTS as u32).await;
                    });
                })?;
                (Way::Webhook(webhook, handed.recv().map_err(io::Error::other)?, sends), Some(over))
            }
            AuditMode::Batch => {
                let bytes = options.truncate.map_or(limits::AUDIT_LIST_BYTES, |(_, bytes)| bytes);
                let (queue, batches) = batch::queue(options, bytes, closing.clone());
                let over = start("audit-webhook", move |runtime| runtime.block_on(webhook.send_batches(batches)))?;
                (Way::Batches(queue), Some(over))
            }
        };
        Ok(Self::new(AuditFormat::Json, options, way, (failed, over), meter))
    }

    fn new(
        format: AuditFormat,
        options: &BatchOptions,
        way: Way,
        (failed, over): (Arc<Losses>, Option<oneshot::Receiver<()>>),
        meter: &Meter,
    ) -> Self {
        Self {
            format,
            event_bytes: options.truncate.map(|(bytes, _)| bytes),
            is_strict: options.mode == AuditMode::BlockingStrict,
            way,
            failed,
            buffered: Losses::new(meter, "buffered"),
            truncate: Losses::new(meter, "truncate"),
            over: Mutex::new(over),
        }
    }

    /// Takes an event.
    pub fn take(&self, draft: &EventDraft<'_>) -> Taken {
        let Some(line) = self.line(draft) else { return Taken::default() };
        match &self.way {
            Way::Log(log) => {
                let Err(error) = log.lock().append(&line) else { return Taken::default() };
                self.failed.add(1, &error);
                Taken { is_refused: self.is_strict, later: None }
            }
            Way::Webhook(webhook, runtime, sends) => {
                // A large event counts as several.
                let places = 1 + line.len() / (limits::AUDIT_WAITING_BYTES / limits::AUDIT_SENT_EVENTS);
                let places = u32::try_from(places.min(limits::AUDIT_SENT_EVENTS)).unwrap_or(u32::MAX);
                let Ok(permit) = Arc::clone(sends).try_acquire_many_owned(places) else {
                    self.failed.add(1, &"too many wait");
                    return Taken { is_refused: self.is_strict, later: None };
                };
                let (tell, sent) = oneshot::channel();
                let webhook = Arc::clone(webhook);
                tasks::detached_on(runtime, "audit event", async move {
                    webhook.send_one(line, tell).await;
                    drop(permit);
                });
                Taken { is_refused: false, later: Some(Later { sent, is_strict: self.is_strict }) }
            }
            Way::Batches(queue) => {
                if let Err(why) = queue.put(line) {
                    self.buffered.add(1, &why);
                }
                Taken::default()
            }
        }
    }

    /// Returns the line of an event. Returns `None` if the event is too large even without its objects.
    fn line(&self, draft: &EventDraft<'_>) -> Option<Bytes> {
        let in_form = |json: Bytes| match self.format {
            AuditFormat::Json => json,
            AuditFormat::Legacy => draft.legacy(),
        };
        let Some(bytes) = self.event_bytes else {
            return Some(if self.format == AuditFormat::Json { draft.json() } else { draft.legacy() });
        };
        let whole = draft.json();
        let line = if whole.len() <= bytes { whole } else { draft.truncated().unwrap_or(whole) };
        if line.len() > bytes {
            self.truncate.add(1, &"an event is too large even without its objects");
            return None;
        }
        Some(in_form(line))
    }

    /// Returns whether requests wait until their events are sent or lost.
    pub const fn is_awaited(&self) -> bool {
        matches!(self.way, Way::Webhook(..))
    }

    /// Waits until the thread has ended.
    pub async fn ended(&self) {
        let over = self.over.lock().take();
        if let Some(over) = over {
            let _ = over.await; // the end of the thread drops the sender
        }
    }

    /// Logs the events that are lost because the server stops.
    pub fn finish(&self) {
        if let Way::Batches(queue) = &self.way
            && queue.held() > 0
        {
            self.buffered.add(queue.held() as u64, &"the server stops");
        }
        [&*self.failed, &self.buffered, &self.truncate].into_iter().for_each(Losses::finish);
    }
}

/// Starts a thread with a runtime. The receiver that it returns completes when the thread ends.
fn start(name: &str, run: impl FnOnce(&Runtime) + Send + 'static) -> io::Result<oneshot::Receiver<()>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (ends, over) = oneshot::channel::<()>();
    tasks::thread(name, None, move || {
        let _ends = ends;
        run(&runtime);
    })?;
    Ok(over)
}

/// Writes batches until none will come, each in one call.
async fn write_batches(log: &Mutex<LogFile>, mut batches: Batches, failed: &Losses) {
    while let Some(batch) = batches.next().await {
        let lines: Vec<&[u8]> = batch.iter().map(|event| &*event.line).collect();
        if let Err(error) = log.lock().append(&lines.concat()) {
            failed.add(batch.len() as u64, &error);
        }
    }
}
