//! The order of all changes, assembled from everything that clients saw.

use std::collections::{BTreeMap, HashMap};

use super::history::{
    Delivery, EventKind, History, Intent, Key, List, Micros, Revision, Seen, Table, Write, WriteOutcome,
};

/// One change of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    pub uid: String,
    /// `None` if the object was deleted.
    pub value: Option<String>,
}

/// The state of a key from one revision to the next.
#[derive(Debug, Clone)]
pub struct State {
    pub revision: Revision,
    /// `None` if no object exists.
    pub object: Option<Seen>,
    /// The uid of the object, or of the one that was deleted.
    pub uid: String,
    /// When a client first sent a write that may have caused this state; 0 if no such write is known.
    pub invoked: Micros,
    /// Whether a known write may have caused this state.
    pub has_origin: bool,
    /// Whether the change only marked the object as being deleted.
    pub is_mark: bool,
}

/// Changes in the order of their revisions, and the states of each key in that order.
#[derive(Debug, Default)]
pub struct Timeline {
    tables: BTreeMap<Table, BTreeMap<Revision, Change>>,
    states: HashMap<Key, Vec<State>>,
    /// For each key, pairs of a time and the index of the latest state that some client had seen by that time. Neither
    /// number falls from one pair to the next.
    reached: HashMap<Key, Vec<(Micros, usize)>>,
    /// Revisions that two answers showed with different content.
    contradictions: Vec<String>,
}

