//! Patterns in the syntax of Go's `regexp` (RE2 with Perl's additions).
//!
//! The `regex` crate matches as Go does (leftmost-first, in linear time), but has another syntax. This module parses a
//! pattern by Go's rules, with Go's error messages, and writes it in the syntax of the `regex` crate without ambiguity:
//! with every class spelled out, every group without a number, and every flag at the place where it applies.

mod class;
mod error;
mod escape;
mod group;
mod parse;
mod tree;
mod unicode;
mod write;

use std::thread;

use regex::RegexBuilder;

pub use error::{Error, Fault};

use crate::limits::{COMPILED_BYTES_MAX, DEEP_STACK_BYTES, HEIGHT_MAX, SHALLOW_HEIGHT_MAX};

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Regexp {
    compiled: regex::Regex,
}

impl Regexp {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If Go would refuse the pattern, with Go's message, or if it takes too much memory.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let tree = parse::parse(pattern)?;
        let spelled = write::write(&tree);
        let compiled = if tree.height > SHALLOW_HEIGHT_MAX { compile_deep(&spelled) } else { compile(&spelled) };
        let compiled = compiled.ok_or_else(|| Error::new(Fault::Large, pattern))?;
        Ok(Self { compiled })
    }

    /// Checks a pattern without compiling it.
    ///
    /// # Errors
    /// If Go would refuse the pattern.
    pub fn check(pattern: &str) -> Result<(), Error> {
        parse::parse(pattern).map(|_| ())
    }

    /// Returns whether a part of the text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// Returns the first part of the text that matches; `None` if there is none.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.compiled.find(text).map(|found| found.as_str())
    }

    /// Returns the successive matches in the text, without empty ones directly after another.
    pub fn find_all<'r, 't>(&'r self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'r, 't> {
        self.compiled.find_iter(text).map(|found| found.as_str())
    }
}

/// Compiles a rewritten pattern. `None` if it is too large, the only possible reason.
fn compile(spelled: &str) -> Option<regex::Regex> {
    // Each level of the tree is written as a group and a repetition.
    let levels = 4 * (HEIGHT_MAX + 1);
    RegexBuilder::new(spelled).size_limit(COMPILED_BYTES_MAX).nest_limit(levels).build().ok()
}

/// Compiles a pattern of many levels on a thread with a large stack, since the `regex` crate recurses for each level.
fn compile_deep(spelled: &str) -> Option<regex::Regex> {
    let compiling = || compile(spelled);
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(DEEP_STACK_BYTES).spawn_scoped(scope, compiling).ok()?;
        thread.join().ok()?
    })
}

#[cfg(test)]
mod tests;
