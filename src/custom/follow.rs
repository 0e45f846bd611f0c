//! Following the definitions, so that what they define is served on every replica.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Key, Object, Table};
use flotilla_proto::json;
use futures_util::FutureExt;
use tokio::sync::Notify;

use super::Definition;
use crate::follow::{self, Seen};

/// How long it rests before it begins again.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The definitions that are established, by their keys.
#[derive(Debug, Default)]
pub struct Definitions {
    known: BTreeMap<Key, Arc<Definition>>,
    listed: bool,
}

impl Definitions {
    /// The definitions, by their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.known.values()
    }

    /// Takes in a definition, or that it is gone; whether that makes a difference.
    fn set(&mut self, key: &Key, object: Option<&Arc<Object>>) -> bool {
        // What does not parse defines nothing; the store does not hold such.
        let tree = object.and_then(|object| json::parse(object.bytes()).ok());
        match tree.as_ref().and_then(Definition::of) {
            Some(definition) => {
                self.known.insert(key.clone(), Arc::new(definition));
                true
            }
            None => self.known.remove(key).is_some(),
        }
    }

    /// Takes in what is seen; whether there is something to publish.
    fn see(&mut self, seen: &Seen<'_>) -> bool {
        let is_changed = match seen {
            Seen::Begin => {
                *self = Self::default();
                false
            }
            Seen::Present(object) => self.set(object.key(), Some(object)),
            Seen::Listed => {
                self.listed = true;
                true
            }
            Seen::Changed(change) => {
                let object = change.object();
                self.set(object.key(), (!object.is_tombstone()).then_some(object))
            }
        };
        self.listed && is_changed
    }
}

/// Follows the table of definitions for ever, and publishes them after changes: what is served must not stand still
/// because something broke once.
pub async fn follow(table: &Arc<Table>, publish: impl Fn(&Definitions)) {
    loop {
        if AssertUnwindSafe(keep_publishing(table, &publish)).catch_unwind().await.is_err() {
            tracing::error!("following definitions of custom resources failed: it begins again");
        }
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

async fn keep_publishing(table: &Arc<Table>, publish: impl Fn(&Definitions)) {
    let (definitions, changed) = (RefCell::new(Definitions::default()), Notify::new());
    tokio::join!(
        follow::follow(table, Interest::default(), |seen| {
            if definitions.borrow_mut().see(&seen) {
                changed.notify_one();
            }
        }),
        async {
            loop {
                changed.notified().await; // changes that come together are published together
                publish(&definitions.borrow());
            }
        },
    );
}
