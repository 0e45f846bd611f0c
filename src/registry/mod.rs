//! Reading and writing objects by the rules of Kubernetes.
//!
//! [`Registry`] holds what every operation needs. A write goes: decode, defaults, `managedFields`, admission, the
//! kind's own preparation, validation, store. Reads hand out stored bytes.

mod admission;
mod adopt;
mod allocation;
mod apply;
mod carry_over;
mod collection;
mod continuation;
mod conversion;
mod convert;
mod converting;
mod create;
mod delete;
mod encode;
mod list;
mod listing;
mod mutated;
mod options;
mod owners;
pub mod ownership;
mod patch;
mod precondition;
mod read;
pub mod services;
pub mod subresources;
pub mod type_meta;
mod unreadable;
mod unsafe_deletion;
mod update;

use std::sync::Arc;
use std::time::Instant;

use flotilla_cluster::{Draft, Expectation, Key, Mutation, Object, Outcome, Store, Table, Tenure, Write, WriteError};
use flotilla_proto::value::Value;

pub use admission::plugins;
pub use adopt::adopt;
pub use allocation::{NodePorts, claimant, held_addresses};
pub use create::place;
pub use delete::{FOREGROUND, ORPHAN};
pub use encode::{
    mentions, metadata_alone, metadata_text, order_members, stored_part, stored_tree, stored_value, text as stored_text,
};
pub use list::{OneByOne, Page, selects};
pub use listing::Listing;
pub use options::{DeleteOptions, FieldValidation, Propagation, WriteOptions};
pub use patch::PatchBody;
pub use update::Change;

use crate::access::Authorizer;
use crate::admission::Admission;
use crate::config::PortRange;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::served::{Resources, Served};
use crate::status::{ApiError, ApiResult};
pub use crate::wall_clock::timestamp as now;

/// What every operation on objects needs.
pub struct Registry {
    /// Where objects are.
    pub store: Store,
    /// What is served.
    pub resources: Resources,
    /// Ports of services on every node.
    pub node_ports: NodePorts,
    /// Whether something gives each namespace its account `default`: then pods cannot do without.
    pub accounts_are_made: bool,
    /// Which admission plugins are used.
    pub plugins: plugins::Plugins,
    /// Decides who may do what.
    pub authorizer: Authorizer,
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// What is decided outside about writes.
    pub admission: Admission,
    /// Asks other servers.
    pub outbound: Outbound,
    /// How kubelets are reached.
    pub kubelets: subresources::remote::Kubelets,
    /// Whether Services are reached at their endpoints rather than at their cluster address.
    pub routes_by_endpoints: bool,
    unreadable: unreadable::Unreadable,
}

/// An object as an operation leaves it.
#[derive(Debug, Clone)]
pub enum Entity {
    /// As it is stored.
    Stored(Arc<Object>),
    /// In the version of the request, and not, or not so, in the store.
    Built(Value),
}

/// The outcome of a write: the object, whether it is new, and what the client is to be told besides.
#[derive(Debug)]
pub struct Written {
    /// The object.
    pub entity: Entity,
    /// Whether it was created.
    pub created: bool,
    /// Whether the store made a write of it.
    pub stored: bool,
}

/// An object as a client sends it, decoded in the version of the request.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// The object.
    pub value: Value,
    /// What is to be told of fields that were dropped.
    pub warnings: Vec<String>,
    /// Whether the client switches the tracking of field owners off.
    pub untracked: bool,
    /// Whether the object has its defaults and field owners already.
    pub owned: bool,
}

/// One write request.
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
    /// A registry over a store, whose services get node ports of a range.
    pub fn new(store: Store, node_ports: PortRange) -> Self {
        Self {
            store,
            resources: Resources::builtin(),
            node_ports: NodePorts::new(node_ports),
            accounts_are_made: false,
            plugins: plugins::Plugins::default(),
            authorizer: Authorizer::default(),
            metrics: Arc::default(),
            admission: Admission::default(),
            outbound: Outbound::default(),
            kubelets: subresources::remote::Kubelets::default(),
            routes_by_endpoints: false,
            unreadable: unreadable::Unreadable::default(),
        }
    }

    /// The table of a resource.
    pub fn table(&self, served: &Served) -> Arc<Table> {
        self.store.table(&served.table)
    }

    /// The newest state of an object that this server knows, without asking other replicas.
    pub fn current(&self, served: &Served, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.table(served).get(served.key(namespace, name).as_str())
    }

    /// Stores a draft; the caller says what must be there before.
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

    /// The tree of a stored object in the version of the request.
    pub fn shown(&self, served: &Served, object: &Object) -> ApiResult<Value> {
        convert::to_served(served, stored_value(object)?)
    }
}

/// What a client is told of a write that the store did not take.
fn write_failed(error: &WriteError) -> ApiError {
    match error {
        WriteError::TooLarge { .. } => {
            ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {error}"))
        }
        WriteError::NoSpace => ApiError::new(507, "InsufficientStorage", error.to_string()),
        // 504 and nothing else says that it may have been made.
        WriteError::Unknown => ApiError::timeout(error.to_string(), 1),
        _ => ApiError::unavailable(error.to_string(), 1),
    }
}
