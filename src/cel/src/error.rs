//! Errors of evaluation.

use std::borrow::Cow;

/// An error of evaluation, in cel-go's words. `&&`, `||` and `?:` may absorb any error but [`Error::CostLimit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The message of an operation or a function.
    #[error("{0}")]
    Text(Cow<'static, str>),
    /// The evaluation exceeded its cost limit, and was stopped.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
}

/// The result of an evaluation or a function.
pub type Outcome<T> = Result<T, Error>;

impl Error {
    /// Returns an error with this message.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the error that no overload accepts the arguments.
    pub const fn no_such_overload() -> Self {
        Self::Text(Cow::Borrowed("no such overload"))
    }

    /// Returns the error that a map or an object has no such key.
    pub fn no_such_key(key: impl std::fmt::Display) -> Self {
        Self::new(format!("no such key: {key}"))
    }
}
