//! The Table representation: columns and cells of every kind.
//!
//! The strategy of a kind names its printer, and [`table::Table`] writes tables with that. The columns are in the
//! catalogue (`schema::Resource::columns`); the modules here compute the cells, one file per group of related kinds.
//! Custom resources have their own columns: [`custom::CustomTable`].

pub mod access;
pub mod admission;
pub mod age;
pub mod autoscalers;
mod cell;
pub mod config;
pub mod custom;
pub mod devices;
pub mod events;
pub mod flow;
pub mod jobs;
pub mod jsonpath;
pub mod networking;
pub mod nodes;
pub mod pods;
mod scale;
pub mod selector;
pub mod services;
pub mod storage;
pub mod table;
pub mod workloads;

pub use config::{PLAIN, name_and_creation};
pub use custom::CustomTable;
pub use scale::{CUSTOM_SCALE_COLUMNS, SCALE_COLUMNS};
pub use table::{Encoded, Includer, ListMeta, Printer, Rows, Table, Version};

#[cfg(test)]
mod custom_tests;
#[cfg(test)]
mod table_tests;
