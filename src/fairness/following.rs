//! Keeps [`Fairness`] up to date with the tables of FlowSchemas and priority levels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use compact_str::CompactString;
use flotilla_cluster::{Interest, Object, Table};
use tokio::sync::Notify;

use super::{Fairness, FlowSchema, Objects, PriorityLevel};
use crate::follow::{self, Seen};
use crate::unreadable::{skip_unreadable, value};

/// The resources that are followed.
pub const RESOURCES: [&str; 2] = ["flowschemas", "prioritylevelconfigurations"];

/// The tables of [`RESOURCES`], in the same order.
pub type PriorityTables = [Arc<Table>; 2];

/// Follows the tables for ever.
pub async fn follow([schemas, levels]: &PriorityTables, fairness: &Fairness) {
    let (objects, changed) = (RefCell::new(Objects::default()), Notify::new());
    // The number of tables that were not read to their end yet.
    let unread = RefCell::new(2);
    let news = |kind| Following { kind, objects: &objects, unread: &unread, changed: &changed, listed: false };
    let publish = async {
        loop {
            changed.notified().await;
            // Publishes successive changes together. Publishes nothing before both tables are read: levels without
            // their FlowSchemas would mislead.
            if *unread.borrow() == 0 {
                let now = objects.borrow().clone();
                fairness.set(now);
            }
        }
    };
    let (mut of_schemas, mut of_levels) = (news(FollowedKind::FlowSchemas), news(FollowedKind::PriorityLevels));
    tokio::join!(
        follow::follow(schemas, Interest::default(), |seen| of_schemas.see(&seen)),
        follow::follow(levels, Interest::default(), |seen| of_levels.see(&seen)),
        publish,
    );
}

/// The kind of objects in a table.
#[derive(Debug, Clone, Copy)]
enum FollowedKind {
    FlowSchemas,
    PriorityLevels,
}

/// Takes the objects and changes of one table.
struct Following<'a> {
    kind: FollowedKind,
    objects: &'a RefCell<Objects>,
    unread: &'a RefCell<usize>,
    changed: &'a Notify,
    listed: bool,
}

impl Following<'_> {
    fn see(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Begin => {
                if std::mem::replace(&mut self.listed, false) {
                    *self.unread.borrow_mut() += 1;
                }
                match self.kind {
                    FollowedKind::FlowSchemas => self.objects.borrow_mut().schemas.clear(),
                    FollowedKind::PriorityLevels => self.objects.borrow_mut().levels.clear(),
                }
            }
            Seen::Present(object) => self.set(object),
            Seen::ListEnd(_) => {
                self.listed = true;
                *self.unread.borrow_mut() -= 1;
                self.changed.notify_one();
            }
            Seen::Changed(change) => {
                self.set(change.object());
                self.changed.notify_one();
            }
        }
    }

    fn set(&self, object: &Arc<Object>) {
        // An object that cannot be decoded counts as absent.
        let tree =
            Some(object).filter(|object| !object.is_tombstone()).and_then(|object| skip_unreadable(value(object)));
        let (name, mut objects) = (object.key().name(), self.objects.borrow_mut());
        match self.kind {
            FollowedKind::FlowSchemas => put(&mut objects.schemas, name, tree.as_ref().map(FlowSchema::read)),
            FollowedKind::PriorityLevels => put(&mut objects.levels, name, tree.as_ref().map(PriorityLevel::read)),
        }
    }
}

fn put<T>(all: &mut BTreeMap<CompactString, T>, name: &str, object: Option<T>) {
    match object {
        Some(object) => all.insert(name.into(), object),
        None => all.remove(name),
    };
}
