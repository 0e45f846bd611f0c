//! Webhooks: other servers that convert custom resources and that are asked about writes.
//!
//! [`Hook`] is where one is, and asks it; [`Users`] says as whom. [`conversion`] keeps what those answered that
//! convert; [`crate::admission`] knows what is asked about writes.

pub mod conversion;
mod hook;
pub mod typed;
mod users;

pub use hook::{CallError, Hook};
pub use users::{User, Users};
