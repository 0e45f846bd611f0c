//! Stored objects: reads them, looks them up, encodes, converts and writes them, without the rules of their kinds and
//! without admission.
//!
//! [`Tables`] holds the store and the other parts by which single objects are read and written. `crate::admission`
//! reads it to decide, and `crate::registry` applies the rules of Kubernetes on top of both.

mod conversion;
pub mod convert;
mod converting;
pub mod encode;
mod group_version;
mod lookup;
mod mutated;
pub mod owners;
pub mod precondition;
mod preparation;
mod read;
mod revise;
pub mod services;
mod target;
mod unreadable;
mod write;

use std::sync::Arc;

use flotilla_cluster::{Object, Store, Table};
use flotilla_proto::value::Value;

pub use conversion::webhook_converts;
pub use encode::{
    mentions, metadata_alone, order_members, show_metadata, stored_part, stored_tree, stored_value, text as stored_text,
};
pub use group_version::{GroupVersionKind, GroupVersionResource, kind_of};
pub use preparation::{generate, place, suffix, wipe};
pub use read::{snapshot_at, too_large};
pub use target::Target;
pub use write::write_failed;

use crate::access::Authorizer;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::served::{Resources, Served};
use crate::status::ApiResult;

/// The stored objects, and the parts by which single objects are read and written.
pub struct Tables {
    /// The replicated store.
    pub store: Store,
    /// The resources that are served.
    pub resources: Resources,
    /// Decides about the permissions of users.
    pub authorizer: Authorizer,
    /// Counts and times operations.
    pub metrics: Arc<Metrics>,
    /// Sends requests to other servers.
    pub outbound: Outbound,
    /// Whether this server reaches Services at their endpoints rather than at their cluster address.
    pub routes_by_endpoints: bool,
    unreadable: unreadable::Unreadable,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl Tables {
    /// Returns the tables of a store, with the built-in resources.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            resources: Resources::builtin(),
            authorizer: Authorizer::default(),
            metrics: Arc::default(),
            outbound: Outbound::default(),
            routes_by_endpoints: false,
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

    /// Decodes a stored object in the version of the request.
    ///
    /// # Errors
    /// 500: it cannot be decoded, or cannot be shown in that version.
    pub fn shown(&self, served: &Served, object: &Object) -> ApiResult<Value> {
        convert::to_served(served, stored_value(object)?)
    }
}
