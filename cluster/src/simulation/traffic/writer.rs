//! Writers: they create, update and delete under the expectation that what they know is still so.

use futures_util::future::join;

use super::super::draw;
use super::super::history::{Get, Intent, Key, Seen, Table, Write, WriteOutcome};
use super::super::host::Gone;
use super::super::reform::is_member;
use super::{Traffic, objects};
use crate::{Expectation, Mutation, Outcome, Revision, WriteError};

/// One write in so many has a rival, who knows the same and asks another host for the same at once, as controllers do
/// that watch the same objects.
const RIVALS_ONE_IN: u64 = 3;
/// One pair of rivals in so many asks for the same value, as two that count do: only one of them can have it.
const TWINS_ONE_IN: u64 = 2;

/// Writes to any key of a table, until there is to be no more traffic.
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

/// An answer in a word.
fn told(answer: &Result<Result<Outcome, WriteError>, Gone>) -> String {
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
    /// Finds out what is there.
    async fn look(&self, host: usize, key: &Key) {
        let found = self.get(host, key, true).await;
        if let Some(found) = found {
            self.known.borrow_mut().insert(key.clone(), found);
        }
    }

    /// Reads an object, most recently or as the host has it; what was found, if anything was answered.
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

    /// Whether something is known to be there.
    fn knows(&self, key: &Key) -> bool {
        self.known.borrow().get(key).is_some_and(Option::is_some)
    }

    /// Makes one write of what is known of a key, which deletes what is there or not.
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
        // Some are bound to the term in which they are asked for.
        let is_bound = draw::once_in(3);
        let (at, answer) = self
            .ask(host, move |store| async move {
                let table = store.table(&write.table);
                let tenure = if is_bound { store.tenure(&table) } else { None };
                store.write_from(write, tenure).await
            })
            .await;
        self.trace.tell(|| format!("{key} through host{}: {intent:?} is {}", host + 1, told(&answer)));
        let outcome = self.outcome(key, &intent, answer);
        self.history.borrow_mut().writes.push(Write { key: key.clone(), intent, at, outcome });
    }

    /// What became of a write, of which the key is known better now.
    fn outcome(&self, key: &Key, intent: &Intent, answer: Result<Result<Outcome, WriteError>, Gone>) -> WriteOutcome {
        let learn = |seen: Option<Seen>| {
            // Sometimes what was known before is tried again.
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
                    // It may be gone again by the time that the replica that was asked shows it.
                    (Intent::Create { .. }, _) => WriteOutcome::AlreadyExists,
                    (_, true) => WriteOutcome::Conflict,
                    (_, false) => WriteOutcome::NotFound,
                }
            }
            Err(Gone::Lost) | Ok(Err(WriteError::Unknown)) => WriteOutcome::Unknown,
            // The process may be ending.
            Ok(Err(WriteError::Closed)) => WriteOutcome::Unknown,
            Err(Gone::Refused) | Ok(Err(_)) => WriteOutcome::NotDone,
        }
    }
}
