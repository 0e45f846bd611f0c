//! Custom resources: what their definitions say, and the rules that their objects follow.

pub mod conditions;
mod definition;
mod follow;
mod resource;
mod served;
mod strategy;
pub mod termination;
pub mod validate;

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their resource.
pub const RESOURCE: &str = "customresourcedefinitions";

pub use definition::{Definition, ScalePaths, Version};
pub use follow::{Definitions, follow};
pub use resource::{LAST_VERBS, resource};
pub use served::Custom;
pub use strategy::{PLAIN, WITH_STATUS};
