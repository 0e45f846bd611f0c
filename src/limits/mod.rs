//! Every limit of the server, with its unit as the last word of its name: a file for each area.
//!
//! A constant here bounds every queue, cache, body, wait and interval, every number of workers and of attempts. A limit
//! of zero never means "unlimited". The limits hold for every request and every connection.
//!
//! Each other crate has a module `limits` for its own bounds; this module contains that of [`flotilla_objects`].
//! Numbers of other sorts stand elsewhere:
//!
//! - limits of the fields of the API, which Kubernetes validates, with the kind or rule, and how much a cell of a Table
//!   shows, with its column;
//! - defaults of flags with the flag, in [`crate::config`];
//! - sizes that a protocol, a format or a cipher fixes, and ranges of types, with the codec;
//! - numbers of Kubernetes' cost model of CEL, with the function that has the cost.
//!
//! `tests/tidy.rs` lists the files with such numbers, and finds bounds that stand elsewhere.

mod access;
mod admission;
mod aggregation;
mod answers;
mod audit;
mod connections;
mod console;
mod controllers;
mod encryption;
mod moving;
mod outbound;
mod overview;
mod pki;
mod registry;
mod requests;
mod running;
mod streams;
mod watch;

pub use access::*;
pub use admission::*;
pub use aggregation::*;
pub use answers::*;
pub use audit::*;
pub use connections::*;
pub use console::*;
pub use controllers::*;
pub use encryption::*;
pub use moving::*;
pub use outbound::*;
pub use overview::*;
pub use pki::*;
pub use registry::*;
pub use requests::*;
pub use running::*;
pub use streams::*;
pub use watch::*;

pub use flotilla_objects::limits::*;
