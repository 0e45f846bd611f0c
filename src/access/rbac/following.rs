//! Keeps an [`Rbac`] up to date with the tables of roles and bindings.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Key, Object, Revision, Table};
use futures_util::FutureExt;
use tokio::sync::Notify;

use super::binding::Binding;
use super::index::{Editor, Rbac};
use super::rule::Rule;
use crate::follow::{self, Seen};
use crate::unreadable::{others, value};

/// How long following pauses after a failure before it begins again.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The resources that RBAC decides by.
pub const RESOURCES: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];

/// Their tables, in the same order.
pub type Tables = [Arc<Table>; 4];

/// The state of following: an editor and what it still waits for.
struct Telling<'a> {
    rbac: &'a Rbac,
    editor: RefCell<Editor>,
    /// How many tables were not read to their end yet.
    unseen: RefCell<usize>,
    changed: Notify,
}

/// What a table contains.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Its place among [`RESOURCES`].
    at: usize,
    bindings: bool,
    namespaced: bool,
}

/// Follows the tables for ever. Begins again after a panic, because authorization must not become outdated.
pub async fn follow(tables: &Tables, rbac: &Rbac) {
    loop {
        if AssertUnwindSafe(tell(tables, rbac)).catch_unwind().await.is_err() {
            tracing::error!("failed to follow roles and bindings; starting again");
        }
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

async fn tell(tables: &Tables, rbac: &Rbac) {
    let telling = Telling { rbac, editor: RefCell::default(), unseen: RefCell::new(4), changed: Notify::new() };
    let [cluster_roles, roles, cluster_role_bindings, role_bindings] = tables;
    tokio::join!(
        telling.table(cluster_roles, Held { at: 0, bindings: false, namespaced: false }),
        telling.table(roles, Held { at: 1, bindings: false, namespaced: true }),
        telling.table(cluster_role_bindings, Held { at: 2, bindings: true, namespaced: false }),
        telling.table(role_bindings, Held { at: 3, bindings: true, namespaced: true }),
        telling.publish(),
    );
}

impl Telling<'_> {
    async fn table(&self, table: &Arc<Table>, held: Held) {
        let (mut listed, mut present) = (false, HashSet::new());
        follow::follow(table, Interest::default(), |seen| match seen {
            Seen::Begin => present.clear(),
            Seen::Present(object) => {
                present.insert(object.key().clone());
                self.set(held, object.key(), Some(object));
            }
            Seen::Listed(revision) => {
                self.forget_others(held, &std::mem::take(&mut present));
                self.hear(held, revision);
                if !std::mem::replace(&mut listed, true) {
                    self.listed();
                }
            }
            Seen::Changed(change) => {
                let object = change.object();
                self.set(held, object.key(), (!object.is_tombstone()).then_some(object));
                self.hear(held, change.revision());
            }
        })
        .await;
    }

    fn set(&self, held: Held, key: &Key, object: Option<&Arc<Object>>) {
        let (namespace, name) = (key.namespace().unwrap_or(""), key.name());
        // Objects that cannot be decoded grant nothing.
        let tree = object.and_then(|object| others(value(object)));
        let mut editor = self.editor.borrow_mut();
        if held.bindings {
            editor.set_binding(namespace, name, tree.as_ref().map(Binding::read));
        } else {
            editor.set_role(namespace, name, tree.as_ref().map(Rule::list));
        }
        self.changed.notify_one();
    }

    /// Records that everything in a table up to a revision was passed to the editor.
    fn hear(&self, held: Held, revision: Revision) {
        self.editor.borrow_mut().hear(held.at, revision);
        self.changed.notify_one();
    }

    /// Removes objects that are gone since the table was listed before.
    fn forget_others(&self, held: Held, present: &HashSet<Key>) {
        let editor = self.editor.borrow();
        let known = if held.bindings { editor.bindings(held.namespaced) } else { editor.roles(held.namespaced) };
        drop(editor);
        for (namespace, name) in known {
            let key = if held.namespaced { Key::namespaced(&namespace, &name) } else { Key::new(&name) };
            if !present.contains(&key) {
                self.set(held, &key, None);
            }
        }
    }

    fn listed(&self) {
        let mut unseen = self.unseen.borrow_mut();
        *unseen -= 1;
        if *unseen == 0 {
            self.editor.borrow_mut().complete(self.rbac);
        }
    }

    /// Publishes changes, many successive ones together.
    async fn publish(&self) {
        loop {
            self.changed.notified().await;
            self.editor.borrow_mut().publish(self.rbac);
        }
    }
}
