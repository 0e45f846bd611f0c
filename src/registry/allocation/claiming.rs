//! Claims node ports among several members before a service is written, and gives the claims up when that write has
//! ended.
//!
//! One object holds all claims. A member writes it only if it is unchanged since the member read it. A successful
//! writer therefore knows every other claim. If the object lacks a claim, that claim was given up, and its service was
//! either stored before or will never be stored. A member therefore knows every taken port once it has read the claims,
//! then waited for all acknowledged writes, and then read the services.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flotilla_cluster::{Expectation, Interest, Key, Mutation, Object, Outcome, Revision, Store, TableId, Write};
use flotilla_proto::value::Value;
use parking_lot::Mutex;
use rand::Rng;
use rustix::time::{ClockId as Clock, clock_gettime};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use super::claims::{self, Claim, ClaimId, KEY, ObservedClaims, TABLE};
use super::taker::{Taken, Taker};
use super::{Decide, Owner};
use crate::limits;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::tables::write_failed;
use crate::tasks;

/// The claims that this process knows.
#[derive(Debug, Default)]
pub(super) struct Claiming {
    /// Lets this process make one write of the claims at a time, as concurrent ones would only conflict.
    turn: tokio::sync::Mutex<()>,
    sight: Mutex<ObservedClaims>,
}

/// A claim of this process. Dropping it ends the claim, unless the write has begun and its outcome is unknown.
pub(super) struct Claimed {
    id: ClaimId,
    /// A time before the claim was made.
    before: Duration,
    writing: AtomicBool,
    store: Store,
    claiming: Arc<Claiming>,
}

/// The outcome of an attempt to claim ports.
enum ClaimOutcome {
    /// They are claimed.
    Claimed(Taken),
    /// The claims changed meanwhile. The caller must repeat the attempt.
    Conflict,
    /// Another write has claimed a wanted port. Holds the refusal, and the revision of the claims at that time.
    ClaimedByOther(ApiError, Option<Revision>),
}

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Claimed {
    /// Makes sure that other members respect the claim for as long as a write takes.
    ///
    /// # Errors
    /// 503: so much time has passed since the claim, as after a pause, that other members may take the claim for
    /// expired.
    pub fn begin_writing(&self) -> ApiResult<()> {
        match lasts(self.before, running()) {
            true => {
                self.writing.store(true, Ordering::Relaxed);
                Ok(())
            }
            false => Err(ApiError::unavailable("the node ports of the service were claimed too long ago", 1)),
        }
    }
}

/// Returns whether a claim that was made after `before` lasts for as long as a write takes.
fn lasts(before: Duration, now: Duration) -> bool {
    now.saturating_sub(before) <= limits::PORT_CLAIM_LIFETIME / 2
}

