//! Reading single objects, and what a read has to wait for.

use std::sync::Arc;

use flotilla_cluster::{Compacted, Object, Revision, Snapshot, SnapshotError, Table};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Registry, Served, Target};
use crate::limits;
use crate::request::Caller;
use crate::request::query::parse_revision;
use crate::status::{ApiError, ApiResult, Cause, Details, TIMEOUT};

impl Registry {
    /// An object, as recent as `resourceVersion` asks (API concepts, "Resource versions", get).
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

    /// Waits until local reads of any table see every write that was acknowledged before, through any replica: what
    /// follows may then be decided by what is here.
    pub async fn catch_up(&self) -> ApiResult<()> {
        self.store.catch_up().await.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Waits for the same of one object and of everything that few objects are of: what deciding about the object
    /// takes.
    pub async fn catch_up_with(&self, served: &Served, namespace: &str, name: &str) -> ApiResult<()> {
        let (table, key) = (self.table(served), served.key(namespace, name));
        let caught_up = self.store.catch_up_with(&table, key.as_str()).await;
        caught_up.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Waits until whoever is told of a revision gets larger ones from then on.
    pub async fn promised(&self, revision: Revision) -> ApiResult<()> {
        self.store.promised(revision).await.map_err(|error| ApiError::unavailable(error.to_string(), 1))
    }

    /// Whether a decision that no write has proved stands. `seen` is the state of the object that it was made on. Where
    /// what is known here may be behind ([`Caller::behind`]), this first waits until it is not.
    ///
    /// A write that is made proves the decision that led to it if that looked at nothing but the object: the store
    /// makes it only if the object is still the one that was seen. Refusals, writes that change nothing and dry runs
    /// prove nothing, so that they are told only of what was current when they were asked for.
    pub(super) async fn stands(
        &self,
        target: Target<'_>,
        seen: Option<&Object>,
        caller: &mut Caller,
    ) -> ApiResult<bool> {
        let seen = seen.map(Object::revision);
        if std::mem::take(&mut caller.behind) {
            self.catch_up_with(target.served, target.namespace, target.name).await?;
            let now = self.current(target.served, target.namespace, target.name);
            if now.map(|object| object.revision()) != seen {
                return Ok(false);
            }
        }
        if let Some(seen) = seen {
            self.promised(seen).await?;
        }
        Ok(true)
    }

    /// Whether what came of an attempt to change an object is to be told, rather than tried again upon a newer state.
    /// `seen` is the state that it was made on; of what is written, `stored` says whether the store made the write.
    pub(super) async fn is_final<T>(
        &self,
        target: Target<'_>,
        seen: &Object,
        tried: &ApiResult<Option<T>>,
        stored: fn(&T) -> bool,
        caller: &mut Caller,
    ) -> ApiResult<bool> {
        match tried {
            Ok(None) => Ok(false),
            Ok(Some(done)) if stored(done) => Ok(true),
            // What has become of the write is not known: trying again might refuse what was made.
            Err(error) if error.code >= 500 => Ok(true),
            _ => self.stands(target, Some(seen), caller).await,
        }
    }

    /// Whether this replica is the one to do what one of several should, now and from then on.
    pub fn leadership(&self) -> watch::Receiver<bool> {
        self.store.leadership()
    }

    /// Waits until the table has a revision; 504 when that takes too long.
    pub async fn reach(&self, table: &Table, revision: u64) -> ApiResult<()> {
        let deadline = Instant::now() + limits::REVISION_WAIT;
        match self.store.reach(table, Revision::new(revision), deadline).await {
            Ok(()) => Ok(()),
            Err(error) => Err(too_large(revision, error.current)),
        }
    }
}

/// A table as of a revision that a client has named: not when that is older than the history window, whether or not
/// anything has changed since.
pub(super) fn at(table: &Table, revision: Revision) -> Result<Snapshot, SnapshotError> {
    let floor = table.horizon();
    if revision < floor { Err(Compacted { floor }.into()) } else { table.snapshot_at(revision) }
}

/// 504 for a revision that the server has not reached.
pub(super) fn too_large(revision: u64, current: Revision) -> ApiError {
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
    let message = format!("Timeout: Too large resource version: {revision}, current: {current}");
    ApiError { details: Some(Box::new(details)), ..ApiError::new(504, TIMEOUT, message) }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
