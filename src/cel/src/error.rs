//! What an evaluation can end with instead of a value.

use std::borrow::Cow;

/// An error of evaluation, in cel-go's words. `&&`, `||` and `?:` may absorb it, but for [`Error::CostLimit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What an operation or a function said.
    #[error("{0}")]
    Text(Cow<'static, str>),
    /// The evaluation became dearer than its limit, and was stopped.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
}

/// What an evaluation or a function gives.
pub type Outcome<T> = Result<T, Error>;

impl Error {
    /// An error of these words.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// No overload takes these arguments.
    pub const fn no_such_overload() -> Self {
        Self::Text(Cow::Borrowed("no such overload"))
    }

    /// A map or an object has no such key.
    pub fn no_such_key(key: impl std::fmt::Display) -> Self {
        Self::new(format!("no such key: {key}"))
    }
}
