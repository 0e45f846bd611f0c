//! Objects: encoded bytes, with the facts that the store and its readers need without decoding them.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use bytes::Bytes;
use compact_str::CompactString;

use crate::{Key, Revision, chance};

/// Offsets in the bytes of an object, so that the server can answer without parsing them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    /// Offset of the 18 digits of the revision.
    pub revision_at: u32,
    /// Offset at which the type meta ends and the other fields begin. The store only keeps it.
    pub head: u32,
    /// Offsets of the value of `metadata`. The store only keeps them.
    pub metadata: Range<u32>,
}

impl Layout {
    /// Returns whether every offset lies within `length` bytes.
    pub(crate) fn fits(&self, length: usize) -> bool {
        self.revision_at as usize + Revision::DIGITS <= length
            && self.head as usize <= length
            && self.metadata.start <= self.metadata.end
            && self.metadata.end as usize <= length
    }
}

/// One index term: a name and its value.
pub type Term = (CompactString, CompactString);

/// The terms by which an object can be selected, besides its key: labels and selectable fields, each sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Terms {
    labels: Box<[Term]>,
    fields: Box<[Term]>,
}

impl Terms {
    /// Makes terms from pairs in any order. If a name has several values, the last one is kept.
    pub fn new(labels: Vec<Term>, fields: Vec<Term>) -> Terms {
        Terms { labels: sorted(labels), fields: sorted(fields) }
    }

    /// Returns all labels, sorted by name.
    pub fn labels(&self) -> &[Term] {
        &self.labels
    }

    /// Returns all selectable fields, sorted by name.
    pub fn fields(&self) -> &[Term] {
        &self.fields
    }

    /// Returns the value of a label; `None` when the object does not have it.
    pub fn label(&self, name: &str) -> Option<&str> {
        find(&self.labels, name)
    }

    /// Returns the value of a selectable field, such as `spec.nodeName`; `None` when the object does not have it.
    pub fn field(&self, name: &str) -> Option<&str> {
        find(&self.fields, name)
    }

    fn memory(&self) -> usize {
        let heap = |text: &CompactString| if text.is_heap_allocated() { text.len() } else { 0 };
        let each = |terms: &[Term]| {
            size_of_val(terms) + terms.iter().map(|(name, value)| heap(name) + heap(value)).sum::<usize>()
        };
        each(&self.labels) + each(&self.fields)
    }
}

fn sorted(mut terms: Vec<Term>) -> Box<[Term]> {
    terms.reverse(); // the stable sort then leaves the last of equal names first, which is the one that stays
    terms.sort_by(|a, b| a.0.cmp(&b.0));
    terms.dedup_by(|later, kept| later.0 == kept.0);
    terms.into()
}

fn find<'a>(terms: &'a [Term], name: &str) -> Option<&'a str> {
    let at = terms.binary_search_by(|(candidate, _)| candidate.as_str().cmp(name)).ok()?;
    Some(terms[at].1.as_str())
}

/// An encoded object to write, with room for the revision that the write will get.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The encoded object, with 18 placeholder bytes at `layout.revision_at`. The store takes this very buffer and
    /// writes the revision into it.
    pub bytes: Vec<u8>,
    /// Offsets in `bytes`.
    pub layout: Layout,
    /// The terms by which the object can be selected.
    pub terms: Terms,
    /// Whether the caller knows that the bytes can be decoded. This is not replicated.
    pub is_decodable: bool,
}

impl Draft {
    /// Writes `revision` into the bytes and returns the finished object. `None` when the layout does not fit the bytes
    /// or the revision does not have 18 digits.
    pub(crate) fn seal(mut self, key: Key, revision: Revision) -> Option<Object> {
        if !self.layout.fits(self.bytes.len())
            || !revision.write_digits(&mut self.bytes[self.layout.revision_at as usize..])
        {
            return None;
        }
        let bytes = Bytes::from(self.bytes.into_boxed_slice());
        Some(Object {
            key,
            revision,
            bytes,
            layout: self.layout,
            terms: self.terms,
            tombstone: false,
            write_id: None,
            derived_number: DerivedNumber::default(),
            decodable: if self.is_decodable { Decodable::of(true) } else { Decodable::default() },
        })
    }
}

/// One version of an object. Immutable, and shared by the table, the change log, and every reader.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    key: Key,
    revision: Revision,
    bytes: Bytes,
    layout: Layout,
    terms: Terms,
    tombstone: bool,
    write_id: Option<WriteId>,
    derived_number: DerivedNumber,
    decodable: Decodable,
}

/// A random id of one write, the same in every attempt to make it. When the answer to an attempt is lost, the id in the
/// history tells whether a change there was made by this write, or by another one with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteId(NonZeroU64);

impl WriteId {
    /// Draws a new id.
    pub(crate) fn draw() -> WriteId {
        WriteId(NonZeroU64::MIN.saturating_add(chance::number()))
    }

