//! Short forms for what the tables state.

use crate::cost::Cost;
use crate::error::{Error, Outcome};
use crate::functions::{Call, Native, Overload};
use crate::value::Value;

/// An overload that a function of its arguments implements.
pub(super) const fn overload(id: &'static str, signature: &'static str, cost: Cost, call: Native) -> Overload {
    Overload { id, signature, cost, call: Call::Native(call) }
}

/// What a call ends with whose arguments are not what its overload takes.
pub(super) fn unfit<'a>() -> Outcome<Value<'a>> {
    Err(Error::no_such_overload())
}

/// A list of strings.
pub(super) fn strings<'a, T: Into<std::sync::Arc<str>>>(texts: impl IntoIterator<Item = T>) -> Value<'a> {
    Value::list(texts.into_iter().map(Value::string).collect())
}

/// Most bytes of a text that a function makes. Costs count what a function reads, so that they do not bound what it
/// makes.
const MADE_BYTES: usize = 64 << 20;

/// The text, if it is not too long to be made.
pub(super) fn bounded(bytes: usize) -> Outcome<()> {
    if bytes > MADE_BYTES { Err(Error::CostLimit) } else { Ok(()) }
}
