//! Validates objects against the schemas of their definitions.
//!
//! [`flotilla_proto::structural`] has the schemas. The errors are those of the reference, in the same order and words.
//! Where the reference visits members in random order, members of a schema are visited by name, and members of an
//! object in their own order.

mod alternatives;
pub mod check;
pub mod coerce;
pub mod correlate;
pub mod embedded;
pub mod format;
mod format_text;
pub mod lists;
mod number;
pub mod ratchet;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod validate;
