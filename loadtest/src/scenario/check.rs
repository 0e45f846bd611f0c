//! Checks of the server: compares each delivery of a watch with the earlier ones, and the final state with a list.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::mark::{Event, Mark, Object};
use crate::limits;

/// A promise that a server can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Broken {
    /// An event was not delivered.
    Lost,
    /// An event was delivered twice.
    Repeated,
    /// An event was delivered after a later one.
    Misordered,
    /// A read returned an older state than one that was acknowledged before the read was sent.
    Stale,
    /// An answer or event has other contents than those that were written or requested.
    WrongBody,
}

/// How often promises were broken, with examples of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Violations {
    /// How often each promise was broken.
    pub counts: BTreeMap<Broken, u64>,
    /// Descriptions of the first violations of each promise.
    pub examples: Vec<String>,
}

impl Violations {
    /// Counts a violation, and keeps its description if it is among the first.
    pub fn add(&mut self, broken: Broken, what: impl FnOnce() -> String) {
        let count = self.counts.entry(broken).or_default();
        *count += 1;
        if *count <= limits::EXAMPLES_PER_KIND {
            self.examples.push(format!("{broken:?}: {}", what()));
        }
    }

    /// Returns the number of all violations.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds the violations that another process found.
    pub fn merge(&mut self, other: &Self) {
        for (broken, count) in &other.counts {
            *self.counts.entry(*broken).or_default() += count;
        }
        self.examples.extend(other.examples.iter().cloned());
    }
}

/// The checks of a run so far.
#[derive(Debug, Default)]
pub struct Checked {
    /// The number of checked events.
    pub events: Cell<u64>,
    /// The number of checked answers.
    pub answers: Cell<u64>,
    /// How many times a watch had to list again.
    pub expired: Cell<u64>,
    /// How many times a watch ended and was started again, attempts that were refused included.
    pub resumed: Cell<u64>,
    /// The violations.
    pub violations: RefCell<Violations>,
}

/// The state of an object, as a watch knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The revision of the object.
    pub revision: u64,
    /// The number of the object's change. 0 for an object without a mark.
    pub sequence: u32,
}

/// The state that the deliveries of a watch have produced.
#[derive(Debug, Default)]
pub struct Watched {
    /// The objects by their keys.
    pub state: HashMap<u64, Seen>,
    /// The revision of the last delivery.
    pub revision: u64,
    /// Whether all initial objects were delivered.
    pub is_synced: bool,
    /// The objects of a list that is not complete yet.
    coming: HashMap<u64, Seen>,
}

/// The result of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A change, and when it was due. `None` if the object has no mark, or that of an earlier change: a deletion and a
    /// change of a subresource leave the mark as it is.
    Change(Option<u64>),
    /// All initial objects have been delivered.
    Synced,
    /// An event that is not counted.
    Nothing,
    /// The watch cannot continue; the client must list again.
    Expired,
}

impl Watched {
    /// Adds an object of a list, or of the initial events of a watch.
    pub fn take(&mut self, object: &Object<'_>, broken: &RefCell<Violations>) {
        match (object.revision(), object.mark()) {
            (Ok(revision), Ok(mark)) => {
                let sequence = mark.map_or(0, |mark| mark.sequence);
                self.coming.insert(object.key(), Seen { revision, sequence });
            }
            (Err(fault), _) | (_, Err(fault)) => broken.borrow_mut().add(Broken::WrongBody, || fault),
        }
    }

    /// Starts a new list.
    pub fn begin(&mut self) {
        self.coming.clear();
        self.is_synced = false;
    }

    /// Ends a list, whose revision is `revision`.
    pub fn complete(&mut self, revision: u64) {
        self.state = std::mem::take(&mut self.coming);
        self.state.shrink_to_fit();
        self.revision = revision;
        self.is_synced = true;
    }

