//! Computes the set of fields that a new value adds, for the writer to own them.
//!
//! Creating an object adds nearly all of its fields, and usually nobody reads the set before it is stored. The set is
//! therefore written as JSON text, and parsed only when it is read.

use std::cmp::Ordering;
use std::ops::Range;

use flotilla_proto::json;
use flotilla_proto::schema::List;
use flotilla_proto::value::{self, Map, Value};

use super::element::{self, ItemError};
use super::form::{Form, Members, Parts, items, members};

/// Returns the set below a new value: its members, its items, and everything below those.
///
/// # Errors
/// A list holds an item that has no identity.
pub fn added(form: Form<'_>, new: &Value) -> Result<Map, ItemError> {
    if is_one(form, new) {
        return Ok(Map::new());
    }
    let mut writer = FieldsWriter::default();
    writer.node(form, new)?;
    Ok(value::of_written(writer.out))
}

/// Returns whether a value has no elements below it.
fn is_one(form: Form<'_>, new: &Value) -> bool {
    match form.parts(new) {
        Parts::Leaf => true,
        Parts::Items(_) => items(Some(new)).is_empty(),
        Parts::Members => members(Some(new)).is_none(),
    }
}

/// Writes nodes. Members and items are collected on shared stacks for sorting. Each node uses the part of the stack
/// above that of the node that contains it.
#[derive(Default)]
struct FieldsWriter<'v, 't> {
    out: Vec<u8>,
    members: Vec<(&'v str, &'v Value, Form<'t>)>,
    items: Vec<(Range<usize>, &'v Value)>,
    /// The spellings of the items.
    spelled: Vec<u8>,
}

impl<'v, 't> FieldsWriter<'v, 't> {
    fn node(&mut self, form: Form<'t>, new: &'v Value) -> Result<(), ItemError> {
        let (members, items) = (members(Some(new)), items(Some(new)));
        match (form.parts(new), members) {
            (Parts::Items(list), _) if !items.is_empty() => self.items(list, items),
            (Parts::Members, Some(members)) => self.members(form, members),
            _ => {
                self.out.extend_from_slice(b"{}");
                Ok(())
            }
        }
    }

    fn members(&mut self, form: Form<'t>, of: &'v Map) -> Result<(), ItemError> {
        let (from, mut forms) = (self.members.len(), Members::of(form));
        self.members.extend(of.iter().map(|(key, value)| (key, value, forms.any(key))));
        self.members[from..].sort_unstable_by_key(|(key, ..)| *key);
        // The mark that makes the node itself a member comes first.
        self.out.extend_from_slice(b"{\".\":{}");
        for at in from..self.members.len() {
            let (key, value, form) = self.members[at];
            self.out.extend_from_slice(b",\"f:");
            json::write_within(key, &mut self.out);
            self.out.extend_from_slice(b"\":");
            self.node(form, value)?;
        }
        self.out.push(b'}');
        self.members.truncate(from);
        Ok(())
    }

    fn items(&mut self, list: &'t List, of: &'v [Value]) -> Result<(), ItemError> {
        let (form, from, unspelled) = (Form::of_shape(&list.item), self.items.len(), self.spelled.len());
        for item in of {
            let start = self.spelled.len();
            element::spell_item(list, item, &mut self.spelled)?;
            self.items.push((start..self.spelled.len(), item));
        }
        let (own, spelled) = (&mut self.items[from..], &self.spelled);
        own.sort_by(|(a, _), (b, _)| compare(&spelled[a.clone()], &spelled[b.clone()]));
        self.out.extend_from_slice(b"{\".\":{}");
        let (mut at, end) = (from, self.items.len());
        while at < end {
            let (element, item) = self.items[at].clone();
            let same = |(other, _): &&(Range<usize>, _)| self.spelled[other.clone()] == self.spelled[element.clone()];
            let count = self.items[at..end].iter().take_while(same).count();
            self.out.push(b',');
            json::write_str(text(&self.spelled[element]), &mut self.out);
            self.out.push(b':');
            match count {
                1 => self.node(form, item)?,
                // Items with the same identity are one element.
                _ => self.out.extend_from_slice(b"{}"),
            }
            at += count;
        }
        self.out.push(b'}');
        self.items.truncate(from);
        self.spelled.truncate(unspelled);
        Ok(())
    }
}

/// Returns the text. The JSON writer writes nothing but UTF-8.
fn text(spelled: &[u8]) -> &str {
    std::str::from_utf8(spelled).unwrap_or_default()
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    element::compare(text(a), text(b))
}
