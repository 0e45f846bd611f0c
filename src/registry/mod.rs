//! Reads and writes objects by the rules of Kubernetes.
//!
//! [`Registry`] holds the state that every operation needs. The steps of a write are: decoding, defaults,
//! `managedFields`, admission, the kind's own preparation, validation, store. Reads return stored bytes.

mod adopt;
mod allocation;
mod apply;
mod basis;
mod carry_over;
mod change;
mod claim_status;
mod collection;
mod continuation;
mod converted_page;
mod create;
mod delete;
mod deletion_step;
mod grants;
mod list;
mod listing;
pub mod ownership;
mod patch;
mod prerequisite;
mod proof;
mod replace;
pub mod subresources;
mod unsafe_deletion;
mod update;
mod update_admission;

use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

pub use adopt::adopt;
pub use allocation::{NodePorts, claimant, held_addresses};
pub use change::Change;
pub use delete::{FOREGROUND, ORPHAN};
pub use list::{OneByOne, Page, UnreadPage, selects};
pub use listing::Listing;
pub use patch::PatchBody;

use crate::admission::Admission;
use crate::config::PortRange;
use crate::request::{DeleteOptions, FieldValidation, WriteOptions};
use crate::served::Served;
use crate::tables::{
    Tables, Target, convert, encode, generate, owners, place, precondition, snapshot_at, stored_tree, stored_value,
    too_large, wipe,
};
pub use crate::wall_clock::timestamp as now;

/// The state that every operation on objects needs.
pub struct Registry {
    /// The stored objects, and the parts by which single objects are read and written.
    pub tables: Arc<Tables>,
    /// Decides which writes are allowed, and which changes they must get.
    pub admission: Admission,
    /// The node ports of services.
    pub node_ports: NodePorts,
    /// The connection settings for kubelets.
    pub kubelets: subresources::remote::Kubelets,
    /// Shortest duration of a watch whose client states none; the longest is twice that. Zero for watches that last as
    /// long as their clients want.
    pub watch_time_min: Duration,
}

/// The object that an operation returns.
#[derive(Debug, Clone)]
pub enum Entity {
    /// The object as it is stored.
    Stored(Arc<Object>),
    /// An object in the version of the request. It is not stored, or not in this form.
    Built(Value),
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The object after the write.
    pub entity: Entity,
    /// Whether it was created.
    pub created: bool,
    /// Whether the store made a write.
    pub stored: bool,
}

/// An object as a client sent it, decoded in the version of the request.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// The object.
    pub value: Value,
    /// Warnings about fields that were dropped.
    pub warnings: Vec<String>,
    /// Whether the client turns the tracking of field owners off.
    pub untracked: bool,
    /// Whether the object already has its defaults and field owners.
    pub owned: bool,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    /// Creates a registry over tables. Services get node ports from the range.
    pub fn new(tables: Tables, node_ports: PortRange) -> Self {
        let tables = Arc::new(tables);
        Self {
            admission: Admission::new(Arc::clone(&tables)),
            tables,
            node_ports: NodePorts::new(node_ports),
            kubelets: subresources::remote::Kubelets::default(),
            watch_time_min: Duration::ZERO,
        }
    }
}
