//! Webhooks: servers that convert custom resources, or that decide about writes.
//!
//! [`Hook`] has the address of a webhook and calls it. [`Users`] has the credentials that this server presents.
//! [`Backend`] is a webhook that a kubeconfig names, not an object of the API; [`persistence`] repeats calls to it
//! after the waits of a [`Backoff`], and [`answers`] keeps its answers. [`conversion`] keeps converted objects.
//! [`crate::admission`] has the webhooks that decide about writes.

pub mod answers;
mod backend;
mod backoff;
mod call_error;
pub mod conversion;
mod hook;
mod persistence;
mod review;
pub mod typed;
mod users;

pub use backend::Backend;
pub use backoff::Backoff;
pub use call_error::CallError;
pub use hook::Hook;
pub use persistence::Persistence;
pub use users::{User, Users};
