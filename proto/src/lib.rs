//! Wire contracts of the Kubernetes API: what kinds there are, the tree that an object is, and its encodings.
//!
//! Read in this order: [`value`], [`json`], [`schema`].

pub mod json;
pub mod schema;
pub mod value;
