//! Reads and writes objects by the rules of Kubernetes.
//!
//! [`Registry`] holds what every operation needs. The steps of a write are: decoding, defaults, `managedFields`,
//! admission, the kind's own preparation, validation, store. Reads return stored bytes.

mod admit;
mod adopt;
mod allocation;
mod apply;
mod carry_over;
mod change;
mod claim_status;
mod collection;
mod continuation;
mod conversion;
mod convert;
mod converting;
mod create;
mod delete;
mod deletion_step;
mod encode;
mod grants;
mod list;
mod listing;
mod mutated;
mod options;
mod outside;
mod owners;
pub mod ownership;
mod patch;
mod precondition;
mod proof;
mod read;
mod replace;
mod revise;
pub mod services;
pub mod subresources;
pub mod type_meta;
mod unreadable;
mod unsafe_deletion;
mod update;
mod update_admission;

use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_cluster::{Draft, Expectation, Key, Mutation, Object, Outcome, Store, Table, Tenure, Write, WriteError};
use flotilla_proto::value::Value;

pub use adopt::adopt;
pub use allocation::{NodePorts, claimant, held_addresses};
pub use change::Change;
pub use create::{place, suffix, wipe};
pub use delete::{FOREGROUND, ORPHAN};
pub use encode::{
    mentions, metadata_alone, order_members, show_metadata, stored_part, stored_tree, stored_value, text as stored_text,
};
pub use list::{OneByOne, Page, UnreadPage, selects};
pub use listing::Listing;
pub use options::{DeleteOptions, FieldValidation, Propagation, WriteOptions};
pub use patch::PatchBody;

use crate::access::Authorizer;
use crate::admission::{Admission, Switches};
use crate::config::PortRange;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::served::{Resources, Served};
use crate::status::{ApiError, ApiResult};
pub use crate::wall_clock::timestamp as now;

/// The state that every operation on objects needs.
pub struct Registry {
    /// The replicated store.
    pub store: Store,
    /// The resources that are served.
    pub resources: Resources,
    /// The node ports of services.
    pub node_ports: NodePorts,
    /// Whether a controller creates the account `default` in each namespace. If so, pods are refused until it exists.
    pub accounts_are_made: bool,
    /// Which admission plugins are used. Must be set before the first write.
    pub plugins: Switches,
    /// Decides which users may do what.
    pub authorizer: Authorizer,
    /// Counts and times operations.
    pub metrics: Arc<Metrics>,
    /// Policies and webhooks that decide about writes.
    pub admission: Admission,
    /// Sends requests to other servers.
    pub outbound: Outbound,
    /// The connection settings for kubelets.
    pub kubelets: subresources::remote::Kubelets,
    /// Whether this server reaches Services at their endpoints rather than at their cluster address.
    pub routes_by_endpoints: bool,
    /// Shortest duration of a watch whose client states none; the longest is twice that. Zero for watches that last as
    /// long as their clients want.
    pub watch_time_min: Duration,
    unreadable: unreadable::Unreadable,
}

/// The object that an operation returns.
#[derive(Debug, Clone)]
pub enum Entity {
    /// The object as it is stored.
    Stored(Arc<Object>),
    /// An object in the version of the request that is not stored, or not in this form.
    Built(Value),
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The object after the write.
    pub entity: Entity,
    /// Whether it was created.
    pub created: bool,
    /// Whether the store made a write of it.
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

/// The resource or object that a request names.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The resource.
    pub served: &'a Served,
    /// Namespace; empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// Name; empty for creates.
    pub name: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    /// Creates a registry over a store. Services get node ports from the range.
    pub fn new(store: Store, node_ports: PortRange) -> Self {
        Self {
            store,
            resources: Resources::builtin(),
            node_ports: NodePorts::new(node_ports),
            accounts_are_made: false,
            plugins: Switches::default(),
            authorizer: Authorizer::default(),
            metrics: Arc::default(),
            admission: Admission::default(),
            outbound: Outbound::default(),
            kubelets: subresources::remote::Kubelets::default(),
            routes_by_endpoints: false,
            watch_time_min: Duration::ZERO,
            unreadable: unreadable::Unreadable::default(),
        }
    }

    /// Returns the table of a resource.
    pub fn table(&self, served: &Served) -> Arc<Table> {
        self.store.table(&served.table)
    }

    /// Returns the newest state of an object that this replica knows, without asking other replicas. Returns `None` if
    /// there is none.
    pub fn current(&self, served: &Served, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.table(served).get(served.key(namespace, name).as_str())
    }

    /// Stores a draft if the expectation holds.
    async fn put(&self, served: &Served, key: Key, expectation: Expectation, draft: Draft) -> ApiResult<Outcome> {
        self.write(Write { table: served.table.clone(), key, expectation, mutation: Mutation::Put(draft) }).await
    }

    fn write(&self, write: Write) -> impl Future<Output = ApiResult<Outcome>> + Send {
        self.write_from(write, None)
    }

    async fn write_from(&self, write: Write, tenure: Option<Tenure>) -> ApiResult<Outcome> {
        let operation = match (&write.mutation, &write.expectation) {
            (Mutation::Put(_), Expectation::Absent) => "create",
            (Mutation::Put(_), _) => "update",
            _ => "delete",
        };
        let (table, began) = (write.table.clone(), Instant::now());
        let written = self.store.write_from(write, tenure).await;
        self.metrics.stored(operation, table, began.elapsed());
        written.map_err(|error| write_failed(&error))
    }

    /// Decodes a stored object in the version of the request.
    pub fn shown(&self, served: &Served, object: &Object) -> ApiResult<Value> {
        convert::to_served(served, stored_value(object)?)
    }
}

/// Returns the error that a client gets when the store refuses a write.
fn write_failed(error: &WriteError) -> ApiError {
    match error {
        WriteError::TooLarge { .. } => {
            ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {error}"))
        }
        WriteError::NoSpace => ApiError::new(507, "InsufficientStorage", error.to_string()),
        // Only 504 tells the client that the write may have been made.
        WriteError::Unknown => ApiError::timeout(error.to_string(), 1),
        _ => ApiError::unavailable(error.to_string(), 1),
    }
}
