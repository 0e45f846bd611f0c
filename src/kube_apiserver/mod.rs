//! This server in the place of kube-apiserver: the same flags, with the same syntax.
//!
//! [`table`] states every flag, [`parse`] reads a command line, [`value`] knows what a flag takes, [`help`] shows the
//! flags, and [`translate`] says with which options of this server what is asked for is done.

pub mod gates;
pub mod help;
pub mod parse;
pub mod table;
pub mod translate;
pub mod value;

pub use help::{help, version};
pub use parse::{Given, Misuse, parse};
pub use translate::{Translation, translate};

#[cfg(test)]
#[path = "kube_apiserver_tests.rs"]
mod tests;
