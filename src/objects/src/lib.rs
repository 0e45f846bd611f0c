//! Kubernetes objects: their kinds, the rules of their fields, schemas of custom resources, patches, owners of fields,
//! and printing.
//!
//! Functions here work on trees of objects ([`flotilla_proto::value::Value`]). They know neither requests
//! nor storage, and get the time from their callers. One setting is the same for the whole process:
//! [`kinds::core::capabilities`] says why.
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` checks that.
//!
//! - Facts, errors and bounds: `limits`, `api_version`, `field`, `status`
//! - Trees of objects: `patch`, `fieldmanager`, `printing`, `rules`
//! - Kinds: `schemas`, `expressions`, `kinds`

pub mod api_version;
pub mod expressions;
pub mod field;
pub mod fieldmanager;
pub mod kinds;
pub mod limits;
pub mod patch;
pub mod printing;
pub mod rules;
pub mod schemas;
pub mod status;
