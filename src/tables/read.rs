//! Reads single objects, and waits until this replica is recent enough to read them.

use std::sync::Arc;

use flotilla_cluster::{Compacted, Object, Revision, Snapshot, SnapshotError, Table};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Tables;
use crate::limits;
use crate::request::query::parse_revision;
use crate::served::Served;
use crate::status::{ApiError, ApiResult, Cause, Details, TIMEOUT};

impl Tables {
    /// Returns an object that is as recent as `resourceVersion` demands (API concepts, "Resource versions", get).
    pub async fn get(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        revision: Option<&str>,
    ) -> ApiResult<Arc<Object>> {
        let (table, key) = (self.table(served), served.key(namespace, name));
        let object = match revision {
            None | Some("") => {
                let found = self.store.most_recent(&table, key.as_str()).await;
                found.map_err(|error| ApiError::unavailable(error.to_string(), 1))?
            }
            Some(text) => {
                match parse_revision(text).map_err(ApiError::unknown)? {
                    0 => {}
                    revision => self.reach(&table, revision).await?,
                }
                self.store.local(&table, key.as_str()).await
            }
        };
        object.ok_or_else(|| served.not_found(name))
    }

    /// Waits until local reads of the table see every write that was acknowledged before.
    pub async fn barrier(&self, table: &Table) -> ApiResult<()> {
        match self.store.barrier(table).await {
            Ok(_) => Ok(()),
            Err(error) => Err(ApiError::unavailable(error.to_string(), 1)),
        }
    }

    /// Waits until clients may name the revision of a table. The caller has passed [`Tables::barrier`].
    pub async fn renew_expired_revision(&self, table: &Table) -> ApiResult<()> {
        let renewed = self.store.renew_expired_revision(table).await;
        renewed.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Waits until local reads of all tables see every write that was acknowledged before, through any replica. Local
    /// reads may then decide the rest.
    pub async fn catch_up(&self) -> ApiResult<()> {
        self.store.catch_up().await.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Waits until local reads of one object, and of all tables that are not sharded, see every write that was
    /// acknowledged before. A decision about the object needs no more.
    pub async fn catch_up_with(&self, served: &Served, namespace: &str, name: &str) -> ApiResult<()> {
        let (table, key) = (self.table(served), served.key(namespace, name));
        let caught_up = self.store.catch_up_with(&table, key.as_str()).await;
        caught_up.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Waits until every group has promised to assign revisions above `revision`, so that a client that has seen
    /// it never receives a smaller one later.
    pub async fn wait_promised(&self, revision: Revision) -> ApiResult<()> {
        self.store.wait_promised(revision).await.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Returns a receiver that holds true while this replica does the work that only one replica should do.
    pub fn leadership(&self) -> watch::Receiver<bool> {
        self.store.leadership()
    }

    /// Waits until the table has reached a revision. Returns 504 when that takes too long.
    pub async fn reach(&self, table: &Table, revision: u64) -> ApiResult<()> {
        let deadline = Instant::now() + limits::REVISION_WAIT;
        match self.store.reach(table, Revision::new(revision), deadline).await {
            Ok(()) => Ok(()),
            Err(error) => Err(too_large(revision, error.current)),
        }
    }
}

/// Returns a snapshot of a table at a revision that a client named. Fails when the revision is older than the history
/// window, even if nothing has changed since.
pub fn snapshot_at(table: &Table, revision: Revision) -> Result<Snapshot, SnapshotError> {
    let floor = table.horizon();
    if revision < floor { Err(Compacted { floor }.into()) } else { table.snapshot_at(revision) }
}

/// Returns 504 for a revision that this replica has not reached.
pub fn too_large(revision: u64, current: Revision) -> ApiError {
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
    let message = format!("Timeout: Too large resource version: {revision}, current: {current}");
    ApiError { details: Some(Box::new(details)), ..ApiError::new(504, TIMEOUT, message) }
}
