//! JSON text to [`Value`](crate::value::Value) and back, with Go's limits, escapes and error wordings.

mod outline;
mod parse;
pub(crate) mod pass;
pub(crate) mod scan;
mod write;

pub use outline::{Part, parse_part};
pub use parse::{DEPTH_MAX, Error, NESTING_MAX, Parsed, holds_abyss, parse, parse_tracking};
pub use write::{write, write_pretty, write_str, write_within};

/// The JSON text of a value.
pub fn to_vec(value: &crate::value::Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(value, &mut out);
    out
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
