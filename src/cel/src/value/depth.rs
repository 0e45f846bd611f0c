//! The nesting depth of values.

use std::collections::HashMap;
use std::sync::Arc;

use super::{List, Map, Value};

/// Computes the nesting depth of lists, maps and optionals that expressions created. Visits each only once, even if
/// many places share it. It knows them by their addresses, so all visited values must outlive it. Values in trees do
/// not count.
#[derive(Debug, Default)]
pub struct Depths {
    /// Depths by the addresses of shared parts.
    known: HashMap<usize, u32>,
}

impl Depths {
    /// Returns the depth of a value; 0 if it has no parts.
    pub fn of(&mut self, value: &Value<'_>) -> u32 {
        match value {
            Value::List(list) => self.of_list(list),
            Value::Map(Map::Made(entries)) => self
                .shared(entries, |depths| entries.iter().map(|(_, value)| depths.of(value)).max().unwrap_or_default()),
            Value::Optional(Some(value)) => self.shared(value, |depths| depths.of(value)),
            _ => 0,
        }
    }

    fn of_list(&mut self, list: &List<'_>) -> u32 {
        match list {
            List::Tree(..) => 0,
            List::Made(items) | List::Merged(items, _) => {
                self.shared(items, |depths| items.iter().map(|item| depths.of(item)).max().unwrap_or_default())
            }
            List::Joined(joined) => self.shared(joined, |depths| {
                let [first, second] = joined.parts();
                depths.of_list(first).max(depths.of_list(second))
            }),
        }
    }

    fn shared<T>(&mut self, of: &Arc<T>, below: impl FnOnce(&mut Self) -> u32) -> u32 {
        let address = Arc::as_ptr(of) as usize;
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let depth = below(self) + 1;
        self.known.insert(address, depth);
        depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_values_are_visited_once() {
        let doubled = (0..60).fold(Value::Int(1), |value, _| Value::list(vec![value.clone(), value]));
        let mut depths = Depths::default();
        assert_eq!((depths.of(&doubled), depths.known.len()), (60, 60));
        let map = Value::map([(Value::from("a"), Value::some(doubled))]);
        assert_eq!((depths.of(&map), depths.of(&Value::Null)), (62, 0));
    }
}
