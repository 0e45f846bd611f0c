//! Decides what a deletion does next with an object: remove it, mark it, or wait (KEP-2839 names the phases).

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::{Served, now};
use crate::custom::{self, termination};
use crate::request::{DeleteOptions, Propagation};
use crate::rules::Dependents;

/// Finalizer that the garbage collector removes once it has removed the owner from the dependents.
pub const ORPHAN: &str = "orphan";

/// Finalizer that the garbage collector removes once the dependents are deleted.
pub const FOREGROUND: &str = "foregroundDeletion";

/// The next step of a deletion, for one state of the object.
pub(super) enum DeletionStep {
    /// Remove it from the table.
    Remove,
    /// Store this state; if true, the object may then be removed at once.
    Mark(Value, bool),
    /// Do nothing: its deletion is under way.
    Wait,
}

/// Marks a namespace first. Removes it once its content is gone and it has no finalizers.
fn namespace_step(served: &Served, old: &Value, options: &DeleteOptions) -> DeletionStep {
    if old.at(&["metadata", "deletionTimestamp"]).is_null() {
        let mut marked = old.clone();
        marked.set_at(&["metadata", "deletionTimestamp"], now().to_string());
        marked.set_at(&["status", "phase"], "Terminating");
        set_finalizers(served, &mut marked, options.propagation);
        return DeletionStep::Mark(marked, false);
    }
    let finalized =
        old.list_at(&["spec", "finalizers"]).is_empty() && old.list_at(&["metadata", "finalizers"]).is_empty();
    if finalized { DeletionStep::Remove } else { DeletionStep::Wait }
}

pub(super) fn step(served: &Served, old: &Value, options: &mut DeleteOptions) -> DeletionStep {
    if is_namespace(served) {
        return namespace_step(served, old, options);
    }
    if is_definition(served) && old.at(&["metadata", "deletionTimestamp"]).is_null() {
        return DeletionStep::Mark(termination::marked(old, &now().to_string()), false);
    }
    let mut marked = old.clone();
    let graceful = match grace(served, old, options) {
        Grace::Pending => return DeletionStep::Wait,
        Grace::None => None,
        Grace::Set { seconds, at, first } => {
            marked.set_at(&["metadata", "deletionTimestamp"], at.to_string());
            marked.set_at(&["metadata", "deletionGracePeriodSeconds"], seconds);
            if first {
                raise_generation(&mut marked);
            }
            Some(seconds)
        }
    };
    set_finalizers(served, &mut marked, options.propagation);
    let held = !marked.list_at(&["metadata", "finalizers"]).is_empty();
    match graceful {
        None if held => {
            mark(&mut marked);
            DeletionStep::Mark(marked, false)
        }
        None => DeletionStep::Remove,
        Some(seconds) => DeletionStep::Mark(marked, seconds == 0 && !held),
    }
}

/// Marks an object that waits for finalizers only.
fn mark(object: &mut Value) {
    let time = object.str_at(&["metadata", "deletionTimestamp"]).to_owned();
    let passed = Timestamp::parse(&time).is_ok_and(|time| time.seconds <= now().seconds);
    if time.is_empty() {
        raise_generation(object);
    }
    if !passed {
        object.set_at(&["metadata", "deletionTimestamp"], now().to_string());
    }
    object.set_at(&["metadata", "deletionGracePeriodSeconds"], 0);
}

fn raise_generation(object: &mut Value) {
    if let Some(generation @ 1..) = object.int_at(&["metadata", "generation"]) {
        object.set_at(&["metadata", "generation"], generation + 1);
    }
}

/// The grace period of a deletion.
pub(super) enum Grace {
    /// The kind, or this deletion, has none.
    None,
    /// A grace period is running, and the client does not shorten it.
    Pending,
    /// The object ends this many seconds after the request, at `at`. `first` is false if this shortens a running
    /// period.
    Set { seconds: i64, at: Timestamp, first: bool },
}

pub(super) fn grace(served: &Served, old: &Value, options: &DeleteOptions) -> Grace {
    let Some(default_seconds) = served.strategy.grace_seconds else { return Grace::None };
    let deletion = Timestamp::parse(old.str_at(&["metadata", "deletionTimestamp"])).ok();
    if let Some(deletion) = deletion {
        // A period of zero seconds is over, but the object was not removed: its remover may have failed.
        let running = old.int_at(&["metadata", "deletionGracePeriodSeconds"]).filter(|seconds| *seconds > 0);
        let Some(running) = running else { return Grace::None };
        return match options.grace_seconds {
            Some(seconds) if seconds < running => {
                let at = Timestamp { seconds: deletion.seconds - running + seconds, nanos: 0 };
                Grace::Set { seconds, at, first: false }
            }
            _ => Grace::Pending,
        };
    }
    let seconds = default_seconds(old, options.grace_seconds);
    let at = Timestamp { seconds: now().seconds.saturating_add(seconds), nanos: 0 };
    Grace::Set { seconds, at, first: true }
}

/// Sets the finalizers by which the garbage collector holds an object until it has dealt with the dependents.
pub(super) fn set_finalizers(served: &Served, object: &mut Value, propagation: Option<Propagation>) {
    let finalizers = object.list_at(&["metadata", "finalizers"]);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer.as_str() == Some(name));
    let (orphan, foreground) = match propagation {
        Some(propagation) => (propagation == Propagation::Orphan, propagation == Propagation::Foreground),
        None if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND) && !has(ORPHAN)),
        None => (served.strategy.dependents == Dependents::Orphan, false),
    };
    if served.strategy.dependents == Dependents::Unsupported {
        return;
    }
    let mut kept: Vec<Value> =
        finalizers.iter().filter(|f| !matches!(f.as_str(), Some(ORPHAN | FOREGROUND))).cloned().collect();
    if orphan {
        kept.push(ORPHAN.into());
    }
    if foreground {
        kept.push(FOREGROUND.into());
    }
    if kept.is_empty() {
        object.remove_at(&["metadata", "finalizers"]);
    } else if orphan != has(ORPHAN) || foreground != has(FOREGROUND) {
        // If none was added or removed, the order stays.
        object.set_at(&["metadata", "finalizers"], kept);
    }
}

pub(super) fn is_namespace(served: &Served) -> bool {
    served.group().is_empty() && served.resource.name == "namespaces"
}

pub(super) fn is_definition(served: &Served) -> bool {
    served.group() == custom::GROUP && served.resource.name == custom::RESOURCE
}
