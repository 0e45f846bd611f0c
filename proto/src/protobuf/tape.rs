//! JSON text with an index of its values. A stored object becomes a message without any other form in between.

use std::borrow::Cow;

use super::source::Source;
use crate::json::scan;
use crate::limits::{INDEX_KEPT_VALUES_MAX, JSON_READ_DEPTH_MAX};

/// The path of the owned fields of an object. They are encoded as their text, so nothing in them is indexed.
const OWNED_FIELDS: [&str; 3] = ["metadata", "managedFields", "fieldsV1"];

/// Stands in the place of an id where there is no value.
const NONE: u32 = u32::MAX;

/// The index of one JSON text. Its memory is reused for the next text.
#[derive(Debug, Default)]
pub(super) struct TextIndex {
    entries: Vec<TapeEntry>,
    /// Containers that are not closed yet.
    open: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Scalar,
    /// A string without escapes.
    Plain,
    /// A string with escapes.
    Escaped,
    List,
    Object,
    /// A value of which only the text is needed.
    Raw,
}

#[derive(Debug, Clone, Copy)]
struct TapeEntry {
    kind: ValueKind,
    /// The start and the end of the value's text, quotes included.
    start: u32,
    end: u32,
    /// The last part of a container.
    last: u32,
    /// The part before this one in the same container.
    previous: u32,
    /// The key that precedes this value in an object.
    key: u32,
}

impl TextIndex {
    /// Indexes a text. `None` when it is not JSON, nests too deep or is longer than 4 GiB.
    pub(super) fn read<'t>(&'t mut self, text: &'t str) -> Option<Tape<'t>> {
        self.entries.clear();
        self.entries.shrink_to(INDEX_KEPT_VALUES_MAX);
        self.open.clear();
        u32::try_from(text.len()).ok()?;
        self.fill(text)?;
        Some(Tape { text, entries: &self.entries })
    }

    /// Returns whether a value with this key, in the innermost open container, is the one that [`OWNED_FIELDS`] names.
    fn is_owned_fields(&self, text: &str, key: u32) -> bool {
        let [_, metadata, list, entry] = self.open[..] else { return false };
        let is = |key: u32, name: &str| {
            self.entries
                .get(key as usize)
                .is_some_and(|key| text[key.start as usize..key.end as usize].trim_matches('"') == name)
        };
        let key_of = |id: u32| self.entries[id as usize].key;
        let [first, second, third] = OWNED_FIELDS;
        is(key, third) && key_of(entry) == NONE && is(key_of(list), second) && is(key_of(metadata), first)
    }

    fn fill(&mut self, text: &str) -> Option<()> {
        let mut cursor = Cursor { bytes: text.as_bytes(), at: 0 };
        let mut key = NONE;
        loop {
            let start = cursor.at_value()?;
            match cursor.bytes[start] {
                b'{' if self.is_owned_fields(text, key) => {
                    cursor.at = scan::value_end(cursor.bytes, start)?;
                    self.push(ValueKind::Raw, start, cursor.at, key)?;
                }
                open @ (b'{' | b'[') => {
                    let object = open == b'{';
                    let id =
                        self.push(if object { ValueKind::Object } else { ValueKind::List }, start, start + 1, key)?;
                    cursor.at = start + 1;
                    if cursor.peek()? != open + 2 {
                        if self.open.len() == JSON_READ_DEPTH_MAX {
                            return None;
                        }
                        self.open.push(id);
                        key = if object { self.key(&mut cursor)? } else { NONE };
                        continue;
                    }
                    cursor.at += 1;
                    self.entries[id as usize].end = cursor.at as u32;
                }
                b'"' => {
                    let kind = cursor.string()?;
                    self.push(kind, start, cursor.at, key)?;
                }
                _ => {
                    cursor.scalar();
                    if cursor.at == start {
                        return None;
                    }
                    self.push(ValueKind::Scalar, start, cursor.at, key)?;
                }
            }
            match self.next(&mut cursor)? {
                Next::Value(next) => key = next,
                Next::End => return cursor.peek().is_none().then_some(()),
            }
        }
    }

    /// Closes the containers that end after a value. Returns the part of the text that follows. `None` when the text is
    /// malformed.
    fn next(&mut self, cursor: &mut Cursor<'_>) -> Option<Next> {
        while let Some(&id) = self.open.last() {
            let object = self.entries[id as usize].kind == ValueKind::Object;
            match cursor.peek()? {
                b',' => {
                    cursor.at += 1;
                    return Some(Next::Value(if object { self.key(cursor)? } else { NONE }));
                }
                b'}' if object => {}
                b']' if !object => {}
                _ => return None,
            }
            cursor.at += 1;
            self.entries[id as usize].end = cursor.at as u32;
            self.open.pop();
        }
        Some(Next::End)
    }

