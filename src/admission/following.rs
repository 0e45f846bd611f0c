//! Keeping what decides about writes ready, by following the tables that it is stored in.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Key, Object, Table};
use flotilla_proto::value::Value;
use futures_util::FutureExt;
use tokio::sync::Notify;

use crate::follow::{self, Seen};
use crate::unreadable::{others, value};

/// How long it rests before it begins again after a failure.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// What the objects of a table were read as, by their keys.
pub type Read<T> = BTreeMap<Key, Arc<T>>;

/// Follows a table for ever: reads its objects, each once for each of its revisions, and publishes all of them when the
/// table was seen to its end, and after changes. What cannot be decoded, or is read as nothing, is left out.
pub async fn follow<T>(table: &Arc<Table>, read: impl Fn(&Value) -> Option<T>, publish: impl Fn(&Read<T>)) {
    loop {
        if AssertUnwindSafe(keep_publishing(table, &read, &publish)).catch_unwind().await.is_err() {
            tracing::error!(table = %table.id(), "following what decides about writes failed: it begins again");
        }
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

async fn keep_publishing<T>(table: &Arc<Table>, read: impl Fn(&Value) -> Option<T>, publish: impl Fn(&Read<T>)) {
    let (known, changed) = (RefCell::new(Read::new()), Notify::new());
    let (listed, mut present) = (RefCell::new(false), HashSet::new());
    let set = |object: &Arc<Object>, is_there: bool| {
        let found = is_there.then(|| read(&others(value(object))?)).flatten();
        let mut known = known.borrow_mut();
        match found {
            Some(found) => drop(known.insert(object.key().clone(), Arc::new(found))),
            None => drop(known.remove(object.key())),
        }
    };
    tokio::join!(
        follow::follow(table, Interest::default(), |seen| match seen {
            Seen::Begin => {
                *listed.borrow_mut() = false;
                present.clear();
            }
            Seen::Present(object) => {
                present.insert(object.key().clone());
                set(object, true);
            }
            Seen::Listed(_) => {
                known.borrow_mut().retain(|key, _| present.contains(key));
                *listed.borrow_mut() = true;
                changed.notify_one();
            }
            Seen::Changed(change) => {
                set(change.object(), !change.object().is_tombstone());
                changed.notify_one();
            }
        }),
        async {
            loop {
                changed.notified().await; // changes that come together are published together
                if *listed.borrow() {
                    publish(&known.borrow());
                }
            }
        },
    );
}
