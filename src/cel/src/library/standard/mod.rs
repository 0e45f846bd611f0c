//! The functions and operators that every environment has.

mod arithmetic;
mod comparison;
mod conversion;
mod conversions;
mod logic;
mod members;
mod text;
mod time;

use crate::cost::Cost;
use crate::error::Error;
use crate::functions::{Call, Library, Native, Overload, Since};
use crate::value::Value;

pub use conversion::{convert, duration_text, parse_duration, parse_timestamp};

/// Operators of logic, equality and presence.
pub static LOGIC: Library = Library { name: "standard", since: Since::Always, functions: logic::FUNCTIONS };
/// Operators of numbers, strings, lists and times.
pub static ARITHMETIC: Library = Library { name: "standard", since: Since::Always, functions: arithmetic::FUNCTIONS };
/// Operators of order.
pub static COMPARISON: Library = Library { name: "standard", since: Since::Always, functions: comparison::FUNCTIONS };
/// Membership, indexes, sizes.
pub static MEMBERS: Library = Library { name: "standard", since: Since::Always, functions: members::FUNCTIONS };
/// Conversions between types.
pub static CONVERSIONS: Library = Library { name: "standard", since: Since::Always, functions: conversions::FUNCTIONS };
/// Functions of strings.
pub static TEXT: Library = Library { name: "standard", since: Since::Always, functions: text::FUNCTIONS };
/// Functions of timestamps and durations.
pub static TIME: Library = Library { name: "standard", since: Since::Always, functions: time::FUNCTIONS };

const fn shared(id: &'static str, signature: &'static str, cost: Cost, call: Native) -> Overload {
    Overload { id, signature, cost, call: Call::Shared(call) }
}

const fn native(id: &'static str, signature: &'static str, cost: Cost, call: Native) -> Overload {
    Overload { id, signature, cost, call: Call::Native(call) }
}

const fn planned(id: &'static str, signature: &'static str, cost: Cost) -> Overload {
    Overload { id, signature, cost, call: Call::Planned }
}

/// Returns the error that the first operand's type has no such function.
fn no_function(name: &str, operand: Option<&Value<'_>>) -> Error {
    match operand {
        // Upstream has member functions of these types, so its message does not name the missing function.
        Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)) => Error::no_such_overload(),
        _ => Error::new(format!("no such overload: {name}")),
    }
}
