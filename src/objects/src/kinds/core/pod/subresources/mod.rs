//! Subresources of pods. No module here does any I/O.
//!
//! `binding` and `eviction` decide about requests that carry an object of another kind. `ephemeral` and `resize` define
//! which fields of the pod a write to `ephemeralcontainers` or `resize` may change.

pub mod binding;
pub(super) mod ephemeral;
pub mod eviction;
pub(super) mod resize;
