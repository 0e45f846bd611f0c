//! Wire contracts of the Kubernetes API: what kinds there are, the tree that an object is, and its encodings.
//!
//! Read in this order: [`value`], [`json`], [`schema`], [`catalogue`], [`protobuf`]. What replicas say to each other is in
//! [`peer`].

mod base64;
pub mod catalogue;
pub mod conform;
pub mod duration;
pub mod json;
pub mod order;
pub mod peer;
pub mod protobuf;
pub mod quantity;
pub mod schema;
pub mod time;
pub mod value;
pub mod yaml;