    /// Applies an event. `name` identifies the watch in descriptions.
    pub fn event(&mut self, event: &Event<'_>, name: &str, broken: &RefCell<Violations>) -> Outcome {
        let object = &event.object;
        let wrong = |what: String| broken.borrow_mut().add(Broken::WrongBody, || format!("{name}: {what}"));
        if event.kind == "ERROR" {
            if object.code != Some(410) {
                wrong(format!("ended with {:?} {:?}", object.code, object.message));
            }
            return Outcome::Expired;
        }
        let revision = match object.revision() {
            Ok(revision) => revision,
            Err(fault) => {
                wrong(fault);
                return Outcome::Nothing;
            }
        };
        if event.kind == "BOOKMARK" {
            return self.bookmark(revision, object, name, broken);
        }
        if !self.is_synced {
            self.take(object, broken);
            return Outcome::Nothing;
        }
        let mark = object.mark().unwrap_or_else(|fault| {
            wrong(fault);
            None
        });
        let known = self.state.get(&object.key()).map_or(0, |seen| seen.sequence);
        self.order(revision, event, name, broken);
        self.revision = self.revision.max(revision);
        self.change(revision, mark, event, name, broken);
        Outcome::Change(mark.filter(|mark| mark.sequence > known).map(|mark| mark.due_micros))
    }

    fn bookmark(&mut self, revision: u64, object: &Object<'_>, name: &str, broken: &RefCell<Violations>) -> Outcome {
        if !self.is_synced {
            if object.metadata.annotations.initial_events_end.is_some() {
                self.complete(revision);
                return Outcome::Synced;
            }
            return Outcome::Nothing;
        }
        if revision < self.revision {
            let last = self.revision;
            let what = || format!("{name}: a bookmark of {revision} after {last}");
            broken.borrow_mut().add(Broken::Misordered, what);
        }
        self.revision = self.revision.max(revision);
        Outcome::Nothing
    }

    /// Checks that the event has a later revision than the previous one.
    fn order(&self, revision: u64, event: &Event<'_>, name: &str, broken: &RefCell<Violations>) {
        if revision > self.revision {
            return;
        }
        let known = self.state.get(&event.object.key());
        let kind = match known {
            Some(seen) if seen.revision == revision => Broken::Repeated,
            _ => Broken::Misordered,
        };
        let last = self.revision;
        let what = || format!("{name}: {} {} of {revision} after {last}", event.kind, event.object.metadata.name);
        broken.borrow_mut().add(kind, what);
    }

    /// Checks that the changes of an object arrive without a gap, and applies the change.
    fn change(&mut self, revision: u64, mark: Option<Mark>, of: &Event<'_>, name: &str, broken: &RefCell<Violations>) {
        let (key, object) = (of.object.key(), &of.object.metadata.name);
        let add = |kind: Broken, what: String| {
            broken.borrow_mut().add(kind, || format!("{name}: {object} at {revision}: {what}"));
        };
        let known = self.state.get(&key).copied();
        match (&*of.kind, known) {
            ("ADDED", Some(_)) => add(Broken::Repeated, "was added although it existed".into()),
            ("MODIFIED" | "DELETED", None) => add(Broken::Lost, format!("{} of an object never added", of.kind)),
            ("ADDED" | "MODIFIED" | "DELETED", _) => {}
            (other, _) => add(Broken::WrongBody, format!("an event of type {other:?}")),
        }
        let sequence = mark.map_or(0, |mark| mark.sequence);
        if let (Some(mark), Some(before)) = (mark, known.filter(|seen| seen.sequence > 0)) {
            if mark.sequence > before.sequence + 1 {
                add(Broken::Lost, format!("change {} follows change {}", mark.sequence, before.sequence));
            } else if mark.sequence < before.sequence {
                add(Broken::Misordered, format!("change {} follows change {}", mark.sequence, before.sequence));
            }
        }
        if of.kind == "DELETED" {
            self.state.remove(&key);
        } else {
            self.state.insert(key, Seen { revision, sequence });
        }
    }

