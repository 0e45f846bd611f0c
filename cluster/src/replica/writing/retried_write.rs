//! Makes a write exactly once, although it may have to be attempted again after its outcome was lost.
//!
//! An expectation of a revision can hold only once, so at most one of several attempts changes anything. When an
//! attempt finds that it does not hold, the history tells whether an earlier attempt was made after all.
//!
//! The expectation that an object is absent can hold again, once another client has deleted the object that an earlier
//! attempt created. So before a create is attempted again, a probe is sent through the log: a write with the same id
//! that changes nothing. Once the probe has been applied, the earlier attempt is either in the history or is never
//! made.
//!
//! A write that finds its shard ended, because the table is being divided, waits until another shard takes writes of
//! the key.

use std::sync::Arc;

use tokio::time::Instant;

use crate::limits::{ATTEMPT_INTERVAL, ATTEMPTS_TIMEOUT, WRITE_TIMEOUT};
use crate::object::WriteId;
use crate::replica::asking::leader_client::{LeaderClient, WriteDecision};
use crate::replica::asking::write_messages::WriteRequest;
use crate::replica::groups::Groups;
use crate::table::WriteShard;
use crate::{Change, ChangeKind, Expectation, Mutation, Outcome, Revision, Table, Tenure, Write, WriteError};

/// One write, and the known facts about its attempts.
pub(crate) struct RetriedWrite<'a> {
    groups: &'a Groups,
    table: Arc<Table>,
    write: Write,
    /// The id of the write.
    write_id: WriteId,
    /// The number of attempts that were not answered.
    repeated: u32,
    /// The shard in which the write must be made.
    write_shard: WriteShard,
    /// The closed revision of the key's group before the first attempt.
    since: Revision,
    /// Whether an attempt that was not answered may have made the write.
    unknown: bool,
    /// The probe that must go through the log before the next attempt, if any.
    probe: Option<Write>,
}

impl<'a> RetriedWrite<'a> {
    pub(crate) fn new(groups: &'a Groups, table: Arc<Table>, write: Write) -> RetriedWrite<'a> {
        let write_shard = table.write_shard(write.key.as_str());
        let since = write_shard.clock.closed();
        let write_id = WriteId::draw();
        RetriedWrite { groups, table, write, write_id, repeated: 0, write_shard, since, unknown: false, probe: None }
    }

    /// Makes the write on whichever replica leads, and returns once it is decided.
    ///
    /// # Errors
    /// See [`WriteError`]; `Unknown` only when no leader could be asked for a long time.
    pub(crate) async fn make(mut self, bytes: usize, tenure: Option<Tenure>) -> Result<Outcome, WriteError> {
        let client = self.client()?;
        let _permit = client.waiting_writes().add(bytes).ok_or(WriteError::QueueFull)?;
        let deadline = Instant::now() + ATTEMPTS_TIMEOUT;
        loop {
            let decision = match self.client() {
                Ok(client) => client.write(&self.request(), tenure).await,
                Err(error) => Err(error),
            };
            match decision {
                Ok(decision) if self.probe.is_some() => {
                    self.outcome_once_applied(decision).await?;
                    if let Some(change) = self.find_earlier_change()? {
                        return Ok(committed(&change));
                    }
                    self.probe = None;
                }
                Ok(decision) => return self.outcome(decision).await,
                // A write that was decided in a tenure of the default group cannot be made in another group.
                Err(WriteError::Moved) if tenure.is_none() && Instant::now() < deadline => {
                    // In a box, since it is rarely needed.
                    let made = if self.unknown { Box::pin(self.find_change_after_catching_up()).await? } else { None };
                    if let Some(change) = made {
                        return Ok(self.promised_outcome(&change).await);
                    }
                    self.follow(deadline).await;
                }
                Err(WriteError::Unknown) if Instant::now() < deadline => {
                    self.note_lost_answer();
                    tokio::time::sleep(ATTEMPT_INTERVAL).await;
                }
                Err(WriteError::NotLeader { .. }) if self.unknown && tenure.is_some() => {
                    return Box::pin(self.outcome_in_past_term()).await; // hardly ever
                }
                Err(_) if self.unknown => return Err(WriteError::Unknown),
                Err(WriteError::Moved) if tenure.is_some() => return Err(WriteError::NotLeader { leader: None }),
                Err(WriteError::Moved) => return Err(WriteError::Unavailable),
                Err(error) => return Err(error),
            }
        }
    }

    /// Records that the outcome of an attempt is not known.
    fn note_lost_answer(&mut self) {
        (self.unknown, self.repeated) = (true, self.repeated + 1);
        if seeded!(DuplicateOnRetry) {
            self.write.expectation = self.present();
        } else {
            self.probe = probe(&self.write);
        }
    }

    /// Returns the outcome of an attempt in a term that is over: no leader can commit it any more, so it is in the log
    /// already or is never made.
    async fn outcome_in_past_term(&self) -> Result<Outcome, WriteError> {
        match self.find_change_after_catching_up().await? {
            Some(change) => Ok(self.promised_outcome(&change).await),
            None => Err(WriteError::NotLeader { leader: None }),
        }
    }

    /// Returns the outcome of a change. The leader that committed it may not have waited for the promises of the other
    /// members, so this waits for them first.
    async fn promised_outcome(&self, change: &Change) -> Outcome {
        if let Ok(client) = self.client() {
            client.node().promises().wait_promised(change.object().revision()).await;
        }
        committed(change)
    }

    /// Returns the change of an earlier attempt when no further attempt can be made in its group: its term is over, or
    /// its shard takes no writes. First catches up with that group, since this replica may lag behind in it.
    async fn find_change_after_catching_up(&self) -> Result<Option<Arc<Change>>, WriteError> {
        let client = self.client().map_err(|_| WriteError::Unknown)?;
        let index = client.read_index().await.map_err(|_| WriteError::Unknown)?;
        let reached = tokio::time::timeout(WRITE_TIMEOUT, client.node().reading().reached(index)).await;
        reached.map_err(|_| WriteError::Unknown)?.map_err(|_| WriteError::Unknown)?;
        self.find_earlier_change()
    }

    fn request(&self) -> WriteRequest<'_> {
        let shard = (self.write_shard.epoch, self.write_shard.shard);
        let write = self.probe.as_ref().unwrap_or(&self.write);
        WriteRequest { write, write_id: self.write_id, repeated: self.repeated, shard }
    }

