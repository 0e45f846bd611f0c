//! Reads a snapshot in key order, chunk by chunk.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::keyspace::Scan;
use super::{Selection, Snapshot};
use crate::limits::{READ_AHEAD_OBJECTS_MIN, SCAN_UNDER_LOCK_MAX};
use crate::{Compacted, Key, Object, Scope};

/// Reads the selected objects of a snapshot in key order, chunk by chunk.
///
/// With several shards it reads ahead from each, at most as many objects as the largest chunk that was asked for. Every
/// shard is read in key order, so the last key that was returned says where each of them continues: a new cursor after
/// that key returns the rest, however the keys are divided among shards by then.
pub struct Cursor {
    snapshot: Snapshot,
    selection: Selection,
    shards: Shards,
}

enum Shards {
    /// The only shard, whose objects are in order already.
    One(Position),
    Many(Merge),
}

/// The position at which reading one shard continues.
#[derive(Clone, Default)]
struct Position {
    /// The last key that was examined.
    after: Option<Key>,
    /// Whether the end is reached.
    done: bool,
}

/// Merges the next objects of all shards in key order.
struct Merge {
    shards: Vec<ReadAhead>,
    /// The next object of each shard from which one was read ahead.
    next: BinaryHeap<Next>,
    /// Shards of which nothing is read ahead, and whose end is not reached.
    empty: Vec<usize>,
}

/// The objects of one shard that were read ahead.
struct ReadAhead {
    position: Position,
    objects: std::vec::IntoIter<Arc<Object>>,
}

/// The next object of a shard. Ordered so that a heap returns the smallest key first.
struct Next {
    object: Arc<Object>,
    shard: usize,
}

impl Ord for Next {
    fn cmp(&self, other: &Next) -> Ordering {
        other.object.key().cmp(self.object.key())
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Next) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Next {}

impl Cursor {
    /// Returns the scope that is read.
    pub fn scope(&self) -> &Scope {
        &self.selection.scope
    }

    pub(super) fn new(snapshot: Snapshot, selection: Selection, after: Option<Key>) -> Cursor {
        let position = Position { after, done: false };
        let count = snapshot.shard_count();
        let shards = match count {
            1 => Shards::One(position),
            _ => {
                let ahead = || ReadAhead { position: position.clone(), objects: Vec::new().into_iter() };
                let shards = (0..count).map(|_| ahead()).collect();
                Shards::Many(Merge { shards, next: BinaryHeap::with_capacity(count), empty: (0..count).collect() })
            }
        };
        Cursor { snapshot, selection, shards }
    }

    /// Returns the snapshot that is read.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Appends up to `max` selected objects in key order. Returns false when the end is reached. Fewer than `max`
    /// objects, or none, do not mean the end.
    ///
    /// # Errors
    /// Fails when the snapshot was held for too long.
    pub fn read(&mut self, max: usize, out: &mut Vec<Arc<Object>>) -> Result<bool, Compacted> {
        let Cursor { snapshot, selection, shards } = self;
        match shards {
            Shards::One(position) => {
                read(snapshot, 0, selection, position, max.max(1), out)?;
                Ok(!position.done)
            }
            Shards::Many(merge) => merge.read(snapshot, selection, max.max(1), out),
        }
    }
}

/// Continues reading one shard.
fn read(
    snapshot: &Snapshot,
    shard: usize,
    selection: &Selection,
    position: &mut Position,
    max: usize,
    out: &mut Vec<Arc<Object>>,
) -> Result<(), Compacted> {
    if !position.done {
        let field = selection.field.as_ref().map(|(field, value)| (field.as_str(), value.as_str()));
        let scan =
            Scan { scope: &selection.scope, after: position.after.as_ref(), field, required: &selection.required };
        let keyspace = snapshot.shard(shard).keyspace.read();
        let next = keyspace.scan(&scan, snapshot.revision(), max, SCAN_UNDER_LOCK_MAX, out)?;
        *position = Position { done: next.is_none(), after: next };
    }
    Ok(())
}

impl Merge {
    /// Reads up to `max` objects. Each call examines a bounded number of objects of each shard, and returns nothing as
    /// long as a shard may still have a smaller key.
    fn read(
        &mut self,
        snapshot: &Snapshot,
        selection: &Selection,
        max: usize,
        out: &mut Vec<Arc<Object>>,
    ) -> Result<bool, Compacted> {
        let mut wanted = max;
        let mut refills = self.shards.len();
        loop {
            if !self.empty.is_empty() {
                if refills == 0 {
                    return Ok(true);
                }
                refills -= 1;
                self.refill(snapshot, selection, wanted)?;
                if !self.empty.is_empty() {
                    return Ok(true);
                }
            }
            while wanted > 0 {
                let Some(mut next) = self.next.peek_mut() else { return Ok(false) };
                let ahead = &mut self.shards[next.shard];
                wanted -= 1;
                if let Some(object) = ahead.objects.next() {
                    out.push(std::mem::replace(&mut next.object, object));
                    continue;
                }
                let Next { object, shard } = std::collections::binary_heap::PeekMut::pop(next);
                out.push(object);
                if !self.shards[shard].position.done {
                    self.empty.push(shard);
                    break;
                }
            }
            if wanted == 0 {
                return Ok(!self.next.is_empty() || !self.empty.is_empty());
            }
        }
    }

    /// Reads ahead in the shards of which nothing is read ahead.
    fn refill(&mut self, snapshot: &Snapshot, selection: &Selection, wanted: usize) -> Result<(), Compacted> {
        // Somewhat more than each shard's share of the wanted objects, so that most shards are read only once.
        let each = (wanted / self.shards.len() * 5 / 4).max(READ_AHEAD_OBJECTS_MIN).min(wanted.max(2));
        for index in (0..self.empty.len()).rev() {
            let shard = self.empty[index];
            let ahead = &mut self.shards[shard];
            let mut objects = Vec::with_capacity(each);
            read(snapshot, shard, selection, &mut ahead.position, each, &mut objects)?;
            let mut objects = objects.into_iter();
            let next = objects.next();
            if next.is_some() || ahead.position.done {
                self.empty.swap_remove(index);
            }
            if let Some(object) = next {
                ahead.objects = objects;
                self.next.push(Next { object, shard });
            }
        }
        Ok(())
    }
}
