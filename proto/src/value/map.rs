//! An object's members.

use super::{Str, Value};

/// Above this many members a map is kept sorted, so that finding one never takes linear time in what a client sent.
/// No struct of the API has more fields, so conformed structs always keep the order of their schema.
const ORDERED_MAX: usize = 64;

/// Members of an object: in insertion order while small, sorted by key once there are more than 64.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Vec<(Str, Value)>,
}

/// Puts what a repeated key says over what it said before: objects are decoded into the same object.
fn overwrite(place: &mut Value, later: Value) {
    match (place, later) {
        (Value::Object(earlier), Value::Object(later)) => {
            for (key, value) in later {
                overwrite(earlier.entry(&key), value);
            }
        }
        (place, later) => *place = later,
    }
}

impl PartialEq for Map {
    /// Equal when the same keys have equal values, in whatever order.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.entries.iter().zip(&other.entries).all(|((a_key, a), (b_key, b))| {
                if a_key == b_key { a == b } else { other.get(a_key) == Some(a) && self.get(b_key) == Some(b) }
            })
    }
}

impl Map {
    /// An empty map.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// An empty map with room for `capacity` members.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity) }
    }

    /// Makes a map of entries in which a key may stand several times: the last one wins, objects
    /// are merged. Returns the repeated keys too.
    pub fn from_entries(mut entries: Vec<(Str, Value)>) -> (Self, Vec<Str>) {
        let mut repeated = Vec::new();
        if entries.len() > ORDERED_MAX {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    repeated.push(later.0.clone());
                    overwrite(&mut earlier.1, std::mem::take(&mut later.1));
                }
                same
            });
            return (Self { entries }, repeated);
        }
        let mut at = 1;
        while at < entries.len() {
            let (earlier, rest) = entries.split_at_mut(at);
            match earlier.iter_mut().find(|(key, _)| *key == rest[0].0) {
                Some((key, place)) => {
                    repeated.push(key.clone());
                    overwrite(place, std::mem::take(&mut rest[0].1));
                    entries.remove(at);
                }
                None => at += 1,
            }
        }
        (Self { entries }, repeated)
    }

    /// A map of entries of which no two have the same key.
    pub(crate) fn from_unique(entries: Vec<(Str, Value)>) -> Self {
        let mut map = Self { entries };
        if map.entries.len() > ORDERED_MAX {
            map.sort();
        }
        map
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() > ORDERED_MAX {
            self.entries.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()
        } else {
            self.entries.iter().position(|(k, _)| k == key)
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|at| &self.entries[at].1)
    }

    /// The value of `key`, for changing it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|at| &mut self.entries[at].1)
    }

    /// Whether there is a member `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets `key`, in place if it is there, else behind the others; returns what it was.
    pub fn insert(&mut self, key: impl AsRef<str> + Into<Str>, value: impl Into<Value>) -> Option<Value> {
        let value = value.into();
        if let Some(at) = self.position(key.as_ref()) {
            return Some(std::mem::replace(&mut self.entries[at].1, value));
        }
        self.add(key.into(), value);
        None
    }

    /// Adds an absent key; returns its position.
    fn add(&mut self, key: Str, value: Value) -> usize {
        if self.entries.len() > ORDERED_MAX {
            let at = self.entries.partition_point(|(k, _)| *k < key);
            self.entries.insert(at, (key, value));
            return at;
        }
        self.entries.push((key, value));
        if self.entries.len() > ORDERED_MAX {
            let key = self.entries[self.entries.len() - 1].0.clone();
            self.sort();
            return self.position(&key).unwrap_or(0);
        }
        self.entries.len() - 1
    }

    /// The place of `key`, made with `null` if it is absent.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        let at = match self.position(key) {
            Some(at) => at,
            None => self.add(Str::from(key), Value::Null),
        };
        &mut self.entries[at].1
    }

    /// Takes `key` out, keeping the order of the others.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|at| self.entries.remove(at).1)
    }

    /// Keeps the members for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// Members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Members in order, values changeable.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        self.entries.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// Keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Sorts members by key.
    pub fn sort(&mut self) {
        if !self.entries.is_sorted_by(|a, b| a.0 <= b.0) {
            self.entries.sort_by(|a, b| a.0.cmp(&b.0));
        }
    }

    /// Puts members into the order that `rank` gives their keys; large maps stay sorted by key.
    pub fn sort_by_rank(&mut self, mut rank: impl FnMut(&str) -> usize) {
        if self.entries.len() <= ORDERED_MAX {
            self.entries.sort_by_cached_key(|(key, _)| rank(key));
        }
    }
}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Into<Str> + AsRef<str>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self::from_entries(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_maps_stay_findable_and_sorted() {
        let mut map = Map::new();
        for n in (0..1000).rev() {
            map.insert(format!("k{n:04}"), n);
        }
        assert_eq!(map.len(), 1000);
        assert!(map.keys().is_sorted());
        assert!((0..1000).all(|n| map.get(&format!("k{n:04}")) == Some(&Value::from(n))));
        assert_eq!(map.insert("k0500", true), Some(Value::from(500)));
    }

    #[test]
    fn the_last_of_repeated_keys_wins() {
        for filler in [0, 200] {
            let mut entries: Vec<(Str, Value)> =
                vec![("a".into(), 1.into()), ("b".into(), 2.into()), ("a".into(), 3.into())];
            entries.extend((0..filler).map(|n| (format!("f{n}").into(), Value::Null)));
            let (map, repeated) = Map::from_entries(entries);
            assert_eq!(map.get("a"), Some(&Value::Int(3)));
            assert_eq!(repeated, ["a"]);
            assert_eq!(map.len(), 2 + filler);
        }
    }
}
