//! An object's members.

use std::sync::{Arc, OnceLock};

use super::members::{Members, ORDERED_MAX, View, sort};
use super::source::Text;
use super::{Str, Value};

/// Members of an object: in insertion order while small, sorted by key once there are more than 64.
///
/// Clones share their members until one of them is changed. A map that was read of a stored text reads its members when
/// they are first asked for, and keeps the text until it is changed.
#[derive(Clone, Default)]
pub struct Map {
    /// None when there are no members.
    node: Option<Arc<Node>>,
}

/// What clones share.
#[derive(Default)]
struct Node {
    /// The members, unless they are still to be read of a text.
    own: Members,
    unchanged: Option<Box<Unchanged>>,
    /// See [`Map::settle`].
    settled: bool,
}

/// A text, and its members once they were asked for.
struct Unchanged {
    text: Text,
    members: OnceLock<Vec<(Str, Value)>>,
}

impl Node {
    fn members(&self) -> View<'_> {
        match &self.unchanged {
            Some(unchanged) => View::Line(unchanged.members.get_or_init(|| read(&unchanged.text))),
            None => self.own.view(),
        }
    }

    /// The members, for changing them, which leaves the text behind.
    fn members_mut(&mut self) -> &mut Members {
        self.settled = false;
        if let Some(unchanged) = self.unchanged.take() {
            let Unchanged { text, members } = *unchanged;
            self.own = Members::Line(members.into_inner().unwrap_or_else(|| read(&text)));
        }
        &mut self.own
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        Self { own: Members::Line(self.members().to_vec()), unchanged: None, settled: false }
    }
}

fn read(text: &Text) -> Vec<(Str, Value)> {
    let mut members = text.members();
    arrange(&mut members);
    members
}

/// Sorts what is large.
fn arrange(members: &mut [(Str, Value)]) {
    if members.len() > ORDERED_MAX {
        sort(members);
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// One bit of a word, the same for equal keys: those whose bit nobody has yet repeat none.
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return 1 };
    let sum =
        bytes.len() * 5 + usize::from(*first) * 11 + usize::from(*last) * 23 + usize::from(bytes[bytes.len() / 2]);
    1 << (sum % 64)
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
        let same_text = || matches!((self.text(), other.text()), (Some(a), Some(b)) if a == b);
        let same = |((a_key, a), (b_key, b)): ((&str, &Value), (&str, &Value))| {
            if a_key == b_key { a == b } else { other.get(a_key) == Some(a) && self.get(b_key) == Some(b) }
        };
        self.is_same(other) || same_text() || (self.len() == other.len() && self.iter().zip(other.iter()).all(same))
    }
}

impl Map {
    /// An empty map.
    pub const fn new() -> Self {
        Self { node: None }
    }

    /// An empty map with room for `capacity` members.
    pub fn with_capacity(capacity: usize) -> Self {
        let room = || Arc::new(Node { own: Members::Line(Vec::with_capacity(capacity)), ..Node::default() });
        Self { node: (capacity > 0).then(room) }
    }

    fn of(members: Vec<(Str, Value)>) -> Self {
        Self { node: (!members.is_empty()).then(|| Arc::new(Node { own: Members::Line(members), ..Node::default() })) }
    }

    /// The object of a text that has members.
    pub(super) fn of_text(text: Text) -> Self {
        Self::unchanged(text, OnceLock::new())
    }

    /// As [`Map::of_text`], where the members were read already.
    pub(super) fn of_text_with(text: Text, mut members: Vec<(Str, Value)>) -> Self {
        arrange(&mut members);
        Self::unchanged(text, members.into())
    }

    fn unchanged(text: Text, members: OnceLock<Vec<(Str, Value)>>) -> Self {
        let unchanged = Some(Box::new(Unchanged { text, members }));
        Self { node: Some(Arc::new(Node { unchanged, ..Node::default() })) }
    }

    /// The text of which the map was read, if it was not changed since.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        self.node.as_ref()?.unchanged.as_ref().map(|unchanged| unchanged.text.as_bytes())
    }

    /// Notes that the map and all that is in it is as its type wants it. That is forgotten once the map is changed or
    /// something in it, which nobody can without having the map for changing it.
    pub(crate) fn settle(&mut self) {
        if let Some(node) = self.node.as_mut().and_then(Arc::get_mut) {
            node.settled = true;
        }
    }

    /// Whether nothing was changed since [`Map::settle`].
    pub(crate) fn is_settled(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.settled)
    }

    /// Whether both are clones of one map that share their members still, or both empty: then they are equal, which is
    /// known without a look at the members.
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

    /// The members, for changing them: of this map alone, and without a text.
    fn members_mut(&mut self) -> &mut Members {
        Arc::make_mut(self.node.get_or_insert_default()).members_mut()
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

    /// A map of entries of which no two have the same key.
    pub fn from_unique(entries: Vec<(Str, Value)>) -> Self {
        let mut map = Self::of(entries);
        if map.len() > ORDERED_MAX {
            map.sort();
        }
        map
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.node.is_none() || self.members().len() == 0
    }

    /// Whether there are so many members that they are sorted by key and have no order of their own.
    pub fn is_large(&self) -> bool {
        self.len() > ORDERED_MAX
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members().get(key)
    }

    /// The value of `key`, for changing it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.members().get(key)?;
        self.members_mut().get_mut(key)
    }

    /// Whether there is a member `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.members().get(key).is_some()
    }

    /// Sets `key`, in place if it is there, else behind the others; returns what it was.
    pub fn insert(&mut self, key: impl AsRef<str> + Into<Str>, value: impl Into<Value>) -> Option<Value> {
        self.members_mut().insert(key, value.into())
    }

    /// The place of `key`, made with `null` if it is absent.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        self.members_mut().entry(key)
    }

    /// Takes `key` out, keeping the order of the others.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.members().get(key)?;
        self.members_mut().remove(key)
    }

    /// Keeps the members for which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&str, &mut Value) -> bool) {
        if !self.is_empty() {
            self.members_mut().retain(keep);
        }
    }

    /// Members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.members().iter()
    }

    /// Members in order, values changeable.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        let members = if self.is_empty() { None } else { Some(self.members_mut()) };
        members.map_or_else(|| super::members::IterMut::Line([].iter_mut()), Members::iter_mut)
    }

    /// Keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members().iter().map(|(key, _)| key)
    }

    /// Values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.members().iter().map(|(_, value)| value)
    }

    /// Sorts members by key.
    pub fn sort(&mut self) {
        if !self.members().is_sorted() {
            self.members_mut().arrange(|line| sort(line));
        }
    }

    /// Puts members into the order that `rank` gives their keys; large maps stay sorted by key.
    pub fn sort_by_rank(&mut self, mut rank: impl FnMut(&str) -> usize) {
        if self.len() <= ORDERED_MAX {
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
