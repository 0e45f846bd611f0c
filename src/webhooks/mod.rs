//! Webhooks: other servers that convert custom resources and that are asked about writes.
//!
//! [`Hook`] is where one is, and asks it; [`conversion`] says what is asked of those that convert, [`admission`] what
//! of those that judge writes.

pub mod admission;
pub mod conversion;
mod hook;
mod typed;

pub use hook::{CallError, Hook};
