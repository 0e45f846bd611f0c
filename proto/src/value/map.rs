//! An object's members.

use std::sync::{Arc, OnceLock};

use super::members::{Members, View, sort};
use super::source::ObjectText;
use super::{Str, Value};
use crate::limits::ORDERED_MEMBERS_MAX;

/// Members of an object: in insertion order while there are few, sorted by key once there are more than 64.
///
/// Clones share their members until one of them is changed. A map that was made from a stored text reads its members on
/// first use, and keeps the text until it is changed.
#[derive(Clone, Default)]
pub struct Map {
    /// `None` when there are no members.
    node: Option<Arc<SharedMap>>,
}

/// The part that clones share.
#[derive(Default)]
struct SharedMap {
    /// The members, unless they have yet to be read from a text.
    own: Members,
    unchanged: Option<Box<Unchanged>>,
    /// Whether the map was not changed since [`Map::mark_conformed`].
    conformed: bool,
}

/// A text, and its members once they were read.
struct Unchanged {
    text: ObjectText,
    members: OnceLock<Vec<(Str, Value)>>,
}

impl SharedMap {
    fn members(&self) -> View<'_> {
        match &self.unchanged {
            Some(unchanged) => View::Line(unchanged.members.get_or_init(|| read(&unchanged.text))),
            None => self.own.view(),
        }
    }

    /// Returns the members for a change, which drops the text.
    fn members_mut(&mut self) -> &mut Members {
        self.conformed = false;
        if let Some(unchanged) = self.unchanged.take() {
            let Unchanged { text, members } = *unchanged;
            self.own = Members::Line(members.into_inner().unwrap_or_else(|| read(&text)));
        }
        &mut self.own
    }
}

impl Clone for SharedMap {
    fn clone(&self) -> Self {
        Self { own: Members::Line(self.members().to_vec()), unchanged: None, conformed: false }
    }
}

fn read(text: &ObjectText) -> Vec<(Str, Value)> {
    let mut members = text.members();
    arrange(&mut members);
    members
}

/// Sorts the members if there are many.
fn arrange(members: &mut [(Str, Value)]) {
    if members.len() > ORDERED_MEMBERS_MAX {
        sort(members);
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Returns one bit of a word, the same for equal keys: a key whose bit is not set yet is certainly new.
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return 1 };
    let sum =
        bytes.len() * 5 + usize::from(*first) * 11 + usize::from(*last) * 23 + usize::from(bytes[bytes.len() / 2]);
    1 << (sum % 64)
}

/// Lets a repeated key replace its earlier value: objects are merged, as Go decodes into the same object.
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
    /// Two maps are equal when they have equal values for the same keys, in any order.
    fn eq(&self, other: &Self) -> bool {
        let same_text = || matches!((self.text_bytes(), other.text_bytes()), (Some(a), Some(b)) if a == b);
        let same = |((a_key, a), (b_key, b)): ((&str, &Value), (&str, &Value))| {
            if a_key == b_key { a == b } else { other.get(a_key) == Some(a) && self.get(b_key) == Some(b) }
        };
        self.is_same(other) || same_text() || (self.len() == other.len() && self.iter().zip(other.iter()).all(same))
    }
}

impl Map {
    /// Returns an empty map.
    pub const fn new() -> Self {
        Self { node: None }
    }

    /// Returns an empty map with room for `capacity` members.
    pub fn with_capacity(capacity: usize) -> Self {
        let room = || Arc::new(SharedMap { own: Members::Line(Vec::with_capacity(capacity)), ..SharedMap::default() });
        Self { node: (capacity > 0).then(room) }
    }

    fn of(members: Vec<(Str, Value)>) -> Self {
        Self {
            node: (!members.is_empty())
                .then(|| Arc::new(SharedMap { own: Members::Line(members), ..SharedMap::default() })),
        }
    }

    /// Returns the map of a text's object, which must have members.
    pub(super) fn of_text(text: ObjectText) -> Self {
        Self::unchanged(text, OnceLock::new())
    }

    /// The same as [`Map::of_text`], with members that were read already.
    pub(super) fn of_text_with(text: ObjectText, mut members: Vec<(Str, Value)>) -> Self {
        arrange(&mut members);
        Self::unchanged(text, members.into())
    }

    fn unchanged(text: ObjectText, members: OnceLock<Vec<(Str, Value)>>) -> Self {
        let unchanged = Some(Box::new(Unchanged { text, members }));
        Self { node: Some(Arc::new(SharedMap { unchanged, ..SharedMap::default() })) }
    }

    /// Returns the text from which the map was made. Returns `None` once it was changed.
    pub(super) fn text(&self) -> Option<&ObjectText> {
        self.node.as_ref()?.unchanged.as_ref().map(|unchanged| &unchanged.text)
    }

    /// Returns the bytes of the text from which the map was made. Returns `None` once it was changed.
    pub(crate) fn text_bytes(&self) -> Option<&[u8]> {
        self.text().map(ObjectText::as_bytes)
    }

