//! Custom resources: how the server reads definitions, and validates, converts and shows the objects that they define.
//!
//! [`Definition`] holds a stored definition in the form that requests use, and [`Custom`] one of its versions;
//! [`follow`] keeps them up to date with the store. [`flotilla_proto::structural`] has the schemas. This module
//! validates objects by them, with the errors of the reference in the same order and words. Where the reference visits
//! members in random order, members of a schema are visited by name, and members of an object in their own order.
//!
//! # Steps of a write
//!
//! Decode, [`prune`](flotilla_proto::structural::prune), [`drop_nulls`](flotilla_proto::structural::drop_nulls),
//! [`coerce`](coerce::coerce) embedded objects, [`default`](flotilla_proto::structural::default()), then check
//! `metadata` as that of any object, and the object by [`validate::validate`], [`ratchet::validate_update`] or
//! [`ratchet::validate_status_update`], and last by its [`rules`] in CEL. The result of an apply skips the decoding
//! steps: it is only defaulted and checked.

pub mod check;
pub mod coerce;
pub mod correlate;
mod definition;
pub mod embedded;
mod follow;
pub mod format;
mod format_text;
mod grace_period;
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

/// The API group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The resource name of definitions.
pub const RESOURCE: &str = "customresourcedefinitions";

pub use definition::{Definition, ScalePaths, Version};
pub use follow::{Definitions, follow};
pub use grace_period::GracePeriod;
pub use resource::{LAST_VERBS, resource};
pub use served::Custom;
pub use strategy::{PLAIN, WITH_STATUS};
