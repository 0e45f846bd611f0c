//! The storage of a map's members: a vector, or a tree once many members are inserted and removed.

use std::collections::{BTreeMap, btree_map};

use super::{Str, Value};
use crate::limits::{LINE_MEMBERS_MAX, ORDERED_MEMBERS_MAX};

/// A key with its value.
pub(super) type Member = (Str, Value);

/// The members of a map.
pub(super) enum Members {
    /// In order of insertion while there are few; sorted by key above [`ORDERED_MEMBERS_MAX`].
    Line(Vec<Member>),
    /// Sorted by key.
    Tree(BTreeMap<Str, Value>),
}

impl Default for Members {
    fn default() -> Self {
        Self::Line(Vec::new())
    }
}

impl Members {
    /// Returns a view of the members.
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Self::Line(line) => View::Line(line),
            Self::Tree(tree) => View::Tree(tree),
        }
    }

    /// Returns the value of `key` for a change.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Self::Line(line) => position(line, key).map(|at| &mut line[at].1),
            Self::Tree(tree) => tree.get_mut(key),
        }
    }

    /// Sets `key`. Returns the former value.
    pub(super) fn insert(&mut self, key: impl AsRef<str> + Into<Str>, value: Value) -> Option<Value> {
        if let Some(place) = self.get_mut(key.as_ref()) {
            return Some(std::mem::replace(place, value));
        }
        self.add(key.into(), value);
        None
    }

    /// Returns the value of `key` for a change, which is set to `null` first if it is absent.
    pub(super) fn entry(&mut self, key: &str) -> &mut Value {
        let at = match self {
            Self::Line(line) => position(line, key),
            Self::Tree(_) => None,
        };
        match (self, at) {
            (Self::Line(line), Some(at)) => &mut line[at].1,
            (members, _) => members.add(Str::from(key), Value::Null),
        }
    }

    /// Adds an absent key. Returns its value for a change.
    fn add(&mut self, key: Str, value: Value) -> &mut Value {
        if let Self::Line(line) = self
            && line.len() > LINE_MEMBERS_MAX
            && line.last().is_some_and(|(last, _)| *last > key)
        {
            *self = Self::Tree(std::mem::take(line).into_iter().collect());
        }
        match self {
            Self::Line(line) => {
                let at = add(line, key, value);
                &mut line[at].1
            }
            Self::Tree(tree) => tree.entry(key).or_insert(value),
        }
    }

    /// Removes `key`, and keeps the order of the others. Returns its value.
    pub(super) fn remove(&mut self, key: &str) -> Option<Value> {
        if let Self::Line(line) = self {
            let at = position(line, key)?;
            if line.len() <= LINE_MEMBERS_MAX || at + 1 == line.len() {
                return Some(line.remove(at).1);
            }
            *self = Self::Tree(std::mem::take(line).into_iter().collect());
        }
        match self {
            Self::Tree(tree) => tree.remove(key),
            Self::Line(_) => None,
        }
    }

    /// Keeps the members for which `keep` returns true.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        match self {
            Self::Line(line) => line.retain_mut(|(key, value)| keep(key, value)),
            Self::Tree(tree) => tree.retain(|key, value| keep(key, value)),
        }
    }

    /// Returns the members in order, with values that can be changed.
    pub(super) fn iter_mut(&mut self) -> IterMut<'_> {
        match self {
            Self::Line(line) => IterMut::Line(line.iter_mut()),
            Self::Tree(tree) => IterMut::Tree(tree.iter_mut()),
        }
    }

    /// Changes the order of a vector. A tree is always in order.
    pub(super) fn arrange(&mut self, order: impl FnOnce(&mut Vec<Member>)) {
        if let Self::Line(line) = self {
            order(line);
        }
    }

    /// Returns the members as a vector.
    pub(super) fn into_vec(self) -> Vec<Member> {
        match self {
            Self::Line(line) => line,
            Self::Tree(tree) => tree.into_iter().collect(),
        }
    }
}

/// A view of members.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    /// See [`Members::Line`].
    Line(&'a [Member]),
    /// See [`Members::Tree`].
    Tree(&'a BTreeMap<Str, Value>),
}

impl<'a> View<'a> {
    /// Returns the number of members.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Tree(tree) => tree.len(),
        }
    }

    /// Returns the value of `key`. Returns `None` if there is none.
    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        match self {
            Self::Line(line) => position(line, key).map(|at| &line[at].1),
            Self::Tree(tree) => tree.get(key),
        }
    }

    /// Returns the members in order.
    pub(super) fn iter(self) -> Iter<'a> {
        match self {
            Self::Line(line) => Iter::Line(line.iter()),
            Self::Tree(tree) => Iter::Tree(tree.iter()),
        }
    }

    /// Returns whether they are sorted by key.
    pub(super) fn is_sorted(self) -> bool {
        match self {
            Self::Line(line) => line.is_sorted_by(|a, b| a.0 <= b.0),
            Self::Tree(_) => true,
        }
    }

    /// Returns a copy as a vector.
    pub(super) fn to_vec(self) -> Vec<Member> {
        match self {
            Self::Line(line) => line.to_vec(),
            Self::Tree(tree) => tree.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        }
    }
}

/// Iterates over members in order.
pub(super) enum Iter<'a> {
    /// Over those of a vector.
    Line(std::slice::Iter<'a, Member>),
    /// Over those of a tree.
    Tree(btree_map::Iter<'a, Str, Value>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Line(line) => line.next().map(|(key, value)| (key.as_str(), value)),
            Self::Tree(tree) => tree.next().map(|(key, value)| (key.as_str(), value)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Line(line) => line.size_hint(),
            Self::Tree(tree) => tree.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::Line(line) => line.next_back().map(|(key, value)| (key.as_str(), value)),
            Self::Tree(tree) => tree.next_back().map(|(key, value)| (key.as_str(), value)),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// Iterates over members in order, with values that can be changed.
pub(super) enum IterMut<'a> {
    /// Over those of a vector.
    Line(std::slice::IterMut<'a, Member>),
    /// Over those of a tree.
    Tree(btree_map::IterMut<'a, Str, Value>),
}

impl<'a> Iterator for IterMut<'a> {
    type Item = (&'a str, &'a mut Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Line(line) => line.next().map(|(key, value)| (key.as_str(), value)),
            Self::Tree(tree) => tree.next().map(|(key, value)| (key.as_str(), value)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Line(line) => line.size_hint(),
            Self::Tree(tree) => tree.size_hint(),
        }
    }
}

impl ExactSizeIterator for IterMut<'_> {}

/// Sorts a vector by key.
pub(super) fn sort(line: &mut [Member]) {
    if !line.is_sorted_by(|a, b| a.0 <= b.0) {
        line.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

fn position(line: &[Member], key: &str) -> Option<usize> {
    if line.len() > ORDERED_MEMBERS_MAX {
        line.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()
    } else {
        line.iter().position(|(k, _)| k == key)
    }
}

/// Adds an absent key to a vector. Returns its position.
fn add(line: &mut Vec<Member>, key: Str, value: Value) -> usize {
    if line.len() > ORDERED_MEMBERS_MAX {
        let at = line.partition_point(|(k, _)| *k < key);
        line.insert(at, (key, value));
        return at;
    }
    line.push((key, value));
    if line.len() > ORDERED_MEMBERS_MAX {
        let key = line[line.len() - 1].0.clone();
        sort(line);
        return position(line, &key).unwrap_or(0);
    }
    line.len() - 1
}
