//! `flotilla kube-apiserver`: accepts the flags of kube-apiserver, with their syntax.
//!
//! [`table`] lists every flag, [`parse`] parses a command line, [`value`] checks the values of flags, [`help`] prints
//! the flags, and [`translate`] converts them to options of `flotilla serve`.

pub mod gates;
pub mod help;
pub mod parse;
pub mod table;
pub mod translate;
pub mod value;

pub use help::{help, version};
pub use parse::{Misuse, ParsedFlags, parse};
pub use translate::{Translation, translate};

#[cfg(test)]
#[path = "kube_apiserver_tests.rs"]
mod tests;
