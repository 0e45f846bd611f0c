//! Following the definitions, so that what they define is served on every replica.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cluster::{Interest, Key, Object, Table};
use flotilla_proto::json;

use super::{Definition, Life};
use crate::follow::{self, Seen};

/// The definitions that are established, by their keys.
#[derive(Debug, Default)]
pub struct Definitions {
    known: BTreeMap<Key, Arc<Definition>>,
    /// Those of before a list began that it has not shown yet.
    before: BTreeMap<Key, Arc<Definition>>,
    /// Those by which objects are to be shown no longer.
    over: Vec<Life>,
    listed: bool,
}

impl Definitions {
    /// The definitions, by their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.known.values()
    }

    fn set(&mut self, key: &Key, mut definition: Option<Definition>) {
        let before = self.known.remove(key).or_else(|| self.before.remove(key));
        if let Some(before) = before
            && !definition.as_mut().is_some_and(|definition| definition.continues(&before))
        {
            self.over.push(before.life.clone());
        }
        self.known.extend(definition.map(|definition| (key.clone(), Arc::new(definition))));
    }

    fn begin(&mut self) {
        self.before.append(&mut self.known);
        self.listed = false;
    }

    fn end(&mut self) {
        self.over.extend(std::mem::take(&mut self.before).into_values().map(|gone| gone.life.clone()));
        self.listed = true;
    }

    /// Takes in what is seen; whether there is something to publish.
    fn see(&mut self, seen: &Seen<'_>) -> bool {
        match seen {
            Seen::Begin => self.begin(),
            Seen::Present(object) => self.set(object.key(), read(object)),
            Seen::Listed => self.end(),
            Seen::Changed(change) => self.set(change.object().key(), seen.live().and_then(read)),
        }
        self.listed
    }
}

/// What does not parse defines nothing; the store does not hold such.
fn read(object: &Arc<Object>) -> Option<Definition> {
    Definition::of(&json::parse(object.bytes()).ok()?)
}

/// Follows the table of definitions for ever, and publishes them after every change.
pub async fn follow(table: &Arc<Table>, publish: impl Fn(&Definitions)) {
    let mut definitions = Definitions::default();
    follow::follow(table, Interest::default(), |seen| {
        if definitions.see(&seen) {
            publish(&definitions);
            // Whose watch ends finds what is defined now.
            definitions.over.drain(..).for_each(|life| life.end());
        }
    })
    .await;
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
    fn what_is_shown_ends_only_with_what_the_definition_says_of_it() {
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
