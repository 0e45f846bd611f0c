//! Keeps an [`Rbac`] up to date with the tables of roles and bindings.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use flotilla_cluster::{Interest, Key, Object, Revision, Table};
use tokio::sync::Notify;

use super::binding::Binding;
use super::index::{Editor, Rbac};
use super::rule::Rule;
use crate::follow::{self, Seen};
use crate::unreadable::{skip_unreadable, value};

/// The resources by which RBAC decides.
pub const RESOURCES: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];

/// The tables of [`RESOURCES`], in the same order.
pub type RoleTables = [Arc<Table>; 4];

/// Follows the tables and passes their objects to an editor.
struct Follower<'a> {
    rbac: &'a Rbac,
    editor: RefCell<Editor>,
    /// The number of tables that were not listed yet.
    unread: RefCell<usize>,
    changed: Notify,
}

/// The kind of objects in a table.
#[derive(Debug, Clone, Copy)]
struct TableKind {
    /// Its place among [`RESOURCES`].
    at: usize,
    bindings: bool,
    namespaced: bool,
}

/// Follows the tables for ever.
pub async fn follow(tables: &RoleTables, rbac: &Rbac) {
    let follower = Follower { rbac, editor: RefCell::default(), unread: RefCell::new(4), changed: Notify::new() };
    let [cluster_roles, roles, cluster_role_bindings, role_bindings] = tables;
    tokio::join!(
        follower.table(cluster_roles, TableKind { at: 0, bindings: false, namespaced: false }),
        follower.table(roles, TableKind { at: 1, bindings: false, namespaced: true }),
        follower.table(cluster_role_bindings, TableKind { at: 2, bindings: true, namespaced: false }),
        follower.table(role_bindings, TableKind { at: 3, bindings: true, namespaced: true }),
        follower.publish(),
    );
}

impl Follower<'_> {
    async fn table(&self, table: &Arc<Table>, kind: TableKind) {
        let (mut listed, mut present) = (false, HashSet::new());
        follow::follow(table, Interest::default(), |seen| match seen {
            Seen::Begin => present.clear(),
            Seen::Present(object) => {
                present.insert(object.key().clone());
                self.set(kind, object.key(), Some(object));
            }
            Seen::ListEnd(revision) => {
                self.forget_others(kind, &std::mem::take(&mut present));
                self.note_read(kind, revision);
                if !std::mem::replace(&mut listed, true) {
                    self.listed();
                }
            }
            Seen::Changed(change) => {
                let object = change.object();
                self.set(kind, object.key(), (!object.is_tombstone()).then_some(object));
                self.note_read(kind, change.revision());
            }
        })
        .await;
    }

    fn set(&self, kind: TableKind, key: &Key, object: Option<&Arc<Object>>) {
        let (namespace, name) = (key.namespace().unwrap_or(""), key.name());
        // Objects that cannot be decoded grant nothing.
        let tree = object.and_then(|object| skip_unreadable(value(object)));
        let mut editor = self.editor.borrow_mut();
        if kind.bindings {
            editor.set_binding(namespace, name, tree.as_ref().map(Binding::read));
        } else {
            editor.set_role(namespace, name, tree.as_ref().map(Rule::list));
        }
        self.changed.notify_one();
    }

    /// Records that everything in a table up to a revision was passed to the editor.
    fn note_read(&self, kind: TableKind, revision: Revision) {
        self.editor.borrow_mut().note_read(kind.at, revision);
        self.changed.notify_one();
    }

    /// Removes the objects that a new list of the table no longer contains.
    fn forget_others(&self, kind: TableKind, present: &HashSet<Key>) {
        let editor = self.editor.borrow();
        let known = if kind.bindings { editor.bindings(kind.namespaced) } else { editor.roles(kind.namespaced) };
        drop(editor);
        for (namespace, name) in known {
            let key = if kind.namespaced { Key::namespaced(&namespace, &name) } else { Key::new(&name) };
            if !present.contains(&key) {
                self.set(kind, &key, None);
            }
        }
    }

    fn listed(&self) {
        let mut unread = self.unread.borrow_mut();
        *unread -= 1;
        if *unread == 0 {
            self.editor.borrow_mut().complete(self.rbac);
        }
    }

    /// Waits for changes, and publishes all of them at once, for ever.
    async fn publish(&self) {
        loop {
            self.changed.notified().await;
            self.editor.borrow_mut().publish(self.rbac);
        }
    }
}
