//! Taking node ports among several members: claimed before a service is written, given up when that write has ended.
//!
//! Whose conditional write of the claims succeeds has known every other claim. One that it did not find any more was
//! given up, and its service stored before or never: so who first reads the claims, then waits for all that was
//! acknowledged, and then reads the services knows every port that is taken.

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

use super::claims::{self, Claim, ClaimId, KEY, Sight, TABLE};
use super::taker::{Taken, Taker};
use super::{Decide, Owner};
use crate::limits;
use crate::registry::{Registry, write_failed};
use crate::status::{ApiError, ApiResult};

/// What this process knows of claims.
#[derive(Debug, Default)]
pub(super) struct Claiming {
    /// One write of the claims at a time: those of this process would only outrun each other.
    turn: tokio::sync::Mutex<()>,
    sight: Mutex<Sight>,
}

/// A claim of this process. It ends with this, unless the write that it is for has begun and may go on.
pub(super) struct Claimed {
    id: ClaimId,
    /// When it was not made yet.
    before: Duration,
    writing: AtomicBool,
    store: Store,
    claiming: Arc<Claiming>,
}

/// What came of an attempt to claim ports.
enum Attempt {
    /// They are claimed.
    Claimed(Taken),
    /// The claims changed meanwhile.
    Outrun,
    /// Another write has claimed a port that is asked for, as of a revision of the claims.
    Met(ApiError, Option<Revision>),
}

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Claimed {
    /// Makes sure that others regard the claim for as long as a write takes.
    ///
    /// # Errors
    /// 503 when this process may have stood still for so long that they do not.
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

/// Whether a claim that was made after `before` lasts for as long as a write takes.
fn lasts(before: Duration, now: Duration) -> bool {
    now.saturating_sub(before) <= limits::PORT_CLAIM_LIFETIME / 2
}

/// How long the machine is running, including when it was suspended: others were not.
fn running() -> Duration {
    let time = clock_gettime(Clock::Boottime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

impl Registry {
    /// Decides again what a write takes, now that it is known to take ports, and claims these.
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
                Attempt::Claimed(taken) => return Ok(taken),
                Attempt::Outrun => left -= 1,
                // Whether the other gets the port, or is refused, shows soon.
                Attempt::Met(refusal, since) => {
                    if !changed(&self.store, since, deadline).await {
                        return Err(refusal);
                    }
                }
            }
            *object = before.clone();
        }
        Err(ApiError::internal("failed to allocate a nodePort: others were faster each time"))
    }

    async fn try_claim(&self, owner: Owner<'_>, object: &mut Value, decide: &Decide<'_>) -> ApiResult<Attempt> {
        let claiming = &self.node_ports.claiming;
        let _turn = claiming.turn.lock().await;
        let read = current(&self.store);
        let revision = read.as_ref().map(|object| object.revision());
        let mut claims = claiming.in_force(read.as_deref())?;
        let services = self.services()?;
        self.catch_up_with(&services, owner.namespace, owner.name).await?;
        let table = self.table(&services);
        if table.groups().nth(1).is_some() {
            self.barrier(&table).await?;
        }
        if current(&self.store).map(|object| object.revision()) != revision {
            return Ok(Attempt::Outrun);
        }
        let ports = claims.iter().flat_map(|claim| claim.ports.iter().copied()).collect();
        let mut taker = Taker::new(self, false)?.beside(ports);
        let released = match decide(object, &mut taker) {
            Ok(released) => released,
            Err(refusal) if taker.has_met_claim() => return Ok(Attempt::Met(refusal, revision)),
            Err(refusal) => return Err(refusal),
        };
        let mut taken = taker.taken(released);
        let claimed = Claimed {
            id: rand::rng().random(),
            before: running(),
            writing: AtomicBool::new(false),
            store: self.store.clone(),
            claiming: Arc::clone(claiming),
        };
        let service = format!("{}/{}", owner.namespace, owner.name);
        claims.push(Claim { id: claimed.id, service, ports: taken.port_numbers() });
        match put(&self.store, revision, &claims).await {
            Ok(true) => {
                taken.claimed = Some(claimed);
                Ok(Attempt::Claimed(taken))
            }
            Ok(false) => Ok(Attempt::Outrun),
            Err(error) => Err(error), // it may have been made
        }
    }
}

/// The write that needed a claim has ended.
pub(super) fn end(claimed: Option<Claimed>) {
    if let Some(claimed) = claimed {
        claimed.writing.store(false, Ordering::Relaxed);
    }
}

impl Drop for Claimed {
    /// Takes the claim away, when nobody waits for that.
    fn drop(&mut self) {
        if self.writing.load(Ordering::Relaxed) {
            return;
        }
        let (store, claiming) = (self.store.clone(), Arc::clone(&self.claiming));
        claiming.sight.lock().end(self.id, Instant::now());
        let Ok(runtime) = Handle::try_current() else { return }; // the process ends
        runtime.spawn(async move {
            if let Err(error) = claiming.clear(&store).await {
                let error = error.message;
                tracing::warn!(error, "claims of node ports were not taken away; they will be with the next one");
            }
        });
    }
}

impl Claiming {
    /// The claims that are not void.
    fn in_force(&self, object: Option<&Object>) -> ApiResult<Vec<Claim>> {
        let all = object.map(claims::of).transpose()?.unwrap_or_default();
        Ok(self.sight.lock().in_force(all, Instant::now()))
    }

    /// Takes away all claims that are void.
    async fn clear(&self, store: &Store) -> ApiResult<()> {
        let _turn = self.turn.lock().await;
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let Some(object) = current(store) else { return Ok(()) };
            let claims = self.in_force(Some(&object))?;
            // Whoever had the turn before may have done it.
            if claims.len() == claims::of(&object)?.len() || put(store, Some(object.revision()), &claims).await? {
                return Ok(());
            }
        }
        Err(ApiError::internal("others were faster each time"))
    }
}

/// The object with the claims, as this member knows it.
fn current(store: &Store) -> Option<Arc<Object>> {
    store.table(&TableId::new(TABLE)).get(KEY)
}

/// Writes the claims, if they are still as of a revision; whether they were.
async fn put(store: &Store, revision: Option<Revision>, claims: &[Claim]) -> ApiResult<bool> {
    let expectation = revision.map_or(Expectation::Absent, Expectation::Revision);
    let mutation = Mutation::Put(claims::draft(claims));
    let write = Write { table: TableId::new(TABLE), key: Key::new(KEY), expectation, mutation };
    let outcome = store.write(write).await.map_err(|error| write_failed(&error))?;
    Ok(matches!(outcome, Outcome::Committed { .. }))
}

/// Waits until the claims are others than as of a revision; false when that takes too long.
async fn changed(store: &Store, since: Option<Revision>, deadline: Instant) -> bool {
    if Instant::now() >= deadline {
        return false; // although they may go on changing
    }
    let table = store.table(&TableId::new(TABLE));
    let Ok(mut changes) = table.subscribe(Interest::default(), since.unwrap_or_default()) else {
        return Instant::now() < deadline; // so many that the first are not kept any more
    };
    timeout_at(deadline, changes.changed()).await.is_ok()
}

#[cfg(test)]
#[path = "claiming_tests.rs"]
mod tests;