    /// Compares the delivered state with a list. Returns a description of the difference. `None` if they are equal.
    pub fn difference(&self, list: &HashMap<u64, Seen>) -> Option<String> {
        let missing = list.keys().filter(|key| !self.state.contains_key(*key)).count();
        let behind = |(key, seen): &(&u64, &Seen)| self.state.get(*key).is_some_and(|own| own.revision < seen.revision);
        let behind = list.iter().filter(behind).count();
        let remaining = self.state.keys().filter(|key| !list.contains_key(*key)).count();
        (missing + behind + remaining > 0).then(|| {
            format!("{missing} objects were never added, {behind} are older than in a list, {remaining} not deleted")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        watched: Watched,
        broken: RefCell<Violations>,
    }

    impl Case {
        fn new() -> Self {
            let mut watched = Watched::default();
            watched.complete(10);
            Self { watched, broken: RefCell::default() }
        }

        fn event(&mut self, kind: &str, name: &str, revision: u64, sequence: u32) -> Outcome {
            let mark = Mark::new(sequence, 5, "n", name, "").text();
            let text = format!(
                r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","namespace":"n","resourceVersion":"{revision}","annotations":{{"loadtest/mark":"{mark}"}}}}}}}}"#
            );
            self.watched.event(&serde_json::from_str(&text).unwrap(), "w", &self.broken)
        }

        fn found(&self) -> Vec<(Broken, u64)> {
            self.broken.borrow().counts.iter().map(|(kind, count)| (*kind, *count)).collect()
        }
    }

    #[test]
    fn correct_events_are_no_violation() {
        let mut case = Case::new();
        assert_eq!(case.event("ADDED", "a", 11, 1), Outcome::Change(Some(5)));
        assert_eq!(case.event("MODIFIED", "a", 12, 2), Outcome::Change(Some(5)));
        assert_eq!(case.event("MODIFIED", "a", 13, 2), Outcome::Change(None), "it has the mark of the change before");
        case.event("BOOKMARK", "", 20, 0);
        assert_eq!(case.event("DELETED", "a", 21, 2), Outcome::Change(None));
        assert_eq!(case.event("ADDED", "a", 22, 1), Outcome::Change(Some(5)));
        assert_eq!(case.found(), []);
        assert_eq!(case.watched.revision, 22);
    }

    #[test]
    fn every_violation_of_a_watch_is_found() {
        type Events = &'static [(&'static str, u64, u32)];
        let cases: [(Events, Broken); 7] = [
            (&[("ADDED", 11, 1), ("MODIFIED", 13, 3)], Broken::Lost),
            (&[("MODIFIED", 13, 3)], Broken::Lost),
            (&[("ADDED", 11, 1), ("MODIFIED", 12, 2), ("MODIFIED", 12, 2)], Broken::Repeated),
            (&[("ADDED", 11, 1), ("ADDED", 12, 1)], Broken::Repeated),
            (&[("ADDED", 11, 2), ("MODIFIED", 12, 1)], Broken::Misordered),
            (&[("ADDED", 9, 1)], Broken::Misordered),
            (&[("ADDED", 12, 1), ("BOOKMARK", 11, 0)], Broken::Misordered),
        ];
        for (events, broken) in cases {
            let mut case = Case::new();
            for (kind, revision, sequence) in events {
                case.event(kind, "a", *revision, *sequence);
            }
            assert_eq!(case.found(), [(broken, 1)], "{events:?}");
            assert!(case.broken.borrow().examples[0].contains("w: "), "{:?}", case.broken);
        }
    }

    #[test]
    fn a_list_finds_missing_events() {
        let mut case = Case::new();
        case.event("ADDED", "a", 11, 1);
        let mut list = case.watched.state.clone();
        assert_eq!(case.watched.difference(&list), None);
        list.insert(1, Seen { revision: 12, sequence: 0 });
        assert!(case.watched.difference(&list).unwrap().starts_with("1 objects were never added"));
        list.clear();
        assert!(case.watched.difference(&list).unwrap().ends_with("1 not deleted"));
    }

    #[test]
    fn an_expired_watch_is_no_violation() {
        let mut case = Case::new();
        let gone: Event<'_> =
            serde_json::from_str(r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#).unwrap();
        assert_eq!(case.watched.event(&gone, "w", &case.broken), Outcome::Expired);
        assert_eq!(case.found(), []);
        let failed: Event<'_> = serde_json::from_str(r#"{"type":"ERROR","object":{"code":500}}"#).unwrap();
        case.watched.event(&failed, "w", &case.broken);
        assert_eq!(case.found(), [(Broken::WrongBody, 1)]);
    }
}