impl Timeline {
    pub fn of(history: &History) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.collect(history);
        timeline.order(history);
        timeline.witness(history);
        timeline
    }

    pub fn contradictions(&self) -> &[String] {
        &self.contradictions
    }

    /// Returns the changes above one revision, up to and including another.
    pub fn changes(
        &self,
        table: Table,
        after: Revision,
        until: Revision,
    ) -> impl DoubleEndedIterator<Item = (Revision, &Change)> {
        let changes = self.tables.get(&table).filter(|_| after < until);
        let range =
            changes.map(|changes| changes.range((std::ops::Bound::Excluded(after), std::ops::Bound::Included(until))));
        range.into_iter().flatten().map(|(revision, change)| (*revision, change))
    }

    pub fn keys(&self) -> impl Iterator<Item = (&Key, &[State])> {
        self.states.iter().map(|(key, states)| (key, &**states))
    }

    /// Returns the states of a key. In the first one, the object is absent.
    pub fn states(&self, key: &Key) -> &[State] {
        self.states.get(key).map_or(&[], |states| states)
    }

    /// Returns the index of the state that this revision made. Returns `None` if the key has no such state.
    pub fn index_of(&self, key: &Key, revision: Revision) -> Option<usize> {
        self.states(key).binary_search_by_key(&revision, |state| state.revision).ok()
    }

    /// Returns the index of the state that was current at a revision.
    pub fn index_at(&self, key: &Key, revision: Revision) -> usize {
        self.states(key).partition_point(|state| state.revision <= revision).saturating_sub(1)
    }

    /// Returns the index of the latest state that some client had seen before a moment.
    pub fn reached_before(&self, key: &Key, moment: Micros) -> usize {
        let reached = self.reached.get(key).map_or(&[][..], |reached| reached);
        let count = reached.partition_point(|(by, _)| *by < moment);
        count.checked_sub(1).map_or(0, |last| reached[last].1)
    }

    /// Returns the states that the key may have had at some moment of an interval.
    pub fn possible(&self, key: &Key, from: Micros, until: Micros) -> impl Iterator<Item = (usize, &State)> {
        let first = self.reached_before(key, from);
        self.states(key).iter().enumerate().skip(first).filter(move |(_, state)| state.invoked <= until)
    }

    fn see(&mut self, key: &Key, seen: &Seen, is_deleted: bool) {
        let change =
            Change { key: key.clone(), uid: seen.uid.clone(), value: (!is_deleted).then(|| seen.value.clone()) };
        let table = self.tables.entry(key.table).or_default();
        let first = table.entry(seen.revision).or_insert_with(|| change.clone());
        if *first != change {
            self.contradictions.push(format!("revision {} is {first:?} and {change:?}", seen.revision));
        }
    }

    fn collect(&mut self, history: &History) {
        for write in &history.writes {
            if let WriteOutcome::Put(seen) = &write.outcome {
                self.see(&write.key, seen, false);
            }
        }
        for get in &history.gets {
            if let Some(seen) = &get.found {
                self.see(&get.key, seen, false);
            }
        }
        for (key, seen) in history.lists.iter().flat_map(|list| &list.items) {
            self.see(key, seen, false);
        }
        for (kind, key, seen, _) in events(history) {
            self.see(key, seen, kind == EventKind::Deleted);
        }
    }

    fn order(&mut self, history: &History) {
        for (revision, change) in self.tables.values().flatten() {
            let states = self.states.entry(change.key.clone()).or_insert_with(absent);
            let object = change.value.clone();
            let object = object.map(|value| Seen { revision: *revision, uid: change.uid.clone(), value });
            let is_mark = change.key.table.marks_deletions
                && object.is_some()
                && states
                    .last()
                    .and_then(|before| before.object.as_ref())
                    .is_some_and(|before| before.uid == change.uid && Some(&before.value) == change.value.as_ref());
            let uid = change.uid.clone();
            states.push(State { revision: *revision, object, uid, invoked: 0, has_origin: false, is_mark });
        }
        for write in &history.writes {
            self.states.entry(write.key.clone()).or_insert_with(absent);
        }
        for get in &history.gets {
            self.states.entry(get.key.clone()).or_insert_with(absent);
        }
        self.find_origins(history);
    }

    fn find_origins(&mut self, history: &History) {
        let mut puts: HashMap<(&Key, &str), Micros> = HashMap::new();
        let mut deletions: HashMap<&Key, Vec<&Write>> = HashMap::new();
        for write in &history.writes {
            let may_have_happened = matches!(write.outcome, WriteOutcome::Put(_) | WriteOutcome::Unknown);
            match write.intent.value() {
                // Two writers may have sent the same value.
                Some(value) if may_have_happened => {
                    let first = puts.entry((&write.key, value)).or_insert(write.at.invoked);
                    *first = write.at.invoked.min(*first);
                }
                Some(_) => {}
                None => deletions.entry(&write.key).or_default().push(write),
            }
        }
        for (key, states) in &mut self.states {
            let deletions = deletions.get(key).map_or(&[][..], |deletions| deletions);
            for index in 1..states.len() {
                let (before, state) = states[..=index].split_at(index);
                let origin = match &state[0].object {
                    Some(seen) if !state[0].is_mark => puts.get(&(key, &*seen.value)).copied(),
                    _ => deletions
                        .iter()
                        .filter(|write| may_have_deleted(write, before, &state[0]))
                        .map(|write| write.at.invoked)
                        .min(),
                };
                states[index].has_origin = origin.is_some();
                states[index].invoked = origin.unwrap_or(0);
            }
        }
    }

    /// Collects the answers and events that show that a key had reached a state at some moment.
    fn witness(&mut self, history: &History) {
        let mut witnesses: HashMap<Key, Vec<(Micros, usize)>> = HashMap::new();
        let mut add = |key: &Key, by: Micros, index: Option<usize>| {
            if let Some(index) = index {
                witnesses.entry(key.clone()).or_default().push((by, index));
            }
        };
        for write in &history.writes {
            let index = match &write.outcome {
                WriteOutcome::Put(seen) => self.index_of(&write.key, seen.revision),
                WriteOutcome::Deleted { uid } => self.deletion_of(&write.key, uid),
                _ => None,
            };
            add(&write.key, write.at.returned, index);
        }
        for get in &history.gets {
            let index = get.found.as_ref().and_then(|seen| self.index_of(&get.key, seen.revision));
            add(&get.key, get.at.returned, index);
        }
        for (_, key, seen, at) in events(history) {
            add(key, at, self.index_of(key, seen.revision));
        }
        self.witness_lists(history, &mut add);
        self.settle(witnesses.clone());
        // A 404 shows that the key had reached an absent state: at least the first one that the other answers allow at
        // that time.
        let absences = history.gets.iter().filter(|get| get.found.is_none() && get.is_recent);
        for get in absences {
            let mut possible = self.possible(&get.key, get.at.invoked, get.at.returned);
            if let Some((index, _)) = possible.find(|(_, state)| state.object.is_none()) {
                witnesses.entry(get.key.clone()).or_default().push((get.at.returned, index));
            }
        }
        self.settle(witnesses);
    }

    fn witness_lists(&self, history: &History, add: &mut impl FnMut(&Key, Micros, Option<usize>)) {
        let mut shown: HashMap<Table, Vec<&List>> = HashMap::new();
        for list in &history.lists {
            shown.entry(list.scope.table).or_default().push(list);
        }
        for lists in shown.values_mut() {
            lists.sort_by_key(|list| list.at.returned);
        }
        for (key, states) in &self.states {
            // A list adds something only if it shows a later state of this key than all earlier lists.
            let mut last = 0;
            for list in shown.get(&key.table).into_iter().flatten().filter(|list| list.scope.holds(key)) {
                if last + 1 == states.len() {
                    break;
                }
                let index = self.index_at(key, list.revisions.first().copied().unwrap_or(0));
                if index > last {
                    last = index;
                    add(key, list.at.returned, Some(index));
                }
            }
        }
    }

    fn settle(&mut self, mut witnesses: HashMap<Key, Vec<(Micros, usize)>>) {
        for of_key in witnesses.values_mut() {
            of_key.sort_unstable();
            let mut highest = 0;
            for (_, index) in of_key.iter_mut() {
                highest = highest.max(*index);
                *index = highest;
            }
        }
        self.reached = witnesses;
    }

    /// Returns the index of the state that the deletion of the object with this uid made.
    pub fn deletion_of(&self, key: &Key, uid: &str) -> Option<usize> {
        let mut states = self.states(key).iter();
        states.position(|state| state.object.is_none() && state.revision > 0 && state.uid == uid)
    }
}

