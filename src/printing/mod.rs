//! The Table representation: columns and cells of every kind.
//!
//! [`registry::printer`] gives the printer of a built-in resource, [`table::Table`] writes tables with it. The columns
//! stand in the catalogue (`schema::Resource::columns`); here is what fills them, one file per group of nouns.

pub mod age;
pub mod registry;
pub mod table;

mod access;
mod admission;
mod autoscalers;
mod cell;
mod config;
mod devices;
mod events;
mod flow;
mod jobs;
mod networking;
mod nodes;
mod pods;
mod selector;
mod services;
mod storage;
mod workloads;

#[cfg(test)]
mod table_tests;

pub use config::name_and_creation;
pub use registry::printer;
pub use table::{Encoded, Includer, ListMeta, Printer, Rows, Table, Version};
