//! Applies committed entries, and takes and installs snapshots.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use openraft::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, Membership, OptionalSend, Raft, RaftSnapshotBuilder};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::types::{self, Applied, Entry, LogIdentity, StoredMembership, TypeConfig, log_ref};
use crate::entry::Batch;
use crate::group::{Applier, Captured};
use crate::limits::{APPLY_ENTRIES_MAX, SNAPSHOT_WRITE_TIMEOUT};
use crate::roster::Replica;
use crate::snapshot::{Loaded, Meta, Outgoing, Pace, Snapshots};

/// Openraft, as it runs one group. Cheap to clone.
pub(super) type GroupRaft = Raft<TypeConfig, StateMachine>;

/// A snapshot file of this replica.
#[derive(Clone)]
pub(crate) struct SnapshotFile {
    snapshots: Snapshots,
    path: PathBuf,
    /// The content of a received snapshot that has been read already and is yet to be installed.
    received: Option<Arc<Mutex<Option<Loaded>>>>,
}

impl SnapshotFile {
    fn new(snapshots: &Snapshots, path: PathBuf) -> SnapshotFile {
        SnapshotFile { snapshots: snapshots.clone(), path, received: None }
    }

    /// Reads a received snapshot before it is installed. The file is not among this replica's snapshots yet.
    pub(super) fn receive(snapshots: &Snapshots, path: &Path) -> io::Result<Snapshot> {
        let loaded = snapshots.load(path).map_err(io::Error::other)?;
        let meta = snapshot_meta(&loaded.meta)?;
        let received = Some(Arc::new(Mutex::new(Some(loaded))));
        Ok(Snapshot { meta, snapshot: SnapshotFile { received, ..SnapshotFile::new(snapshots, path.to_path_buf()) } })
    }

    /// Runs work that waits for the disk on a thread where that blocks nothing else.
    pub(super) async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        self.snapshots.aside(work).await
    }

    /// Opens the snapshot for sending.
    pub(super) fn outgoing(&self) -> io::Result<Outgoing> {
        self.snapshots.outgoing(&self.path)
    }

    /// Returns the file's name among the snapshots of this replica.
    pub(super) fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Moves a received file among this replica's snapshots. Returns its path.
    async fn adopt(&self, meta: &Meta) -> io::Result<PathBuf> {
        let (file, meta) = (self.clone(), meta.clone());
        self.aside(move || file.snapshots.adopt(&file.path, &meta)).await.flatten()
    }

    /// Returns the content, and whether the snapshot was received. Reads on a thread that may wait for the disk.
    async fn load(&self) -> io::Result<(Loaded, bool)> {
        if let Some(loaded) = self.received.as_ref().and_then(|received| received.lock().take()) {
            return Ok((loaded, true));
        }
        let file = self.clone();
        let loaded = self.snapshots.aside(move || file.snapshots.load(&file.path)).await?;
        Ok((loaded.map_err(io::Error::other)?, false))
    }
}

impl std::fmt::Debug for SnapshotFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SnapshotFile({})", self.path.display())
    }
}

fn snapshot_meta(meta: &Meta) -> io::Result<SnapshotMeta> {
    let unreadable = || io::Error::other("the membership of a snapshot cannot be read");
    let last_membership = types::read_stored_membership(&meta.membership).ok_or_else(unreadable)?;
    Ok(SnapshotMeta { last_log_id: meta.last.map(types::log_id), last_membership })
}

type Snapshot = SnapshotOf<TypeConfig, SnapshotFile>;
type SnapshotMeta = SnapshotMetaOf<TypeConfig>;

/// The state machine of one group.
pub(crate) struct StateMachine {
    applier: Applier,
    last: Option<LogIdentity>,
    membership: StoredMembership,
    snapshots: Snapshots,
    /// The newest snapshot that is durable.
    current: Option<(SnapshotMeta, PathBuf)>,
    /// Whether openraft has yet to be told of it.
    unannounced: bool,
    /// The index of the last entry that is applied.
    progress: watch::Sender<u64>,
}

impl StateMachine {
    /// Opens the state machine with the content of the newest snapshot, or empty when there is none.
    ///
    /// # Errors
    /// Fails when the snapshot is damaged.
    pub(crate) async fn open(applier: Applier, snapshots: Snapshots) -> io::Result<StateMachine> {
        let newest = snapshots.newest().map_err(io::Error::other)?;
        let membership = StoredMembership::default();
        let progress = watch::Sender::new(0);
        let mut machine =
            StateMachine { applier, last: None, membership, snapshots, current: None, unannounced: false, progress };
        if let Some(path) = newest {
            let (snapshots, from) = (machine.snapshots.clone(), path.clone());
            let loaded = machine.snapshots.aside(move || snapshots.load(&from)).await?.map_err(io::Error::other)?;
            machine.restore(loaded, path).await?;
        }
        Ok(machine)
    }

    async fn restore(&mut self, loaded: Loaded, path: PathBuf) -> io::Result<()> {
        let Loaded { meta, shards } = loaded;
        let SnapshotMeta { last_log_id, last_membership } = snapshot_meta(&meta)?;
        let contents = self.applier.contents(meta.begun, shards);
        // The thread of the store serves other groups meanwhile.
        let prepare = || contents.into_iter().map(|(id, shard, content)| (id, shard.clone(), shard.prepare(content)));
        let prepared = self.snapshots.aside(move || prepare().collect()).await?;
        let before = self.applier.adopt(meta.base, prepared);
        self.snapshots.aside(move || drop(before)).await?;
        (self.last, self.membership) = (last_log_id, last_membership);
        self.current = Some((self.meta(), path));
        self.report_progress();
        Ok(())
    }

