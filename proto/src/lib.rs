//! Wire contracts: those of the Kubernetes API (the kinds, the tree that represents an object, and its encodings), and
//! those between replicas.
//!
//! Read in this order: [`value`], [`json`], [`schema`], [`catalogue`], [`protobuf`], [`structural`] for custom
//! resources, and for the replicas [`peer`], [`replication`].
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` of the workspace checks that.
//!
//! - Bounds: `limits`
//! - Between replicas: `peer`, `replication`
//! - Texts of their own: `base64`, `names`, `quantity`, `time`, `duration`, `complaints`
//! - Types and kinds: `schema`, `catalogue`
//! - Trees that are read from text when they are needed, and the text, each asking the other: `value`, `json`
//! - Another form of that text: `yaml`
//! - Trees of a type: `conform`, `order`, `structural`, `protobuf`

mod base64;
pub mod catalogue;
pub mod complaints;
pub mod conform;
pub mod duration;
pub mod json;
pub mod limits;
pub mod names;
pub mod order;
pub mod peer;
pub mod protobuf;
pub mod quantity;
pub mod replication;
pub mod schema;
pub mod structural;
pub mod time;
pub mod value;
pub mod yaml;
