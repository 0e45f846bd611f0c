//! Webhooks: servers that convert custom resources, or that decide about writes.
//!
//! [`Hook`] has the address of a webhook and calls it. [`Users`] has the credentials that this server presents.
//! [`conversion`] keeps converted objects. [`crate::admission`] has the webhooks that decide about writes.

pub mod conversion;
mod hook;
pub mod typed;
mod users;

pub use hook::{CallError, Hook};
pub use users::{User, Users};