    /// Returns a receiver of the index of the last entry that is applied.
    pub(crate) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    fn report_progress(&self) {
        if let Some(last) = &self.last {
            self.progress.send_replace(last.index());
        }
    }

    fn meta(&self) -> SnapshotMeta {
        SnapshotMeta { last_log_id: self.last, last_membership: self.membership.clone() }
    }

    /// Returns the last entry that is applied.
    pub(super) fn last(&self) -> Option<LogIdentity> {
        self.last
    }

    /// Returns the last entry that the newest snapshot includes.
    pub(super) fn restored(&self) -> Option<LogIdentity> {
        self.current.as_ref().and_then(|(meta, _)| meta.last_log_id)
    }

    pub(super) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Applies entries for which no caller waits, and drops history that exceeds its bound.
    pub(super) async fn replay(&mut self, entries: Vec<Entry>) -> io::Result<()> {
        self.apply(stream::iter(entries.into_iter().map(|entry| Ok((entry, None))))).await?;
        self.applier.bound_history();
        Ok(())
    }

    /// Returns the membership according to the applied entries.
    pub(super) fn membership(&self) -> &Membership<u64, Replica> {
        self.membership.membership()
    }

    /// Returns the part that applies batches to tables.
    pub(crate) fn applier(&mut self) -> &mut Applier {
        &mut self.applier
    }

    /// Captures the applied state for a snapshot, which is written while more entries are applied.
    pub(crate) fn capture(&self) -> Building {
        let captured = self.applier.capture(SNAPSHOT_WRITE_TIMEOUT);
        Building { meta: self.meta(), captured, snapshots: self.snapshots.clone() }
    }

    /// Records that a snapshot is durable, so that openraft can be told of it.
    pub(crate) fn announce(&mut self, meta: SnapshotMeta, path: PathBuf) {
        if self.current.as_ref().is_none_or(|(current, _)| current.last_log_id < meta.last_log_id) {
            self.current = Some((meta, path));
            self.unannounced = true;
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let (meta, path) = self.current.clone()?;
        Some(Snapshot { meta, snapshot: SnapshotFile::new(&self.snapshots, path) })
    }

    async fn apply_together(
        &mut self,
        batches: Vec<Batch>,
        last: Option<LogIdentity>,
        responders: &mut Vec<(Option<ApplyResponder<TypeConfig>>, bool)>,
    ) -> io::Result<()> {
        let mut outcomes = self.applier.apply(batches).await?.into_iter();
        self.last = last;
        self.report_progress();
        for (responder, is_batch) in responders.drain(..) {
            let outcomes = if is_batch { outcomes.next().unwrap_or_default() } else { Vec::new() };
            if let Some(responder) = responder {
                responder.send(Applied(outcomes));
            }
        }
        Ok(())
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogIdentity>, StoredMembership), io::Error> {
        Ok((self.last, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let (mut batches, mut responders, mut last) = (Vec::new(), Vec::new(), self.last);
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            last = Some(entry.log_id);
            let is_batch = match entry.payload {
                EntryPayload::Blank => false,
                EntryPayload::Normal(batch) => {
                    batches.push(batch);
                    true
                }
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(Some(entry.log_id), membership);
                    false
                }
            };
            responders.push((responder, is_batch));
            if responders.len() >= APPLY_ENTRIES_MAX {
                self.apply_together(std::mem::take(&mut batches), last, &mut responders).await?;
            }
        }
        self.apply_together(batches, last, &mut responders).await
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        if std::mem::take(&mut self.unannounced) {
            return self.snapshot().map(Builder::Written);
        }
        force.then(|| Builder::Unwritten(Some(self.capture())))
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder::Unwritten(Some(self.capture()))
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotFile) -> Result<(), io::Error> {
        if self.current.as_ref().is_some_and(|(current, _)| current == meta) && self.last >= meta.last_log_id {
            return Ok(()); // it was restored already when the store was opened
        }
        let (loaded, received) = snapshot.load().await?;
        let path = match received {
            true => snapshot.adopt(&loaded.meta).await?,
            false => snapshot.path,
        };
        self.restore(loaded, path).await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        if self.current.is_none()
            && let Some(path) = self.snapshots.newest().map_err(io::Error::other)?
        {
            let Loaded { meta, .. } = self.snapshots.load(&path).map_err(io::Error::other)?;
            self.current = Some((snapshot_meta(&meta)?, path));
        }
        Ok(self.snapshot())
    }
}

/// A snapshot whose content is captured and not written yet.
pub(crate) struct Building {
    meta: SnapshotMeta,
    captured: Captured,
    snapshots: Snapshots,
}

impl Building {
    /// Writes the snapshot on threads where that blocks nothing else.
    pub(crate) async fn write(self, pace: Pace) -> io::Result<(SnapshotMeta, PathBuf)> {
        let last = self.meta.last_log_id.as_ref().map(log_ref);
        let membership = types::put_stored_membership(&self.meta.last_membership);
        let meta = Meta { last, membership, begun: self.captured.begun, base: self.captured.base };
        let path = self.snapshots.write(meta, self.captured, pace).await.map_err(io::Error::other)?;
        Ok((self.meta, path))
    }
}

/// Hands a snapshot to openraft.
pub(crate) enum Builder {
    /// The snapshot is durable already.
    Written(Snapshot),
    /// The snapshot must be written now.
    Unwritten(Option<Building>),
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        match self {
            Builder::Written(snapshot) => Ok(snapshot.clone()),
            Builder::Unwritten(building) => {
                let building = building.take().ok_or_else(|| io::Error::other("the snapshot was written already"))?;
                let snapshots = building.snapshots.clone();
                let (meta, path) = building.write(Pace::Fast).await?;
                Ok(Snapshot { meta, snapshot: SnapshotFile::new(&snapshots, path) })
            }
        }
    }
}
