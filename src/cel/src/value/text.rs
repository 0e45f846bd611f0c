//! Strings of values.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A string: borrowed from a tree or a constant, or shared if an expression created it.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// From a tree or a constant.
    Borrowed(&'a str),
    /// Created by an expression.
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
