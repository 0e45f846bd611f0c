//! Patterns that strings must match, in the syntax of Go's `regexp`.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, OnceLock};

use flotilla_golang::regexp::{Error, Regexp};
use parking_lot::RwLock;

use crate::limits::{PATTERN_KNOWN_BYTES_MAX, PATTERNS_KNOWN_MAX};
use crate::value::Str;

/// Valid patterns. Definitions repeat a few of them in very many fields, and to compile one takes as long as all other
/// checks of a field.
static KNOWN: LazyLock<RwLock<HashSet<Str>>> = LazyLock::new(RwLock::default);

fn remember(valid: &Str) {
    let mut known = KNOWN.write();
    if known.len() >= PATTERNS_KNOWN_MAX {
        known.clear();
    }
    known.insert(valid.clone());
}

/// A pattern that is compiled on first use.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Str,
    compiled: Arc<OnceLock<Result<Regexp, Error>>>,
}

impl Pattern {
    /// Makes a pattern from Go's syntax.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: Arc::default() }
    }

    /// Returns the pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns why the pattern is invalid, in Go's words. `None` for a valid one.
    pub fn fault(&self) -> Option<&Error> {
        if KNOWN.read().contains(&self.text) {
            return None;
        }
        let fault = self.compiled().as_ref().err();
        if fault.is_none() && self.text.len() <= PATTERN_KNOWN_BYTES_MAX {
            remember(&self.text);
        }
        fault
    }

    /// Returns whether a part of the text matches. Everything matches an invalid pattern: definitions with invalid
    /// patterns are refused, so this one was accepted by other rules than the present ones.
    pub fn matches(&self, text: &str) -> bool {
        self.compiled().as_ref().map_or(true, |regexp| regexp.is_match(text))
    }

    fn compiled(&self) -> &Result<Regexp, Error> {
        self.compiled.get_or_init(|| Regexp::new(&self.text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_pattern_matches_everything() {
        assert!(Pattern::new("^a$").matches("a"));
        assert!(!Pattern::new("^a$").matches("a\n"));
        let none = Pattern::new("(");
        assert_eq!(none.fault().unwrap().to_string(), "error parsing regexp: missing closing ): `(`");
        assert!(none.matches("anything"));
    }
}
