//! Patterns that strings must match, in the syntax of Go's `regexp`.

use std::sync::{Arc, OnceLock};

use flotilla_golang::regexp::{Error, Regexp};

use crate::value::Str;

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

    /// Returns why the pattern is invalid, in Go's words; `None` for a valid one.
    pub fn fault(&self) -> Option<&Error> {
        self.compiled().as_ref().err()
    }

    /// Returns whether a part of the text matches. Everything matches an invalid pattern: definitions with invalid
    /// patterns are refused, so this one was accepted by other rules than ours.
    pub fn matches(&self, text: &str) -> bool {
        self.compiled().as_ref().map_or(true, |regexp| regexp.is_match(text))
    }

    fn compiled(&self) -> &Result<Regexp, Error> {
        self.compiled.get_or_init(|| Regexp::new(&self.text))
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
