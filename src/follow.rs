//! Follows a table: its present objects, then every change.

use std::sync::Arc;

use flotilla_cluster::{Change, Compacted, Interest, Object, Revision, Scope, Selection, Table};

use crate::limits::{FOLLOW_PAUSE, WATCH_BATCH_EVENTS};
use crate::scan::scan;

/// The steps that a follower sees, in this order: the beginning of a list, its objects, its end, changes. If the
/// follower falls behind the history window, the list begins again.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A list begins: objects that were seen before may have changed or be gone.
    Begin,
    /// An object of the list.
    Present(&'a Arc<Object>),
    /// The end of the list, with its revision.
    ListEnd(Revision),
    /// A change after the list.
    Changed(&'a Change),
}

impl Seen<'_> {
    /// Returns the object of this step in its present state. `None` if it was deleted, or if the step has no object.
    pub fn live(&self) -> Option<&Arc<Object>> {
        match self {
            Seen::Present(object) => Some(object),
            Seen::Changed(change) if !change.object().is_tombstone() => Some(change.object()),
            _ => None,
        }
    }

    /// Returns the last state of the object that this step deleted. `None` if it deleted none.
    pub fn deleted(&self) -> Option<&Arc<Object>> {
        match self {
            Seen::Changed(change) if change.object().is_tombstone() => Some(change.object()),
            _ => None,
        }
    }
}

/// Follows the objects and changes of a table that concern an interest, for ever.
pub async fn follow(table: &Arc<Table>, interest: Interest, mut see: impl FnMut(Seen<'_>)) {
    loop {
        let lost = match list(table, &interest, &mut see).await {
            Ok(after) => changes(table, &interest, after, &mut see).await,
            Err(compacted) => compacted,
        };
        tracing::debug!(table = %table.id(), floor = %lost.floor, "a follower lists the table again");
        tokio::time::sleep(FOLLOW_PAUSE).await;
    }
}

async fn list(table: &Arc<Table>, interest: &Interest, see: &mut impl FnMut(Seen<'_>)) -> Result<Revision, Compacted> {
    let scope = interest.namespace.as_ref().map_or(Scope::All, |namespace| Scope::namespace(namespace));
    let selection = Selection { scope, field: interest.field.clone(), ..Selection::default() };
    let snapshot = table.snapshot();
    let mut chunks = scan(&snapshot, selection);
    see(Seen::Begin);
    while let Some(objects) = chunks.next_yielding().await {
        let named = |object: &&Arc<Object>| interest.name.as_ref().is_none_or(|name| object.key().name() == name);
        objects?.iter().filter(named).for_each(|object| see(Seen::Present(object)));
    }
    let revision = snapshot.revision();
    see(Seen::ListEnd(revision));
    Ok(revision)
}

/// Follows the changes after a revision until the history no longer contains its position.
async fn changes(
    table: &Arc<Table>,
    interest: &Interest,
    after: Revision,
    see: &mut impl FnMut(Seen<'_>),
) -> Compacted {
    let Ok(mut subscription) = table.subscribe(interest.clone(), after) else {
        return Compacted { floor: table.floor() };
    };
    let mut changes = Vec::new();
    loop {
        subscription.changed().await;
        let more = match subscription.read(WATCH_BATCH_EVENTS, &mut changes) {
            Ok(more) => more,
            Err(compacted) => return compacted,
        };
        changes.drain(..).for_each(|change| see(Seen::Changed(&change)));
        if more {
            tokio::task::yield_now().await;
        }
    }
}
