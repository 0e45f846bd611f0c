//! Custom resources: reads their definitions, and validates, converts and shows their objects.
//!
//! [`Definition`] holds a stored definition in the form that requests use, and [`Custom`] one of its versions;
//! [`follow`] keeps them up to date with the store. [`crate::schemas`] validates objects by the schemas of definitions.
//!
//! # Steps of a write
//!
//! Decode, [`prune`](flotilla_proto::structural::prune), [`drop_nulls`](flotilla_proto::structural::drop_nulls),
//! [`coerce`](crate::schemas::coerce::coerce) embedded objects, [`default`](flotilla_proto::structural::default()),
//! then check `metadata` as in any object, and the object by [`validate`](crate::schemas::validate::validate),
//! [`validate_update`](crate::schemas::ratchet::validate_update) or
//! [`validate_status_update`](crate::schemas::ratchet::validate_status_update), and last by its
//! [`rules`](crate::schemas::rules) in CEL. The result of an apply skips the decoding steps: it is only defaulted and
//! checked. A stored object is read by the present schema of its version: pruned, defaulted, and freed of nulls that
//! the schema does not allow.

mod definition;
mod follow;
mod grace_period;
mod replicas;
mod resource;
mod served;
mod strategy;
pub mod termination;

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
