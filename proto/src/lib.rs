//! Wire contracts: those of the Kubernetes API (the kinds, the tree that represents an object, and its encodings), and
//! those between replicas.
//!
//! Read in this order: [`value`], [`json`], [`schema`], [`catalogue`], [`protobuf`], [`structural`] for custom
//! resources, and for the replicas [`peer`], [`replication`].

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
