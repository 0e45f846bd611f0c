//! Takes a backup while the store is in use.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::{BackupHeader, FORMAT, KIND_END, KIND_HEADER, KIND_OBJECTS, MAGIC};
use crate::clock::WallClock;
use crate::codec::{put_long, put_object, put_text};
use crate::group::Tables;
use crate::limits::{BACKUP_ATTEMPTS, BACKUP_CHUNK_BYTES, BACKUP_TIMEOUT, CLOSING_TIMEOUT, SCAN_UNDER_LOCK_MAX};
use crate::{
    Compacted, Cursor, Object, ReadError, Revision, Selection, Snapshot, SnapshotError, Store, TableId, chunk,
};

/// The reason why a backup cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// There is no linearizable read point of all groups.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The history is so short that no revision could be held.
    #[error(transparent)]
    Unsteady(#[from] SnapshotError),
}

/// A backup that is being taken. It iterates over the bytes, one chunk at a time, each made on demand. An error is the
/// last item: the caller took longer than the state can be held.
pub struct Backup {
    head: Option<Bytes>,
    tables: std::vec::IntoIter<(TableId, Snapshot)>,
    reading: Option<Reading>,
    clocks: Arc<Tables>,
    objects: u64,
    chunks: u64,
    ended: bool,
}

impl Store {
    /// Starts a backup of everything that was acknowledged before this call, with all tables at the same revision.
    /// Writers are not delayed. Changes that happen meanwhile are kept as history until the backup is complete.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub async fn backup(&self) -> Result<Backup, BackupError> {
        let mut left = BACKUP_ATTEMPTS;
        loop {
            left -= 1;
            match self.try_backup().await {
                Err(BackupError::Unsteady(_)) if left > 0 => {}
                begun => return begun,
            }
        }
    }

    async fn try_backup(&self) -> Result<Backup, BackupError> {
        self.catch_up().await?;
        let registry = self.registry();
        let clocks = registry.clocks();
        let revision = clocks.iter().map(|clock| clock.closed()).max().unwrap_or_default();
        try_join_all(clocks.iter().map(|clock| clock.close_to(revision))).await?;
        for table in self.tables() {
            // A table that is being divided becomes readable in a moment. A failure is reported below.
            let _ = table.wait_applied(revision, Instant::now() + CLOSING_TIMEOUT).await;
        }
        // Every table with a write up to this revision exists by now. A table that begins later cannot be held at it,
        // and the backup is started again.
        let hold = |table: Arc<crate::Table>| Ok((table.id().clone(), table.snapshot_for(revision, BACKUP_TIMEOUT)?));
        let mut tables = self.tables().into_iter().map(hold).collect::<Result<Vec<_>, SnapshotError>>()?;
        tables.sort_by(|(one, _), (other, _)| one.cmp(other));
        let header = BackupHeader {
            unix_ms: WallClock::system().unix_ms(),
            cluster: self.cluster().cluster,
            revision,
            groups: registry.map().data_groups(),
            shards: registry.map().shards(),
        };
        let head = Some(head(&header));
        let clocks = registry.clone();
        Ok(Backup { head, tables: tables.into_iter(), reading: None, clocks, objects: 0, chunks: 0, ended: false })
    }
}

fn head(header: &BackupHeader) -> Bytes {
    let mut content = Vec::new();
    chunk::begin(KIND_HEADER, &mut content);
    header.write(&mut content);
    chunk::seal(&mut content);
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&FORMAT.to_le_bytes());
    head.extend_from_slice(&content);
    head.into()
}

impl Backup {
    fn chunk(&mut self) -> Result<Bytes, Compacted> {
        if let Some(head) = self.head.take() {
            return Ok(head);
        }
        loop {
            if let Some(reading) = &mut self.reading
                && let Some((chunk, objects)) = reading.chunk()?
            {
                self.objects += objects;
                self.chunks += 1;
                return Ok(chunk);
            }
            self.reading = match self.tables.next() {
                Some((table, snapshot)) => Some(Reading::new(table, &snapshot)),
                None => return Ok(self.end()),
            };
        }
    }

    fn end(&mut self) -> Bytes {
        self.ended = true;
        // Revisions are assigned while a backup is taken, and none of them may be assigned again by a store that is
        // restored from it.
        let last = self.clocks.clocks().iter().map(|clock| clock.closed()).max().unwrap_or(Revision::FIRST);
        let mut end = Vec::new();
        chunk::begin(KIND_END, &mut end);
        [self.chunks, self.objects, last.get()].into_iter().for_each(|number| put_long(number, &mut end));
        chunk::seal(&mut end);
        end.into()
    }
}

impl Iterator for Backup {
    type Item = Result<Bytes, Compacted>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let chunk = self.chunk();
        self.ended |= chunk.is_err();
        Some(chunk)
    }
}

/// The position in a table.
struct Reading {
    table: TableId,
    cursor: Cursor,
    /// Objects that were read and are in no chunk yet.
    objects: std::vec::IntoIter<Arc<Object>>,
    more: bool,
}

impl Reading {
    fn new(table: TableId, snapshot: &Snapshot) -> Reading {
        let cursor = snapshot.cursor(Selection::default(), None);
        Reading { table, cursor, objects: Vec::new().into_iter(), more: true }
    }

    /// Returns the next chunk and the number of objects in it; `None` at the end.
    fn chunk(&mut self) -> Result<Option<(Bytes, u64)>, Compacted> {
        let (mut chunk, mut count) = (Vec::with_capacity(BACKUP_CHUNK_BYTES), 0);
        chunk::begin(KIND_OBJECTS, &mut chunk);
        put_text(self.table.as_str(), &mut chunk);
        while chunk.len() < BACKUP_CHUNK_BYTES {
            if let Some(object) = self.objects.next() {
                put_object(&object, &mut chunk);
                count += 1;
            } else if self.more {
                let mut objects = Vec::new();
                self.more = self.cursor.read(SCAN_UNDER_LOCK_MAX, &mut objects)?;
                self.objects = objects.into_iter();
            } else {
                break;
            }
        }
        chunk::seal(&mut chunk);
        Ok((count > 0).then(|| (chunk.into(), count)))
    }
}
