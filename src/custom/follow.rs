//! Following the definitions, so that what they define is served on every replica.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cluster::{Interest, Key, Object, Table};
use flotilla_proto::json;

use super::Definition;
use crate::follow::{self, Seen};

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

    fn set(&mut self, key: &Key, object: Option<&Arc<Object>>) {
        // What does not parse defines nothing; the store does not hold such.
        let tree = object.and_then(|object| json::parse(object.bytes()).ok());
        match tree.as_ref().and_then(Definition::of) {
            Some(definition) => drop(self.known.insert(key.clone(), Arc::new(definition))),
            None => drop(self.known.remove(key)),
        }
    }

    /// Takes in what is seen; whether there is something to publish.
    fn see(&mut self, seen: &Seen<'_>) -> bool {
        match seen {
            Seen::Begin => *self = Self::default(),
            Seen::Present(object) => self.set(object.key(), Some(object)),
            Seen::Listed => self.listed = true,
            Seen::Changed(change) => {
                let object = change.object();
                self.set(object.key(), (!object.is_tombstone()).then_some(object));
            }
        }
        self.listed
    }
}

/// Follows the table of definitions for ever, and publishes them after every change.
pub async fn follow(table: &Arc<Table>, publish: impl Fn(&Definitions)) {
    let mut definitions = Definitions::default();
    follow::follow(table, Interest::default(), |seen| {
        if definitions.see(&seen) {
            publish(&definitions);
        }
    })
    .await;
}