    fn client(&self) -> Result<LeaderClient, WriteError> {
        let group = self.groups.get(self.write_shard.clock.name()).ok_or(WriteError::Unavailable)?;
        Ok(group.leader_client.clone())
    }

    /// Continues in the shard that takes writes of the key, as soon as that is another one.
    async fn follow(&mut self, deadline: Instant) {
        let key = self.write.key.as_str();
        let _ = tokio::time::timeout_at(deadline, self.table.moved(key, self.write_shard.epoch)).await;
        self.write_shard = self.table.write_shard(key);
        let closed = self.write_shard.clock.closed();
        // An earlier attempt is somewhere after the closed revision at which the first attempt began.
        self.since = if self.unknown { self.since.min(closed) } else { closed };
    }

    /// Returns the expectation that holds at present.
    fn present(&self) -> Expectation {
        let object = self.table.get(self.write.key.as_str());
        object.map_or(Expectation::Absent, |object| Expectation::Revision(object.revision()))
    }

    /// Returns the outcome of a decided write, once this replica has applied it.
    async fn outcome_once_applied(&self, decision: WriteDecision) -> Result<Outcome, WriteError> {
        match decision {
            WriteDecision::Here(outcome) => Ok(outcome),
            WriteDecision::Elsewhere { committed, closed } => self.outcome_here(committed, closed).await,
        }
    }

    /// Returns the final outcome of the write. A conflict is a success when an earlier attempt made the change.
    async fn outcome(&self, decision: WriteDecision) -> Result<Outcome, WriteError> {
        let outcome = self.outcome_once_applied(decision).await?;
        match outcome {
            Outcome::Conflict { .. } if self.unknown && !seeded!(LostAnswer) => match self.find_earlier_change()? {
                Some(change) => Ok(committed(&change)),
                None => Ok(outcome),
            },
            outcome => Ok(outcome),
        }
    }

    /// Returns the outcome of a write that was decided on another replica, once this replica has applied it.
    async fn outcome_here(&self, revision: Option<Revision>, closed: Revision) -> Result<Outcome, WriteError> {
        let key = self.write.key.as_str();
        let reached = tokio::time::timeout(WRITE_TIMEOUT, self.write_shard.clock.reached(closed)).await;
        reached.map_err(|_| WriteError::Unknown)?;
        match revision {
            None => Ok(Outcome::Conflict { current: self.table.get(key) }),
            Some(revision) => {
                self.table.change(key, revision).map(|change| committed(&change)).ok_or(WriteError::Unknown)
            }
        }
    }

