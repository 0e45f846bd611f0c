//! JSON text to [`Value`](crate::value::Value) and back, with Go's limits, escapes and error wordings.

mod check;
mod outline;
mod parse;
pub(crate) mod pass;
mod raw;
pub(crate) mod scan;
pub mod strict;
mod write;

pub use check::check;
pub use outline::{Part, parse_part};
pub use parse::{Error, Parsed, parse, parse_tracking};
pub use raw::members_of_items;
pub use write::{to_vec_as_stated, write, write_indented, write_pretty, write_str, write_within};

/// Returns the compact JSON text of a value.
pub fn to_vec(value: &crate::value::Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(value, &mut out);
    out
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