    fn key(&mut self, cursor: &mut Cursor<'_>) -> Option<u32> {
        let start = cursor.at_value()?;
        if cursor.bytes[start] != b'"' {
            return None;
        }
        let kind = cursor.string()?;
        let id = self.entries.len() as u32;
        let (start, end) = (start as u32, cursor.at as u32);
        self.entries.push(TapeEntry { kind, start, end, last: NONE, previous: NONE, key: NONE });
        if cursor.peek()? != b':' {
            return None;
        }
        cursor.at += 1;
        Some(id)
    }

    fn push(&mut self, kind: ValueKind, start: usize, end: usize, key: u32) -> Option<u32> {
        let id = u32::try_from(self.entries.len()).ok()?;
        let mut previous = NONE;
        if let Some(&parent) = self.open.last() {
            previous = std::mem::replace(&mut self.entries[parent as usize].last, id);
        }
        self.entries.push(TapeEntry { kind, start: start as u32, end: end as u32, last: NONE, previous, key });
        Some(id)
    }
}

/// The part of the text that follows a value.
enum Next {
    /// Another value, with this key.
    Value(u32),
    /// The outermost value has ended.
    End,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Returns the next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn at_value(&mut self) -> Option<usize> {
        self.peek().map(|_| self.at)
    }

    /// Passes a string.
    fn string(&mut self) -> Option<ValueKind> {
        let (end, escapes) = scan::string_end(self.bytes, self.at)?;
        self.at = end;
        Some(if escapes { ValueKind::Escaped } else { ValueKind::Plain })
    }

    /// Passes a number, boolean or `null`.
    fn scalar(&mut self) {
        let rest = &self.bytes[self.at..];
        let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
    }
}

/// An indexed text.
pub(super) struct Tape<'t> {
    text: &'t str,
    entries: &'t [TapeEntry],
}

impl<'t> Tape<'t> {
    /// Returns the outermost value.
    pub(super) fn root(&'t self) -> IndexedValue<'t> {
        IndexedValue { tape: self, at: 0 }
    }
}

/// A value of an indexed text. It is small, because the members of every object are sorted into places.
#[derive(Clone, Copy)]
pub(super) struct IndexedValue<'t> {
    tape: &'t Tape<'t>,
    at: u32,
}

impl<'t> IndexedValue<'t> {
    fn entry(self) -> &'t TapeEntry {
        &self.tape.entries[self.at as usize]
    }

    fn raw(self) -> &'t str {
        let TapeEntry { start, end, .. } = *self.entry();
        &self.tape.text[start as usize..end as usize]
    }

    fn string(self) -> Option<Cow<'t, str>> {
        let raw = self.raw();
        match self.entry().kind {
            ValueKind::Plain => Some(Cow::Borrowed(&raw[1..raw.len() - 1])),
            ValueKind::Escaped => {
                let value = crate::json::parse(raw.as_bytes()).ok()?;
                value.as_str().map(|text| Cow::Owned(text.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the parts of a container of this kind, the last one first.
    fn parts(self, kind: ValueKind) -> impl Iterator<Item = IndexedValue<'t>> {
        let entry = self.entry();
        let mut at = if entry.kind == kind { entry.last } else { NONE };
        std::iter::from_fn(move || {
            let node = (at != NONE).then_some(IndexedValue { at, ..self })?;
            at = node.entry().previous;
            Some(node)
        })
    }
}

impl<'t> Source<'t> for IndexedValue<'t> {
    fn is_null(self) -> bool {
        self.entry().kind == ValueKind::Scalar && self.raw() == "null"
    }

    fn is_list(self) -> bool {
        self.entry().kind == ValueKind::List
    }

    fn truth(self) -> Option<bool> {
        self.raw().parse().ok()
    }

    fn int(self) -> Option<i64> {
        self.raw().parse().ok()
    }

    fn double(self) -> Option<f64> {
        self.raw().parse().ok()
    }

    fn text(self) -> Option<Cow<'t, str>> {
        self.string()
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.parts(ValueKind::List)
    }

    fn members(self) -> impl Iterator<Item = (Cow<'t, str>, Self)> {
        self.parts(ValueKind::Object).map(move |member| {
            let key = IndexedValue { at: member.entry().key, ..self };
            (key.string().unwrap_or_default(), member)
        })
    }

    fn json<'j>(self, _room: &'j mut Vec<u8>) -> &'j [u8]
    where
        't: 'j,
    {
        self.raw().as_bytes()
    }
}
