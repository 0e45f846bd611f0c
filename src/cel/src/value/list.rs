//! Lists.

use std::sync::Arc;

use flotilla_proto::structural::Structural;

use super::shape::Shape;
use super::tree::{plain, shaped};
use super::{Tree, Value};
use crate::error::Outcome;

/// A list: from a tree, created by an expression, or a concatenation of two others.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// From a tree. Without a schema, the items are read as JSON.
    Tree(&'a [Tree], Option<&'a Structural>),
    /// Created by an expression.
    Made(Arc<Vec<Value<'a>>>),
    /// The result of `+` on sets and on lists with keys. It is compared in the same way as these.
    Merged(Arc<Vec<Value<'a>>>, &'a Structural),
    /// The result of `+` on other lists, without a copy.
    Joined(Arc<Joined<'a>>),
}

/// A concatenation of two lists.
#[derive(Debug)]
pub struct Joined<'a> {
    first: List<'a>,
    second: List<'a>,
    len: usize,
}

impl<'a> Joined<'a> {
    /// Returns the lists.
    pub(super) const fn parts(&self) -> [&List<'a>; 2] {
        [&self.first, &self.second]
    }
}

impl<'a> List<'a> {
    /// Returns `first + second`.
    pub fn join(first: List<'a>, second: List<'a>) -> Self {
        if first.is_empty() {
            return second;
        }
        if second.is_empty() {
            return first;
        }
        let len = first.len().saturating_add(second.len());
        Self::Joined(Arc::new(Joined { first, second, len }))
    }

    /// Returns whether a schema determines how its items are read.
    pub fn is_shaped(&self) -> bool {
        self.schema().is_some()
    }

    /// Returns its schema. `None` for a list of plain JSON or of an expression.
    pub(super) fn schema(&self) -> Option<&'a Structural> {
        match self {
            Self::Tree(_, schema) => *schema,
            Self::Merged(_, schema) => Some(schema),
            Self::Made(_) | Self::Joined(_) => None,
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Tree(items, _) => items.len(),
            Self::Made(items) | Self::Merged(items, _) => items.len(),
            Self::Joined(joined) => joined.len,
        }
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at an index. `None` after the end. An item that does not fit its schema is an error.
    pub fn get(&self, mut at: usize) -> Option<Outcome<Value<'a>>> {
        let mut list = self;
        while let Self::Joined(joined) = list {
            let first = joined.first.len();
            list = if at < first {
                &joined.first
            } else {
                at -= first;
                &joined.second
            };
        }
        match list {
            Self::Tree(items, schema) => items.get(at).map(|item| read(item, *schema)),
            Self::Made(items) | Self::Merged(items, _) => items.get(at).cloned().map(Ok),
            Self::Joined(_) => None,
        }
    }

    /// Returns the items in order.
    pub fn iter(&self) -> ListItems<'a> {
        let mut items = ListItems { list: self.clone(), at: 0, later: Vec::new() };
        items.descend();
        items
    }

    /// Returns the items in order. `Err` is the first error in them.
    pub fn to_vec(&self) -> Outcome<Vec<Value<'a>>> {
        self.iter().collect()
    }
}

fn read<'a>(item: &'a Tree, list: Option<&'a Structural>) -> Outcome<Value<'a>> {
    match list.and_then(|list| list.items.as_deref()) {
        Some(items) => shaped(item, Shape::of(items)),
        None => Ok(plain(item)),
    }
}

/// The items of a list, in order.
#[derive(Debug)]
pub struct ListItems<'a> {
    list: List<'a>,
    at: usize,
    /// The lists after `list`, in reverse order.
    later: Vec<List<'a>>,
}

impl ListItems<'_> {
    fn descend(&mut self) {
        while let List::Joined(joined) = &self.list {
            let joined = joined.clone();
            self.later.push(joined.second.clone());
            self.list = joined.first.clone();
        }
    }
}

impl<'a> Iterator for ListItems<'a> {
    type Item = Outcome<Value<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.list.get(self.at) {
                self.at += 1;
                return Some(item);
            }
            self.list = self.later.pop()?;
            self.at = 0;
            self.descend();
        }
    }
}
