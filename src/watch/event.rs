//! Decides which event, if any, a change is for one watch.

use std::sync::Arc;

use bytes::Bytes;
use flotilla_cluster::{Change, ChangeKind, Object};

use crate::registry::selects;
use crate::selector::Selection;

/// The types of watch events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// The object was created, or is newly selected.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted, or is no longer selected.
    Deleted,
    /// There are no events up to the revision.
    Bookmark,
    /// The stream ends with a `Status`.
    Error,
}

impl EventType {
    /// Returns the name that clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// An object in the form that an event shows.
#[derive(Debug, Clone)]
pub enum Shown {
    /// The stored object.
    Object(Arc<Object>),
    /// The last state of an object before it left the selection, and its bytes with the revision of the change.
    Left(Arc<Object>, Bytes),
}

impl Shown {
    /// Returns the object.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Self::Object(object) | Self::Left(object, _) => object,
        }
    }
}

/// Returns the objects of a change that must be converted before [`judge`] can tell its event.
pub fn to_convert(change: &Change, selection: &Selection) -> Vec<Arc<Object>> {
    if selection.converted.0.is_empty() {
        return judge(change, selection, |_| true).map(|(_, shown)| Arc::clone(shown.object())).into_iter().collect();
    }
    let states = change.previous().into_iter().chain([change.object()]);
    states.filter(|object| selects(selection, object)).cloned().collect()
}

/// Returns the event of a change for a watch with this selection. Returns `None` if there is none. `selects_converted`
/// tells whether the selection matches an object as a webhook has converted it.
pub fn judge(
    change: &Change,
    selection: &Selection,
    selects_converted: impl Fn(&Object) -> bool,
) -> Option<(EventType, Shown)> {
    let object = change.object();
    if selection.is_everything() {
        let kind = match change.kind() {
            ChangeKind::Added => EventType::Added,
            ChangeKind::Modified => EventType::Modified,
            ChangeKind::Deleted => EventType::Deleted,
        };
        return Some((kind, Shown::Object(Arc::clone(object))));
    }
    let selects = |object: &Object| selects(selection, object) && selects_converted(object);
    let before = change.previous().is_some_and(|previous| selects(previous));
    let after = change.kind() != ChangeKind::Deleted && selects(object);
    match (before, after) {
        (false, false) => None,
        (false, true) => Some((EventType::Added, Shown::Object(Arc::clone(object)))),
        (true, true) => Some((EventType::Modified, Shown::Object(Arc::clone(object)))),
        (true, false) if change.kind() == ChangeKind::Deleted => {
            Some((EventType::Deleted, Shown::Object(Arc::clone(object))))
        }
        (true, false) => {
            let previous = change.previous()?;
            let mut bytes = previous.bytes().to_vec();
            let at = previous.layout().revision_at as usize;
            if let Some(digits) = bytes.get_mut(at..) {
                change.revision().write_digits(digits);
            }
            Some((EventType::Deleted, Shown::Left(Arc::clone(previous), bytes.into())))
        }
    }
}
