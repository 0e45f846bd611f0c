//! Custom resources: what their definitions say, and the rules that their objects follow.
//!
//! [`Definition`] is what requests need of a stored definition, and [`Custom`] one of its versions; [`follow`] keeps
//! them as the store has them. Schemas are [`flotilla_proto::structural`]; here is what the reference's validation
//! makes of them, with the same errors in the same order and words. Where it visits members in random order, members of
//! the schema come sorted by name and members of the object in their own order.
//!
//! # What a write does
//!
//! Decode, [`prune`](flotilla_proto::structural::prune), [`drop_nulls`](flotilla_proto::structural::drop_nulls),
//! [`coerce`](coerce::coerce) embedded objects, [`default`](flotilla_proto::structural::default()), then check
//! `metadata` as of any object and [`validate::validate`], [`ratchet::validate_update`] or
//! [`ratchet::validate_status_update`], and last its [`rules`] in CEL. The outcome of an apply is not decoded: it is
//! defaulted and checked only.

pub mod check;
pub mod coerce;
pub mod correlate;
mod definition;
pub mod embedded;
mod follow;
pub mod format;
mod format_text;
mod life;
pub mod lists;
mod number;
pub mod ratchet;
mod resource;
pub mod rules;
mod served;
mod strategy;
pub mod termination;
#[cfg(test)]
mod tests;
pub mod validate;

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their resource.
pub const RESOURCE: &str = "customresourcedefinitions";

pub use definition::{Definition, ScalePaths, Version};
pub use follow::{Definitions, follow};
pub use life::Life;
pub use resource::{LAST_VERBS, resource};
pub use served::Custom;
pub use strategy::{PLAIN, WITH_STATUS};
