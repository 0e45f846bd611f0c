//! The Table representation: columns and cells of every kind.
//!
//! [`registry::printer`] returns the printer of a built-in resource, [`table::Table`] writes tables with it. The
//! columns are in the catalogue (`schema::Resource::columns`); the modules here compute the cells, one file per group
//! of related kinds. Custom resources have their own columns: [`custom::CustomTable`].

pub mod age;
pub mod custom;
pub mod jsonpath;
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
pub mod selector;
mod services;
mod storage;
mod workloads;

pub use config::name_and_creation;
pub use custom::CustomTable;
pub use registry::{CUSTOM_SCALE_COLUMNS, SCALE_COLUMNS, printer, subresource_printer};
pub use table::{Encoded, Includer, ListMeta, Printer, Rows, Table, Version};

#[cfg(test)]
mod custom_tests;
#[cfg(test)]
mod table_tests;