    /// Returns the id with a number; `None` for 0.
    pub(crate) fn numbered(number: u64) -> Option<WriteId> {
        NonZeroU64::new(number).map(WriteId)
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

/// A number that a reader derived from an object's bytes. It carries no state of its own, so it is neither compared nor
/// copied.
#[derive(Default)]
struct DerivedNumber(AtomicU32);

impl Clone for DerivedNumber {
    fn clone(&self) -> DerivedNumber {
        DerivedNumber::default()
    }
}

impl PartialEq for DerivedNumber {
    fn eq(&self, _: &DerivedNumber) -> bool {
        true
    }
}

impl Eq for DerivedNumber {}

/// Whether an object's bytes can be decoded, if known. It follows from the bytes, so it is not compared.
#[derive(Default)]
struct Decodable(AtomicU8);

impl Decodable {
    const YES: u8 = 1;
    const NO: u8 = 2;

    fn of(is_decodable: bool) -> Decodable {
        Decodable(AtomicU8::new(if is_decodable { Decodable::YES } else { Decodable::NO }))
    }
}

impl Clone for Decodable {
    fn clone(&self) -> Decodable {
        Decodable(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PartialEq for Decodable {
    fn eq(&self, _: &Decodable) -> bool {
        true
    }
}

impl Eq for Decodable {}

impl Object {
    /// Makes an object from its stored parts. The bytes already contain the revision.
    pub(crate) fn restored(key: Key, revision: Revision, bytes: Bytes, layout: Layout, terms: Terms) -> Object {
        let (derived_number, decodable) = (DerivedNumber::default(), Decodable::default());
        Object { key, revision, bytes, layout, terms, tombstone: false, write_id: None, derived_number, decodable }
    }

    /// Returns the last state of this object as a tombstone, with the revision of the deletion written into its bytes,
    /// and the id of the write that deleted it.
    pub(crate) fn buried(&self, revision: Revision, write_id: Option<WriteId>) -> Object {
        let mut bytes = self.bytes.to_vec();
        if let Some(digits) = bytes.get_mut(self.layout.revision_at as usize..) {
            revision.write_digits(digits);
        }
        let bytes = Bytes::from(bytes);
        let (key, layout, terms) = (self.key.clone(), self.layout.clone(), self.terms.clone());
        let (derived_number, decodable) = (DerivedNumber::default(), self.decodable.clone());
        Object { key, revision, bytes, layout, terms, tombstone: true, write_id, derived_number, decodable }
    }

    /// Returns the object with the id of the write that made it.
    pub(crate) fn made_by(self, write_id: Option<WriteId>) -> Object {
        Object { write_id, ..self }
    }

    /// Returns the id of the write that made this version. `None` when it is not known: the versions with which a
    /// snapshot begins have none.
    pub(crate) fn write_id(&self) -> Option<WriteId> {
        self.write_id
    }

    /// Returns the key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the revision of the write that made this version.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the encoded object, which contains its revision.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the offsets in the bytes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the encoded value of `metadata`; empty when the layout does not fit the bytes.
    pub fn metadata(&self) -> &[u8] {
        let Range { start, end } = self.layout.metadata;
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns the terms by which the object can be selected.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns whether this is the last state of a deleted object.
    pub fn is_tombstone(&self) -> bool {
        self.tombstone
    }

    /// Returns the number last passed to [`Object::keep_derived_number`]. `None` before that, after a restart, and when
    /// it was 0.
    pub fn derived_number(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.derived_number.0.load(Ordering::Relaxed))
    }

    /// Keeps a number that follows from the bytes alone and is slow to compute, such as their length in another
    /// encoding. There is room for one. The store does not read it.
    pub fn keep_derived_number(&self, number: u32) {
        self.derived_number.0.store(number, Ordering::Relaxed);
    }

    /// Returns whether the bytes can be decoded; `None` if this was not found out since they were read or written
    /// here.
    pub fn is_decodable(&self) -> Option<bool> {
        match self.decodable.0.load(Ordering::Relaxed) {
            0 => None,
            decodable => Some(decodable == Decodable::YES),
        }
    }

    /// Keeps whether the bytes can be decoded. The store does not read it.
    pub fn keep_decodable(&self, is_decodable: bool) {
        self.decodable.0.store(if is_decodable { Decodable::YES } else { Decodable::NO }, Ordering::Relaxed);
    }

    /// Returns roughly how much memory this version takes, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Object>() + self.key.as_str().len() + self.bytes.len() + self.terms.memory()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, revision) = (&self.key, self.revision);
        write!(f, "{key}@{revision}{}", if self.tombstone { " (deleted)" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_values_of_a_name_is_kept() {
        let terms = Terms::new(
            vec![("b".into(), "1".into()), ("a".into(), "2".into()), ("b".into(), "3".into())],
            vec![("spec.nodeName".into(), "n1".into())],
        );
        assert_eq!(terms.label("b"), Some("3"));
        assert_eq!(terms.label("a"), Some("2"));
        assert_eq!(terms.label("c"), None);
        assert_eq!(terms.field("spec.nodeName"), Some("n1"));
        assert_eq!(terms.labels().len(), 2);
    }

    #[test]
    fn the_revision_is_written_in_place() {
        let bytes = br#"{"rv":"000000000000000000"}"#.to_vec();
        let draft = Draft { bytes, layout: Layout { revision_at: 7, head: 1, metadata: 0..2 }, ..Draft::default() };
        let object = draft.clone().seal(Key::new("a"), Revision::FIRST).unwrap();
        assert_eq!(&object.bytes()[..], br#"{"rv":"100000000000000000"}"#);
        object.keep_derived_number(7);
        assert_eq!(object.derived_number().map(NonZeroU32::get), Some(7));
        assert_eq!(object.is_decodable(), None);
        object.keep_decodable(false);
        let tombstone = object.buried(Revision::FIRST.next(), None);
        assert_eq!(tombstone.is_decodable(), Some(false));
        assert_eq!(tombstone.derived_number(), None);
        assert_eq!(&tombstone.bytes()[..], br#"{"rv":"100000000000000001"}"#);
        assert!(tombstone.is_tombstone() && tombstone.revision() == Revision::FIRST.next());

        let beyond = Draft { layout: Layout { revision_at: 12, ..draft.layout.clone() }, ..draft };
        assert!(beyond.seal(Key::new("a"), Revision::FIRST).is_none());
    }
}