/// Returns the time since the machine started. Counts time in suspension, since other members were running then.
fn running() -> Duration {
    let time = clock_gettime(Clock::Boottime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

impl Registry {
    /// Decides a write again, because it is now known to take ports, and claims these ports.
    pub(super) async fn claim_ports(
        &self,
        owner: Owner<'_>,
        object: &mut Value,
        decide: &Decide<'_>,
    ) -> ApiResult<Taken> {
        let (before, deadline) = (object.clone(), Instant::now() + limits::PORT_CLAIM_WAIT);
        let mut left = limits::CHANGE_ATTEMPTS;
        while left > 0 {
            match self.try_claim(owner, object, decide).await? {
                ClaimOutcome::Claimed(taken) => return Ok(taken),
                ClaimOutcome::Conflict => left -= 1,
                // The other write will soon either have the port or fail. Either changes the claims.
                ClaimOutcome::ClaimedByOther(refusal, since) => {
                    if !changed(&self.tables.store, since, deadline).await {
                        return Err(refusal);
                    }
                }
            }
            *object = before.clone();
        }
        Err(ApiError::internal("failed to allocate a nodePort: others were faster each time"))
    }

    async fn try_claim(&self, owner: Owner<'_>, object: &mut Value, decide: &Decide<'_>) -> ApiResult<ClaimOutcome> {
        let claiming = &self.node_ports.claiming;
        let _turn = claiming.turn.lock().await;
        let read = current(&self.tables.store);
        let revision = read.as_ref().map(|object| object.revision());
        let mut claims = claiming.in_force(read.as_deref())?;
        let services = self.services()?;
        self.tables.catch_up_with(&services, owner.namespace, owner.name).await?;
        let table = self.tables.table(&services);
        if table.groups().nth(1).is_some() {
            self.tables.barrier(&table).await?;
        }
        if current(&self.tables.store).map(|object| object.revision()) != revision {
            return Ok(ClaimOutcome::Conflict);
        }
        let ports = claims.iter().flat_map(|claim| claim.ports.iter().copied()).collect();
        let mut taker = Taker::new(self, false)?.beside(ports);
        let released = match decide(object, &mut taker) {
            Ok(released) => released,
            Err(refusal) if taker.has_met_claim() => return Ok(ClaimOutcome::ClaimedByOther(refusal, revision)),
            Err(refusal) => return Err(refusal),
        };
        let mut taken = taker.taken(released);
        let claimed = Claimed {
            id: rand::rng().random(),
            before: running(),
            writing: AtomicBool::new(false),
            store: self.tables.store.clone(),
            claiming: Arc::clone(claiming),
        };
        let service = format!("{}/{}", owner.namespace, owner.name);
        claims.push(Claim { id: claimed.id, service, ports: taken.port_numbers() });
        match put(&self.tables.store, revision, &claims).await {
            Ok(true) => {
                taken.claimed = Some(claimed);
                Ok(ClaimOutcome::Claimed(taken))
            }
            Ok(false) => Ok(ClaimOutcome::Conflict),
            Err(error) => Err(error), // the claim may have been written
        }
    }
}

/// Marks the write that needed a claim as ended. Dropping the claim then removes it.
pub(super) fn end(claimed: Option<Claimed>) {
    if let Some(claimed) = claimed {
        claimed.writing.store(false, Ordering::Relaxed);
    }
}

impl Drop for Claimed {
    /// Removes the claim in a task of its own, since no caller waits for it.
    fn drop(&mut self) {
        if self.writing.load(Ordering::Relaxed) {
            return;
        }
        let (store, claiming) = (self.store.clone(), Arc::clone(&self.claiming));
        claiming.sight.lock().end(self.id, Instant::now());
        let Ok(runtime) = Handle::try_current() else { return }; // no runtime: the process ends
        tasks::detached_on(&runtime, "claims", async move {
            if let Err(error) = claiming.clear(&store).await {
                let error = error.message;
                tracing::warn!(error, "cannot remove claims of node ports; the next claim will remove them");
            }
        });
    }
}

impl Claiming {
    /// Returns the claims of the object that are not void.
    fn in_force(&self, object: Option<&Object>) -> ApiResult<Vec<Claim>> {
        let all = object.map(claims::of).transpose()?.unwrap_or_default();
        Ok(self.sight.lock().in_force(all, Instant::now()))
    }

    /// Removes all void claims.
    async fn clear(&self, store: &Store) -> ApiResult<()> {
        let _turn = self.turn.lock().await;
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let Some(object) = current(store) else { return Ok(()) };
            let claims = self.in_force(Some(&object))?;
            // The task that held the lock before may have removed them.
            if claims.len() == claims::of(&object)?.len() || put(store, Some(object.revision()), &claims).await? {
                return Ok(());
            }
        }
        Err(ApiError::internal("others were faster each time"))
    }
}

/// Returns the object with the claims, as this member knows it.
fn current(store: &Store) -> Option<Arc<Object>> {
    store.table(&TableId::new(TABLE)).get(KEY)
}

/// Writes the claims if the object still has this revision. Returns whether it had this revision.
async fn put(store: &Store, revision: Option<Revision>, claims: &[Claim]) -> ApiResult<bool> {
    let expectation = revision.map_or(Expectation::Absent, Expectation::Revision);
    let mutation = Mutation::Put(claims::draft(claims));
    let write = Write { table: TableId::new(TABLE), key: Key::new(KEY), expectation, mutation };
    let outcome = store.write(write).await.map_err(|error| write_failed(&error))?;
    Ok(matches!(outcome, Outcome::Committed { .. }))
}

/// Waits until the claims differ from those of a revision. Returns false when the deadline passes.
async fn changed(store: &Store, since: Option<Revision>, deadline: Instant) -> bool {
    if Instant::now() >= deadline {
        return false; // the claims may change all the time
    }
    let table = store.table(&TableId::new(TABLE));
    let Ok(mut changes) = table.subscribe(Interest::default(), since.unwrap_or_default()) else {
        return Instant::now() < deadline; // the history no longer reaches back to `since`: the claims have changed
    };
    timeout_at(deadline, changes.changed()).await.is_ok()
}

#[cfg(test)]
#[path = "claiming_tests.rs"]
mod tests;
