//! Flotilla: a Kubernetes API server that needs no etcd.
//!
//! `ARCHITECTURE.md` describes the path of a request through the modules.
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` checks that.
//!
//! The modules of [`flotilla_objects`] lie below all of them, in a crate of their own: an edit of a kind is tested
//! without building the server.
//!
//! - Bounds: `limits`
//! - Facts and errors: `causes`, `wall_clock`, `version`, `unreadable`, `text_options`, `enablement`, `catalogued`,
//!   `embedded`, `large_pages`, `parent`, `terminal`, `type_meta`
//! - Configuration: `config`, `pki`
//! - Measurement: `prometheus`
//! - Tasks and connections: `turn`, `scan`, `follow`, `drain`, `unsent`, `transport`, `outbound`, `webhooks`
//! - The keys of stored data: `encryption`
//! - Resources: `custom`, `served`, `selector`
//! - Requests: `access`, `request`, `answer`, `streams`, `fairness`
//! - Auditing: `audit`
//! - Reports about the server and its API: `discovery`, `openapi`, `metrics`
//! - Stored objects: `tables`
//! - Admission: `admission`
//! - Reading and writing objects: `registry`
//! - Other API servers: `aggregation`
//! - Objects as clients see them: `representation`, `watch`
//! - Running a server and a cluster: `bootstrap`, `administration`, `overview`, `console`, `backup`, `flag_files`,
//!   `watchdog`, `boot`, `controllers`, `moving`
//! - HTTP: `gateway`
//! - Other ways to start the server: `etcd`, `kube_apiserver`
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start tasks of their own, and may block"))]

pub mod access;
pub mod administration;
pub mod admission;
pub mod aggregation;
pub mod answer;
pub mod audit;
pub mod backup;
pub mod boot;
pub mod bootstrap;
pub mod catalogued;
pub mod causes;
pub mod config;
pub mod console;
pub mod controllers;
pub mod custom;
pub mod discovery;
pub mod drain;
pub mod embedded;
pub mod enablement;
pub mod encryption;
pub mod etcd;
pub mod fairness;
pub mod flag_files;
pub mod follow;
pub mod gateway;
pub mod kube_apiserver;
pub mod large_pages;
pub mod limits;
pub mod metrics;
pub mod moving;
pub mod openapi;
pub mod outbound;
pub mod overview;
pub mod parent;
pub mod pki;
pub mod prometheus;
pub mod registry;
pub mod representation;
pub mod request;
pub mod scan;
#[cfg(test)]
mod scratch;
pub mod selector;
pub mod served;
pub mod streams;
pub mod tables;
pub mod terminal;
mod text_options;
pub mod transport;
pub mod turn;
pub mod type_meta;
pub mod unreadable;
pub mod unsent;
pub mod version;
pub mod wall_clock;
pub mod watch;
pub mod watchdog;
pub mod webhooks;

pub use flotilla_cluster::tasks;
pub use flotilla_objects::{
    api_version, expressions, field, fieldmanager, kinds, patch, printing, rules, schemas, status,
};
