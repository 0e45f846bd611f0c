//! Parses and formats text as Go's standard library does, where clients of Kubernetes can observe it.
//!
//! The reference passes text in definitions, expressions and webhooks to Go's parsers, and its error messages contain
//! theirs. [`regexp`] is for patterns, [`url`] for URLs, [`netip`] for IP addresses, [`strconv`] for numbers and quoted
//! text, and [`semver`], which is not of the standard library, for semantic versions. The crate does not depend on
//! Kubernetes, requests or storage.
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` of the workspace checks that.
//!
//! - `limits`, `strconv`, `regexp`, `netip`, `semver`, `url`

pub mod limits;
pub mod netip;
pub mod regexp;
pub mod semver;
pub mod strconv;
pub mod url;
