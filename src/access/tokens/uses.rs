//! Queues the uses of tokens in Secrets until they are recorded in these Secrets.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::LEGACY_TOKEN_USES;

/// The Secret of a token that was used on a day that the Secret does not show yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// UID of the Secret.
    pub uid: String,
}

/// The uses that wait.
#[derive(Debug, Default)]
pub struct LegacyUses {
    waiting: Mutex<BTreeSet<Use>>,
    added: Notify,
}

impl LegacyUses {
    /// Adds a use. Returns false, and adds nothing, if too many uses wait: the caller then adds a later use of the
    /// token.
    pub fn add(&self, used: Use) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= LEGACY_TOKEN_USES {
            return false;
        }
        waiting.insert(used);
        drop(waiting);
        self.added.notify_one();
        true
    }

    /// Waits for a use and removes it from the queue. Only one task may wait.
    pub async fn next(&self) -> Use {
        loop {
            let first = self.waiting.lock().pop_first();
            match first {
                Some(used) => return used,
                None => self.added.notified().await,
            }
        }
    }
}