    /// Records that the map and everything in it has the form that its type demands, unless a clone shares its members.
    /// This is forgotten when the map or something in it is changed, which is only possible through a mutable reference
    /// to the map.
    pub(crate) fn mark_conformed(&mut self) {
        if let Some(node) = self.node.as_mut().and_then(Arc::get_mut) {
            node.conformed = true;
        }
    }

    /// Returns whether [`Map::mark_conformed`] was called and nothing was changed since. True of an empty map.
    pub(crate) fn is_conformed(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.conformed)
    }

    /// Returns whether both are clones that still share their members, or both are empty. Then they are equal, which is
    /// known without comparing members.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.node, &other.node) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    fn members(&self) -> View<'_> {
        self.node.as_ref().map_or(View::Line(&[]), |node| node.members())
    }

    /// Returns the members for a change: not shared with clones, and without a text.
    fn members_mut(&mut self) -> &mut Members {
        Arc::make_mut(self.node.get_or_insert_default()).members_mut()
    }

    /// Makes a map from entries in which a key may occur several times: the last value wins, and objects are merged.
    /// Also returns the repeated keys.
    pub fn from_entries(mut entries: Vec<(Str, Value)>) -> (Self, Vec<Str>) {
        let mut repeated = Vec::new();
        if entries.len() > ORDERED_MEMBERS_MAX {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    repeated.push(later.0.clone());
                    overwrite(&mut earlier.1, std::mem::take(&mut later.1));
                }
                same
            });
            return (Self::of(entries), repeated);
        }
        let (mut at, mut seen) = (0, 0);
        while at < entries.len() {
            let (earlier, rest) = entries.split_at_mut(at);
            let mark = mark(&rest[0].0);
            let is_new = seen & mark == 0;
            seen |= mark;
            if is_new {
                at += 1;
                continue;
            }
            match earlier.iter_mut().find(|(key, _)| *key == rest[0].0) {
                Some((key, place)) => {
                    repeated.push(key.clone());
                    overwrite(place, std::mem::take(&mut rest[0].1));
                    entries.remove(at);
                }
                None => at += 1,
            }
        }
        (Self::of(entries), repeated)
    }

    /// Makes a map from entries with different keys.
    pub fn from_unique(entries: Vec<(Str, Value)>) -> Self {
        let mut map = Self::of(entries);
        if map.len() > ORDERED_MEMBERS_MAX {
            map.sort();
        }
        map
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.node.is_none() || self.members().len() == 0
    }

    /// Returns whether there are so many members that they are sorted by key and have no order of their own.
    pub fn is_large(&self) -> bool {
        self.len() > ORDERED_MEMBERS_MAX
    }

    /// Returns the value of `key`. Returns `None` if there is none.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members().get(key)
    }

    /// Returns the value of `key` for a change. Returns `None` if there is none.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.members().get(key)?;
        self.members_mut().get_mut(key)
    }

    /// Returns whether there is a member `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.members().get(key).is_some()
    }

    /// Sets `key`: in place if it exists, otherwise after the other members. Returns the former value.
    pub fn insert(&mut self, key: impl AsRef<str> + Into<Str>, value: impl Into<Value>) -> Option<Value> {
        self.members_mut().insert(key, value.into())
    }

    /// Returns the value of `key` for a change, which is set to `null` first if it is absent.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        self.members_mut().entry(key)
    }

    /// Removes `key`, and keeps the order of the others. Returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.members().get(key)?;
        self.members_mut().remove(key)
    }

    /// Keeps the members for which `keep` returns true.
    pub fn retain(&mut self, keep: impl FnMut(&str, &mut Value) -> bool) {
        if !self.is_empty() {
            self.members_mut().retain(keep);
        }
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.members().iter()
    }

    /// Returns the members in order, with values that can be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        let members = if self.is_empty() { None } else { Some(self.members_mut()) };
        members.map_or_else(|| super::members::IterMut::Line([].iter_mut()), Members::iter_mut)
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members().iter().map(|(key, _)| key)
    }

    /// Returns the values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.members().iter().map(|(_, value)| value)
    }

    /// Sorts the members by key.
    pub fn sort(&mut self) {
        if !self.members().is_sorted() {
            self.members_mut().arrange(|line| sort(line));
        }
    }

    /// Sorts the members by the rank of their keys. Large maps stay sorted by key.
    pub fn sort_by_rank(&mut self, mut rank: impl FnMut(&str) -> usize) {
        if self.len() <= ORDERED_MEMBERS_MAX {
            self.members_mut().arrange(|line| line.sort_by_cached_key(|(key, _)| rank(key)));
        }
    }
}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        let members = match self.node.map(Arc::try_unwrap) {
            None => Vec::new(),
            Some(Ok(mut own)) => std::mem::take(own.members_mut()).into_vec(),
            Some(Err(shared)) => shared.members().to_vec(),
        };
        members.into_iter()
    }
}

impl<K: Into<Str> + AsRef<str>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self::from_entries(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()).0
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
