//! Writers: they create, update and delete, expecting that the state that they know is still the present one.

use futures_util::future::join;

use super::super::changes::is_member;
use super::super::draw;
use super::super::history::{Get, Intent, Key, Seen, Table, Write, WriteOutcome};
use super::super::host::RequestError;
use super::{Traffic, objects};
use crate::{Expectation, Mutation, Outcome, Revision, WriteError};

/// One write in this many has a rival that knows the same state and writes through another host at the same time, as
/// controllers do that watch the same objects.
const RIVALS_ONE_IN: u64 = 3;
/// One pair of rivals in this many writes the same value, as two clients that count do: only one of them can succeed.
const TWINS_ONE_IN: u64 = 2;

/// Writes to random keys of a table until the traffic ends.
pub(super) async fn write(traffic: Traffic, table: Table) {
    while !traffic.is_over.get() {
        let (host, key) = (traffic.anywhere(), objects::any_key(table));
        if draw::once_in(3) {
            traffic.look(host, &key).await;
        }
        let (deletes, value) = (draw::once_in(4), traffic.value());
        match draw::once_in(RIVALS_ONE_IN) {
            true => {
                let (rival, is_twin) = (traffic.anywhere(), traffic.knows(&key) && draw::once_in(TWINS_ONE_IN));
                let other = if is_twin { value } else { traffic.value() };
                join(traffic.change(host, &key, deletes, value), traffic.change(rival, &key, deletes, other)).await;
            }
            false => traffic.change(host, &key, deletes, value).await,
        }
        traffic.rest(1..40).await;
    }
}

/// Describes an answer in a few words.
fn describe(answer: &Result<Result<Outcome, WriteError>, RequestError>) -> String {
    match answer {
        Ok(Ok(Outcome::Committed { object, .. })) => format!("committed at {}", object.revision()),
        Ok(Ok(Outcome::Conflict { current })) => {
            format!("in conflict with {:?}", current.as_ref().map(|object| object.revision()))
        }
        Ok(Err(error)) => format!("{error:?}"),
        Err(gone) => format!("{gone:?}"),
    }
}

impl Traffic {
    /// Learns the present state of a key.
    async fn look(&self, host: usize, key: &Key) {
        let found = self.get(host, key, true).await;
        if let Some(found) = found {
            self.known.borrow_mut().insert(key.clone(), found);
        }
    }

    /// Reads an object, consistently or as the host has it. Returns the result; `None` without an answer.
    pub(super) async fn get(&self, host: usize, key: &Key, is_recent: bool) -> Option<Option<Seen>> {
        let (table, wanted) = (key.table, objects::store_key(key));
        let (at, answer) = self
            .ask(host, move |store| async move {
                if !is_member(&store) {
                    return None;
                }
                let read = store.table(&objects::store_table(table));
                let object = match is_recent {
                    true => store.most_recent(&read, wanted.as_str()).await.ok()?,
                    false => store.local(&read, wanted.as_str()).await,
                };
                Some(object.map(|object| objects::read(table, &object).1))
            })
            .await;
        let found = answer.ok().flatten()?;
        let get = Get { key: key.clone(), at, is_recent, found: found.clone() };
        self.history.borrow_mut().gets.push(get);
        Some(found)
    }

    /// Returns whether a key is known to exist.
    fn knows(&self, key: &Key) -> bool {
        self.known.borrow().get(key).is_some_and(Option::is_some)
    }

    /// Makes one write based on the known state of a key. `deletes` says whether an existing object is deleted.
    async fn change(&self, host: usize, key: &Key, deletes: bool, number: u64) {
        let known = self.known.borrow().get(key).cloned().flatten();
        let table = objects::store_table(key.table);
        let value = format!("v{number}");
        let (intent, expectation, mutation) = match &known {
            None => {
                let draft = objects::draft(&format!("u{number}"), &value);
                (Intent::Create { value }, Expectation::Absent, Mutation::Put(draft))
            }
            Some(seen) if deletes => {
                let intent = Intent::Delete { expected: Some(seen.revision) };
                (intent, Expectation::Revision(Revision::new(seen.revision)), Mutation::Delete)
            }
            Some(seen) => {
                let draft = objects::draft(&seen.uid, &value);
                let intent = Intent::Update { value, expected: seen.revision };
                (intent, Expectation::Revision(Revision::new(seen.revision)), Mutation::Put(draft))
            }
        };
        let write = crate::Write { table, key: objects::store_key(key), expectation, mutation };
        // Some writes are bound to the term in which they are made.
        let is_bound = draw::once_in(3);
        let (at, answer) = self
            .ask(host, move |store| async move {
                let table = store.table(&write.table);
                let tenure = if is_bound { store.tenure(&table) } else { None };
                store.write_from(write, tenure).await
            })
            .await;
        self.trace.print(|| format!("{key} through host{}: {intent:?} is {}", host + 1, describe(&answer)));
        let outcome = self.outcome(key, &intent, answer);
        self.history.borrow_mut().writes.push(Write { key: key.clone(), intent, at, outcome });
    }

    /// Returns the outcome of a write, and records the state of the key that it shows.
    fn outcome(
        &self,
        key: &Key,
        intent: &Intent,
        answer: Result<Result<Outcome, WriteError>, RequestError>,
    ) -> WriteOutcome {
        let learn = |seen: Option<Seen>| {
            // Sometimes the outdated state is used again.
            if !draw::once_in(8) {
                self.known.borrow_mut().insert(key.clone(), seen);
            }
        };
        match answer {
            Ok(Ok(Outcome::Committed { object, .. })) => {
                let (_, seen) = objects::read(key.table, &object);
                match intent {
                    Intent::Delete { .. } => {
                        learn(None);
                        WriteOutcome::Deleted { uid: seen.uid }
                    }
                    Intent::Create { .. } | Intent::Update { .. } => {
                        learn(Some(seen.clone()));
                        WriteOutcome::Put(seen)
                    }
                }
            }
            Ok(Ok(Outcome::Conflict { current })) => {
                let current = current.map(|object| objects::read(key.table, &object).1);
                let is_there = current.is_some();
                learn(current);
                match (intent, is_there) {
                    // The object may be gone again by the time that the replica shows the conflict.
                    (Intent::Create { .. }, _) => WriteOutcome::AlreadyExists,
                    (_, true) => WriteOutcome::Conflict,
                    (_, false) => WriteOutcome::NotFound,
                }
            }
            Err(RequestError::Lost) | Ok(Err(WriteError::Unknown)) => WriteOutcome::Unknown,
            // The process may be ending, after it has proposed the write.
            Ok(Err(WriteError::Closed)) => WriteOutcome::Unknown,
            Err(RequestError::Refused) | Ok(Err(_)) => WriteOutcome::NotDone,
        }
    }
}
