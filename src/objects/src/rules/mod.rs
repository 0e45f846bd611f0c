//! Rules that many kinds share: names, labels, metadata, quantities, certificates, conditions. Pure functions on trees.

pub mod addresses;
pub mod conditions;
mod conversion;
pub mod defaulting;
pub mod key_pair;
pub mod labels;
pub mod metadata;
pub mod names;
pub mod node_selector;
pub mod numbers;
pub mod plugins;
pub mod protection;
pub mod resources;
pub mod restore;
pub mod selector;
pub mod semantic;
pub mod shown;
mod strategy;

pub use conversion::Conversion;
pub use strategy::{Dependents, Generation, GraceSeconds, NameRule, Selectable, Strategy, Subresource, UpdateBasis};
