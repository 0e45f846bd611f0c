//! YAML bodies and answers, by the rules of YAML 1.1 that Kubernetes follows.
//!
//! A body becomes a tree that JSON can express: keys become strings, maps are sorted, and only the first document
//! counts.

mod events;
mod parse;
mod plain_json;
mod scalar;
mod scan;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use parse::{Error, Parsed, parse};
pub use write::write;
