//! A small summary of an object's terms, so that a selection can skip most objects without loading them from memory.

use crate::{Term, Terms};

/// A set of terms that may seem to contain a term that it does not contain, but never the reverse: a Bloom filter, in
/// which a term sets two of 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u128);

/// The separators between name and value of a label, and of a field.
const LABEL: &[u8] = b"=";
const FIELD: &[u8] = b":";

impl Marks {
    /// Returns all terms of an object.
    pub(crate) fn of(terms: &Terms) -> Marks {
        let all = |terms: &[Term], mark: fn(&str, &str) -> Marks| {
            terms.iter().fold(0, |marks, (name, value)| marks | mark(name, value).0)
        };
        Marks(all(terms.labels(), Marks::label) | all(terms.fields(), Marks::field))
    }

    /// Returns the set of one label with its value.
    pub fn label(name: &str, value: &str) -> Marks {
        Marks::term(name, LABEL, value)
    }

    /// Returns the set of one selectable field with its value.
    pub fn field(name: &str, value: &str) -> Marks {
        Marks::term(name, FIELD, value)
    }

    fn term(name: &str, between: &[u8], value: &str) -> Marks {
        let hash =
            [name.as_bytes(), between, value.as_bytes()].iter().fold(0, |hash, part| crc32c::crc32c_append(hash, part));
        // The product's upper bits depend on all of the checksum's.
        let mixed = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Marks(1 << (mixed >> 57) | 1 << (mixed >> 50 & 127))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub(crate) fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// Returns whether this set may contain all terms of the other.
    pub(crate) fn may_have(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_are_there_are_never_missed_and_others_mostly() {
        let term = |n: usize| (format!("name-{}", n % 7).into(), format!("value-{n}").into());
        let mut seeming = 0;
        for n in 0..1_000 {
            let marks = Marks::of(&Terms::new((n..n + 6).map(term).collect(), (n..n + 6).map(term).collect()));
            for (name, value) in (n..n + 6).map(term) {
                assert!(marks.may_have(Marks::label(&name, &value)) && marks.may_have(Marks::field(&name, &value)));
                seeming += usize::from(marks.may_have(Marks::label(&value, &name)));
                seeming += usize::from(marks.may_have(Marks::label("elsewhere", &value)));
            }
        }
        assert!(seeming < 12_000 / 15, "{seeming} of 12,000");
    }

    #[test]
    fn labels_and_fields_are_told_apart() {
        let labelled = Marks::of(&Terms::new(vec![("spec.nodeName".into(), "a".into())], Vec::new()));
        assert!(labelled.may_have(Marks::label("spec.nodeName", "a")));
        assert!(!labelled.may_have(Marks::field("spec.nodeName", "a")));
        assert!(labelled.may_have(Marks::default()) && !Marks::default().may_have(labelled));
    }
}
