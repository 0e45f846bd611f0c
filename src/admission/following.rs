//! Keeps admission policies and webhooks ready in memory, by following the tables in which they are stored.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use flotilla_cluster::{Interest, Key, Object, Table};
use flotilla_proto::value::Value;
use tokio::sync::Notify;

use crate::follow::{self, Seen};
use crate::unreadable::{skip_unreadable, value};

/// The objects of a table in their compiled form, by key.
pub type Read<T> = BTreeMap<Key, Arc<T>>;

/// Follows a table for ever. Calls `read` once for each revision of an object, and `publish` with all results after the
/// first pass over the table and after changes. Leaves out objects that cannot be decoded or for which `read` returns
/// `None`.
pub async fn follow<T>(table: &Arc<Table>, read: impl Fn(&Value) -> Option<T>, publish: impl Fn(&Read<T>)) {
    let (known, changed) = (RefCell::new(Read::new()), Notify::new());
    let (listed, mut present) = (RefCell::new(false), HashSet::new());
    let set = |object: &Arc<Object>, is_there: bool| {
        let found = is_there.then(|| read(&skip_unreadable(value(object))?)).flatten();
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
            Seen::ListEnd(_) => {
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
                changed.notified().await; // one publication for changes that arrive together
                if *listed.borrow() {
                    publish(&known.borrow());
                }
            }
        },
    );
}