    /// Returns the change that an earlier attempt made; `None` if none did.
    fn find_earlier_change(&self) -> Result<Option<Arc<Change>>, WriteError> {
        let changes = self.table.changes_beside(self.write.key.as_str(), self.since);
        let changes = changes.map_err(|_| WriteError::Unknown)?;
        Ok(changes.into_iter().find(|change| made(&self.write, self.write_id, change)))
    }
}

fn committed(change: &Change) -> Outcome {
    Outcome::Committed { object: change.object().clone(), previous: change.previous().cloned() }
}

/// Returns the probe for a write whose expectation may hold twice, and `None` for any other write. The probe changes
/// nothing wherever it is applied: no object has the revision that it expects.
fn probe(write: &Write) -> Option<Write> {
    let expectation = Expectation::Revision(Revision::new(1));
    let Write { table, key, .. } = write;
    let probe = || Write { table: table.clone(), key: key.clone(), expectation, mutation: Mutation::Delete };
    (write.expectation == Expectation::Absent).then(probe)
}

/// Returns whether this write made a change: another write may have changed the same version in the same way.
fn made(write: &Write, write_id: WriteId, change: &Change) -> bool {
    let is_alike = || {
        let before = change.previous().map(|previous| previous.revision());
        let expected = match write.expectation {
            Expectation::Absent => None,
            Expectation::Revision(revision) => Some(revision),
        };
        before == expected && matches!(write.mutation, Mutation::Delete) == (change.kind() == ChangeKind::Deleted)
    };
    change.object().write_id() == Some(write_id) || seeded!(ChangeOfAnother) && is_alike()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::SimulatedDisk;
    use crate::machine::Machine;
    use crate::{Draft, Key, Layout, Object, Options, Store, TableId};

    fn write(expectation: Expectation, byte: Option<u8>) -> Write {
        let put = |byte| Mutation::Put(Draft { bytes: vec![byte; 60], layout: Layout::default(), ..Draft::default() });
        let mutation = byte.map_or(Mutation::Delete, put);
        Write { table: TableId::new("pods"), key: Key::new("ns/a"), expectation, mutation }
    }

    /// Opens a store with one object in the table `pods`.
    async fn store() -> (Store, Arc<Table>, Arc<Object>) {
        let machine = Machine::with_disk(Arc::new(SimulatedDisk::default()));
        let store = Store::open_on(machine, None, Options::new("/store")).await.unwrap();
        let table = store.table(&TableId::new("pods"));
        store.write(write(Expectation::Absent, Some(b'0'))).await.unwrap();
        let object = table.get("ns/a").unwrap();
        (store, table, object)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn only_one_of_two_equal_writes_succeeds_even_if_its_answer_is_lost() {
        let (store, table, first) = store().await;
        for mutation in [Some(b'1'), None] {
            let expected = Expectation::Revision(table.get("ns/a").unwrap().revision());
            let (mut own, mut other) =
                (store.retried_write(write(expected, mutation)), store.retried_write(write(expected, mutation)));
            own.client().unwrap().write(&own.request(), None).await.unwrap();
            own.note_lost_answer();
            other.note_lost_answer();
            let conflict = other.make(60, None).await.unwrap();
            assert!(matches!(conflict, Outcome::Conflict { .. }), "{mutation:?}: {conflict:?}");
            let outcome = own.make(60, None).await.unwrap();
            assert!(matches!(&outcome, Outcome::Committed { object, .. } if object.revision() > first.revision()));
        }
        store.shutdown().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_create_is_not_repeated_after_another_client_deleted_its_object() {
        let (store, table, first) = store().await;
        store.write(write(Expectation::Revision(first.revision()), None)).await.unwrap();
        let mut retried = store.retried_write(write(Expectation::Absent, Some(b'0')));
        retried.client().unwrap().write(&retried.request(), None).await.unwrap();
        let made = table.get("ns/a").unwrap().revision();
        store.write(write(Expectation::Revision(made), None)).await.unwrap();
        retried.note_lost_answer();
        let outcome = retried.make(60, None).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed { object, .. } if object.revision() == made));
        assert!(table.get("ns/a").is_none());
        store.shutdown().await;
    }
}
