//! Discovery: the documents that list the served resources for clients, at `/api`, `/apis`, `/version` and `/`; and the
//! health endpoints.
//!
//! Documents are encoded once per change of the set of resources ([`Documents::build`]), so that a request is a copy
//! of bytes. The gateway asks [`Documents::answer`], [`version::answer`] and [`health::Health::answer`].

mod aggregated;
mod answer;
mod documents;
pub mod health;
mod legacy;
mod priorities;
pub mod root;
mod served;
pub mod version;

pub use answer::{Answer, Body, Request};
pub use documents::Documents;
pub(crate) use documents::hash;
pub use priorities::{GroupVersionPriority, priorities};
pub use served::{CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY, Served, built_in};

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
