//! The server of `--audit-webhook-config-file`, to which lists of events are sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::batch::{self, Batches, Waiting};
use super::form;
use super::losses::Losses;
use crate::limits;
use crate::outbound::Outbound;
use crate::tasks;
use crate::webhooks::{Backend, Backoff, CallError};

/// The webhook.
#[derive(Debug)]
pub struct AuditWebhook {
    /// The address and credentials of the webhook.
    pub backend: Arc<Backend>,
    /// The first wait before a list is sent again.
    pub first_wait: Duration,
    /// Events that could not be sent.
    pub failed: Arc<Losses>,
    /// Becomes true when the server stops.
    pub closing: watch::Receiver<bool>,
    /// The connections.
    pub outbound: Outbound,
}

impl AuditWebhook {
    /// Sends batches until none will come, several at a time.
    pub async fn send_batches(self: Arc<Self>, mut batches: Batches) {
        let mut sends = JoinSet::new();
        while let Some(batch) = batches.next().await {
            while sends.try_join_next().is_some() {}
            if sends.len() >= limits::AUDIT_LISTS {
                sends.join_next().await;
            }
            let webhook = Arc::clone(&self);
            sends.spawn(tasks::reported("audit events", async move { webhook.send_batch(&batch).await }));
        }
        while sends.join_next().await.is_some() {}
    }

    async fn send_batch(&self, batch: &[Waiting]) {
        let lines: Vec<Bytes> = batch.iter().map(|event| event.line.clone()).collect();
        self.send(&lines).await;
    }

    /// Sends an event, and tells `sent` whether that has succeeded.
    pub async fn send_one(self: Arc<Self>, line: Bytes, sent: oneshot::Sender<bool>) {
        let is_sent = self.send(&[line]).await;
        let _ = sent.send(is_sent); // the client may have gone
    }

    /// Sends events as one list. Returns false if they are lost.
    async fn send(&self, lines: &[Bytes]) -> bool {
        let list = form::list(lines);
        let mut backoff = Backoff::new(self.first_wait);
        let mut attempts = 1..limits::AUDIT_WEBHOOK_ATTEMPTS;
        loop {
            let Err(error) = self.backend.tell(&self.outbound, list.clone(), limits::AUDIT_WEBHOOK_TIMEOUT).await
            else {
                return true;
            };
            if attempts.next().is_none() {
                self.lose(lines.len(), &error);
                return false;
            }
            tracing::debug!(error = error.message, "events of auditing will be sent again");
            self.pause(backoff.wait()).await;
        }
    }

    fn lose(&self, count: usize, error: &CallError) {
        self.failed.add(count as u64, &error.message);
    }

    /// Waits. If the server stops, waits for `limits::AUDIT_FLUSH_PAUSE` at most.
    async fn pause(&self, wait: Duration) {
        let mut closing = self.closing.clone();
        let short = async {
            batch::closed(&mut closing).await;
            tokio::time::sleep(limits::AUDIT_FLUSH_PAUSE).await;
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = short => {}
        }
    }
}