/// Returns whether a deletion may have caused a state, or the mark that precedes it.
fn may_have_deleted(write: &Write, before: &[State], state: &State) -> bool {
    let Intent::Delete { expected } = write.intent else { return false };
    let is_expected = || expected.is_none_or(|revision| followed(before, revision));
    match &write.outcome {
        WriteOutcome::Deleted { uid } => *uid == state.uid,
        WriteOutcome::Unknown => is_expected(),
        // The deletion marked the object, and then another write changed the object.
        WriteOutcome::Conflict => state.is_mark && is_expected(),
        _ => false,
    }
}

/// Returns whether the state with this revision is the last of these states, or a mark follows it directly.
pub fn followed(before: &[State], revision: Revision) -> bool {
    let is_last = before.last().is_some_and(|last| last.revision == revision);
    let has_marked = |two: &[State]| two[0].revision == revision && two[1].is_mark;
    is_last || before.windows(2).any(has_marked)
}

fn absent() -> Vec<State> {
    vec![State { revision: 0, object: None, uid: String::new(), invoked: 0, has_origin: true, is_mark: false }]
}

/// Returns every delivered event with the time of its delivery.
fn events(history: &History) -> impl Iterator<Item = (EventKind, &Key, &Seen, Micros)> {
    let sessions = history.streams.iter().flat_map(|stream| &stream.sessions);
    sessions.flat_map(|session| &session.deliveries).filter_map(|delivery| match delivery {
        Delivery::Event { kind, key, seen, at } => Some((*kind, key, seen, *at)),
        Delivery::Bookmark { .. } => None,
    })
}
