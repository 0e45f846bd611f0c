//! Helper functions for the tables.

use crate::cost::Cost;
use crate::error::{Error, Outcome};
use crate::functions::{Call, Native, Overload};
use crate::limits::MADE_TEXT_BYTES_MAX;
use crate::value::Value;

/// Returns an overload that a function of its arguments implements.
pub(super) const fn overload(id: &'static str, signature: &'static str, cost: Cost, call: Native) -> Overload {
    Overload { id, signature, cost, call: Call::Native(call) }
}

/// Returns the error of a call whose arguments do not fit its overload.
pub(super) fn unfit<'a>() -> Outcome<Value<'a>> {
    Err(Error::no_such_overload())
}

/// Returns a list of strings.
pub(super) fn strings<'a, T: Into<std::sync::Arc<str>>>(texts: impl IntoIterator<Item = T>) -> Value<'a> {
    Value::list(texts.into_iter().map(Value::string).collect())
}

/// Returns an error if a text of this many bytes would be too long.
pub(super) fn bounded(bytes: usize) -> Outcome<()> {
    if bytes > MADE_TEXT_BYTES_MAX { Err(Error::CostLimit) } else { Ok(()) }
}
