//! What is a kind's own: defaults, what may change, which values are valid. Small pure functions, a file a kind.
//!
//! Everything that follows from the catalogue (types, merge rules, encoding) is not here.

pub mod labels;
pub mod metadata;
pub mod names;
mod strategy;

pub use strategy::{Generation, NameRule, Strategy};

/// The strategy of a resource; resources without rules of their own get [`Strategy::DEFAULT`].
pub fn strategy(group: &str, resource: &str) -> &'static Strategy {
    let _ = (group, resource);
    &Strategy::DEFAULT
}
