//! Collects the audit annotations of policies.

use std::collections::HashSet;
use std::time::Duration;

use super::super::DynamicAttributes;
use crate::limits;

/// The result of an expression that makes an audit annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Annotation {
    /// An annotation: key and value.
    Value(String, String),
    /// The expression failed, and the policy does not ignore failures. Holds the error, and the duration of the
    /// evaluation.
    Failed(String, Duration),
}

/// The audit annotations of one policy through all of its bindings, each value once, up to
/// [`NOTICES_BYTES`](limits::NOTICES_BYTES).
#[derive(Debug, Default)]
pub struct Collected {
    /// Keys, each with its values joined. A policy has few.
    annotations: Vec<(String, String)>,
    /// The values that are already there, each with the position of its key in `annotations`.
    known: HashSet<(usize, String)>,
    bytes: usize,
}

impl Collected {
    /// Adds a value to a key unless the key has it already.
    pub fn add(&mut self, key: String, mut value: String) {
        if self.bytes >= limits::NOTICES_BYTES {
            return;
        }
        if value.len() > limits::POLICY_ANNOTATION_BYTES {
            let end = (0..=limits::POLICY_ANNOTATION_BYTES).rev().find(|end| value.is_char_boundary(*end));
            value.truncate(end.unwrap_or(0));
        }
        self.bytes += value.len() + size_of::<String>();
        let place = self.annotations.iter().position(|(own, _)| *own == key).unwrap_or(self.annotations.len());
        if !self.known.insert((place, value.clone())) {
            return;
        }
        match self.annotations.get_mut(place) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(&value);
            }
            None => self.annotations.push((key, value)),
        }
    }

    /// Passes all annotations to the audit log.
    pub fn tell(self, policy: &str, attributes: &DynamicAttributes<'_>) {
        for (key, values) in self.annotations {
            attributes.annotate(format!("{policy}/{key}"), values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_collected_once_and_bounded() {
        let mut collected = Collected::default();
        for value in ["x", "y", "x"] {
            collected.add("a".into(), value.into());
        }
        collected.add("b".into(), "x".into());
        assert_eq!(collected.annotations, [("a".into(), "x, y".into()), ("b".into(), "x".into())]);
        for number in 0..10_000 {
            collected.add("a".into(), format!("{number:01000}"));
        }
        assert!(collected.annotations[0].1.len() < limits::NOTICES_BYTES + 2 * limits::POLICY_ANNOTATION_BYTES);
    }
}
