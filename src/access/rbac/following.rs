//! Keeps an [`Rbac`] up to date with the tables of roles and bindings.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Key, Object, Table};
use flotilla_proto::json;
use futures_util::FutureExt;
use tokio::sync::Notify;

use super::binding::Binding;
use super::index::{Editor, Rbac};
use super::rule::Rule;
use crate::follow::{self, Seen};

/// How long following rests before it begins again after a failure.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The four tables that decide.
#[derive(Clone)]
pub struct Tables {
    /// ClusterRoles.
    pub cluster_roles: Arc<Table>,
    /// Roles.
    pub roles: Arc<Table>,
    /// ClusterRoleBindings.
    pub cluster_role_bindings: Arc<Table>,
    /// RoleBindings.
    pub role_bindings: Arc<Table>,
}

/// What is being told to an editor.
struct Telling<'a> {
    rbac: &'a Rbac,
    editor: RefCell<Editor>,
    /// Tables that were not seen to their end yet.
    unseen: RefCell<usize>,
    changed: Notify,
}

/// What a table holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    bindings: bool,
    namespaced: bool,
}

/// Follows the tables for ever: what decides about access must not stand still because something broke once.
pub async fn follow(tables: &Tables, rbac: &Rbac) {
    loop {
        if AssertUnwindSafe(tell(tables, rbac)).catch_unwind().await.is_err() {
            tracing::error!("following roles and bindings failed: it begins again");
        }
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

async fn tell(tables: &Tables, rbac: &Rbac) {
    let telling = Telling { rbac, editor: RefCell::default(), unseen: RefCell::new(4), changed: Notify::new() };
    tokio::join!(
        telling.table(&tables.cluster_roles, Held { bindings: false, namespaced: false }),
        telling.table(&tables.roles, Held { bindings: false, namespaced: true }),
        telling.table(&tables.cluster_role_bindings, Held { bindings: true, namespaced: false }),
        telling.table(&tables.role_bindings, Held { bindings: true, namespaced: true }),
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
            Seen::Listed => {
                self.forget_others(held, &std::mem::take(&mut present));
                if !std::mem::replace(&mut listed, true) {
                    self.listed();
                }
            }
            Seen::Changed(change) => {
                let object = change.object();
                self.set(held, object.key(), (!object.is_tombstone()).then_some(object));
            }
        })
        .await;
    }

    fn set(&self, held: Held, key: &Key, object: Option<&Arc<Object>>) {
        let (namespace, name) = (key.namespace().unwrap_or(""), key.name());
        // What does not parse grants nothing; the store does not hold such.
        let tree = object.and_then(|object| json::parse(object.bytes()).ok());
        let mut editor = self.editor.borrow_mut();
        if held.bindings {
            editor.set_binding(namespace, name, tree.as_ref().map(Binding::read));
        } else {
            editor.set_role(namespace, name, tree.as_ref().map(Rule::list));
        }
        self.changed.notify_one();
    }

    /// Forgets what was there before the table was listed anew and is not any more.
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

    /// Publishes what changed, many changes in a row at once.
    async fn publish(&self) {
        loop {
            self.changed.notified().await;
            self.editor.borrow_mut().publish(self.rbac);
        }
    }
}
