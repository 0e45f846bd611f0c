//! A small summary of an object's terms, so that a selection can skip most objects without loading them from memory.

use crate::{Term, Terms};

/// A set of terms that may seem to contain a term that it does not contain, but never the reverse: a Bloom filter, in
/// which a term sets two of 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermFilter(u128);

/// The separators between name and value of a label, and of a field.
const LABEL: &[u8] = b"=";
const FIELD: &[u8] = b":";

impl TermFilter {
    /// Returns the set of all terms of an object.
    pub(crate) fn of(terms: &Terms) -> TermFilter {
        let all = |terms: &[Term], filter: fn(&str, &str) -> TermFilter| {
            terms.iter().fold(0, |bits, (name, value)| bits | filter(name, value).0)
        };
        TermFilter(all(terms.labels(), TermFilter::label) | all(terms.fields(), TermFilter::field))
    }

    /// Returns the set of one label with its value.
    pub fn label(name: &str, value: &str) -> TermFilter {
        TermFilter::term(name, LABEL, value)
    }

    /// Returns the set of one selectable field with its value.
    pub fn field(name: &str, value: &str) -> TermFilter {
        TermFilter::term(name, FIELD, value)
    }

    fn term(name: &str, between: &[u8], value: &str) -> TermFilter {
        let hash =
            [name.as_bytes(), between, value.as_bytes()].iter().fold(0, |hash, part| crc32c::crc32c_append(hash, part));
        // The product's upper bits depend on all of the checksum's.
        let mixed = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        TermFilter(1 << (mixed >> 57) | 1 << (mixed >> 50 & 127))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub(crate) fn with(self, other: TermFilter) -> TermFilter {
        TermFilter(self.0 | other.0)
    }

    /// Returns whether this set may contain all terms of the other.
    pub(crate) fn may_have(self, other: TermFilter) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_terms_always_match_and_absent_ones_rarely() {
        let term = |n: usize| (format!("name-{}", n % 7).into(), format!("value-{n}").into());
        let mut seeming = 0;
        for n in 0..1_000 {
            let filter = TermFilter::of(&Terms::new((n..n + 6).map(term).collect(), (n..n + 6).map(term).collect()));
            for (name, value) in (n..n + 6).map(term) {
                assert!(
                    filter.may_have(TermFilter::label(&name, &value))
                        && filter.may_have(TermFilter::field(&name, &value))
                );
                seeming += usize::from(filter.may_have(TermFilter::label(&value, &name)));
                seeming += usize::from(filter.may_have(TermFilter::label("elsewhere", &value)));
            }
        }
        assert!(seeming < 12_000 / 15, "{seeming} of 12,000");
    }

    #[test]
    fn labels_and_fields_differ() {
        let labelled = TermFilter::of(&Terms::new(vec![("spec.nodeName".into(), "a".into())], Vec::new()));
        assert!(labelled.may_have(TermFilter::label("spec.nodeName", "a")));
        assert!(!labelled.may_have(TermFilter::field("spec.nodeName", "a")));
        assert!(labelled.may_have(TermFilter::default()) && !TermFilter::default().may_have(labelled));
    }
}
