//! Strings of values.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A string, borrowed of a tree or a constant, or shared where an expression made it.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Of a tree or a constant.
    Borrowed(&'a str),
    /// Made by an expression.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
