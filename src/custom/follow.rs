//! Follows the definitions in the store. Every replica thus serves the resources that they define.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cluster::{Interest, Key, Object, Table};
use tokio::sync::Notify;

use super::{Definition, GracePeriod};
use crate::follow::{self, Seen};
use crate::unreadable::{skip_unreadable, tree};

/// The definitions that are established, by their keys.
#[derive(Debug, Default)]
pub struct Definitions {
    known: BTreeMap<Key, Arc<Definition>>,
    /// Definitions from before the current list began. The list has not reached them yet.
    before: BTreeMap<Key, Arc<Definition>>,
    /// Grace periods of replaced and deleted definitions. They begin after the next publication.
    over: Vec<GracePeriod>,
    listed: bool,
}

impl Definitions {
    /// Returns all definitions in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.known.values()
    }

    /// Adds, replaces or removes a definition. Returns whether that changes the served resources.
    fn set(&mut self, key: &Key, mut definition: Option<Definition>) -> bool {
        let before = self.known.remove(key).or_else(|| self.before.remove(key));
        let terminating = |of: Option<&Definition>| of.map(|definition| definition.terminating);
        let mut is_changed = terminating(before.as_deref()) != terminating(definition.as_ref());
        if let Some(before) = before
            && !definition.as_mut().is_some_and(|definition| definition.continues(&before))
        {
            self.over.push(before.grace.clone());
            is_changed = true;
        }
        definition.iter().for_each(Definition::compile);
        self.known.extend(definition.map(|definition| (key.clone(), Arc::new(definition))));
        is_changed
    }

    fn begin(&mut self) {
        self.before.append(&mut self.known);
        self.listed = false;
    }

    fn end(&mut self) {
        self.over.extend(std::mem::take(&mut self.before).into_values().map(|gone| gone.grace.clone()));
        self.listed = true;
    }

    /// Handles an event of the table. Returns whether the definitions must be published.
    fn see(&mut self, seen: &Seen<'_>) -> bool {
        let is_changed = match seen {
            Seen::Begin => {
                self.begin();
                false
            }
            Seen::Present(object) => self.set(object.key(), read(object)),
            Seen::ListEnd(_) => {
                self.end();
                true
            }
            Seen::Changed(change) => self.set(change.object().key(), seen.live().and_then(read)),
        };
        self.listed && is_changed
    }
}

/// Reads a definition. Returns `None` if the object cannot be decoded, or the definition is not established.
fn read(object: &Arc<Object>) -> Option<Definition> {
    Definition::of(&skip_unreadable(tree(object))?)
}

/// Follows the table of definitions for ever and publishes them after changes.
pub async fn follow(table: &Arc<Table>, publish: impl Fn(&Definitions)) {
    let (definitions, changed) = (RefCell::new(Definitions::default()), Notify::new());
    tokio::join!(
        follow::follow(table, Interest::default(), |seen| {
            if definitions.borrow_mut().see(&seen) {
                changed.notify_one();
            }
        }),
        async {
            loop {
                changed.notified().await; // changes at the same time are published together
                if !definitions.borrow().listed {
                    continue; // a new list has begun; it notifies when complete
                }
                publish(&definitions.borrow());
                // Ended watches reconnect, and then find the new definitions.
                definitions.borrow_mut().over.drain(..).for_each(|grace| grace.begin());
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;
    use flotilla_proto::value::Value;

    use super::*;

    fn definition(change: &[&str], to: Value) -> Definition {
        let mut definition = value!({
            "metadata": {"uid": "1"},
            "spec": {"group": "g.example", "scope": "Cluster", "versions": [{"name": "v1", "served": true, "storage": true}]},
            "status": {
                "acceptedNames": {"plural": "things", "kind": "Thing"},
                "conditions": [{"type": "Established", "status": "True"}]
            }
        });
        definition.set_at(change, to);
        Definition::of(&definition).unwrap()
    }

    #[test]
    fn watches_end_only_if_the_definition_shows_objects_differently() {
        let key = Key::new("things.g.example");
        let mut definitions = Definitions::default();
        let ended = |definitions: &mut Definitions, now: Option<Definition>| {
            definitions.set(&key, now);
            definitions.over.drain(..).count()
        };
        let first = || definition(&["metadata", "labels"], Value::Null);
        assert_eq!(ended(&mut definitions, Some(first())), 0);
        let serial = definitions.known[&key].serial;
        let deleted = || definition(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
        assert_eq!(ended(&mut definitions, Some(deleted())), 0);
        assert_eq!(definitions.known[&key].serial, serial);
        for (path, to) in [(["spec", "scope"], "Namespaced"), (["metadata", "uid"], "2")] {
            assert_eq!(ended(&mut definitions, Some(definition(&path, to.into()))), 1, "{path:?}");
        }
        assert_eq!(ended(&mut definitions, None), 1);
        assert_eq!(ended(&mut definitions, Some(first())), 0);
        definitions.begin();
        assert_eq!(ended(&mut definitions, Some(first())), 0);
        definitions.end();
        assert!(definitions.over.is_empty());
        definitions.begin();
        definitions.end();
        assert_eq!(definitions.over.len(), 1);
    }
}
