//! Patterns that strings must match, in the syntax of Go's `regexp`.

use std::sync::{Arc, OnceLock};

use flotilla_golang::regexp::{Error, Regexp};

use crate::value::Str;

/// A pattern that is compiled when it is first asked for.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Str,
    compiled: Arc<OnceLock<Result<Regexp, Error>>>,
}

impl Pattern {
    /// A pattern in Go's syntax.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: Arc::default() }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why the pattern is none, in Go's words; `None` for one that is valid.
    pub fn fault(&self) -> Option<&Error> {
        self.compiled().as_ref().err()
    }

    /// Whether a part of the text matches. Everything matches a pattern that is none: definitions with such patterns
    /// are refused, so that this one was accepted by other rules than ours.
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
    fn a_pattern_that_is_none_matches_everything() {
        assert!(Pattern::new("^a$").matches("a"));
        assert!(!Pattern::new("^a$").matches("a\n"));
        let none = Pattern::new("(");
        assert_eq!(none.fault().unwrap().to_string(), "error parsing regexp: missing closing ): `(`");
        assert!(none.matches("anything"));
    }
}
