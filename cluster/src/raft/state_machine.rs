//! Applies what is committed, and takes and installs snapshots.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use openraft::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};

use super::types::{self, Applied, LogIdentity, StoredMembership, TypeConfig, log_ref};
use crate::group::{Applier, Batch, Captured};
use crate::limits::{APPLY_ENTRIES_MAX, SNAPSHOT_WRITE_TIMEOUT};
use crate::snapshot::{Loaded, Meta, Snapshots};

/// A snapshot: a file of this replica.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotFile {
    snapshots: SnapshotsOf,
    path: PathBuf,
}

/// Where a snapshot file can be read; a replica that installs it copies it into its own place.
#[derive(Clone)]
struct SnapshotsOf(Snapshots);

impl std::fmt::Debug for SnapshotsOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshots")
    }
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
    /// Whether openraft has yet to learn of it.
    unannounced: bool,
}

impl StateMachine {
    /// The state of the newest snapshot, or none.
    ///
    /// # Errors
    /// The snapshot is damaged.
    pub(crate) async fn open(applier: Applier, snapshots: Snapshots) -> io::Result<StateMachine> {
        let newest = snapshots.newest().map_err(io::Error::other)?;
        let membership = StoredMembership::default();
        let mut machine =
            StateMachine { applier, last: None, membership, snapshots, current: None, unannounced: false };
        if let Some(path) = newest {
            let loaded = machine.snapshots.load(&path).map_err(io::Error::other)?;
            machine.restore(loaded, path).await?;
        }
        Ok(machine)
    }

    async fn restore(&mut self, loaded: Loaded, path: PathBuf) -> io::Result<()> {
        let Loaded { meta, shards } = loaded;
        let membership = types::read_stored_membership(&meta.membership);
        self.membership = membership.ok_or_else(|| io::Error::other("the membership of a snapshot cannot be read"))?;
        self.last = meta.last.map(types::log_id);
        self.applier.restore(meta.base, shards).await?;
        self.current = Some((self.meta(), path));
        Ok(())
    }

    fn meta(&self) -> SnapshotMeta {
        SnapshotMeta { last_log_id: self.last, last_membership: self.membership.clone() }
    }

    /// The state machine's tables.
    pub(crate) fn applier(&mut self) -> &mut Applier {
        &mut self.applier
    }

    /// Begins a snapshot of what is applied, to be written while more is applied.
    pub(crate) fn capture(&self) -> Building {
        let captured = self.applier.capture(SNAPSHOT_WRITE_TIMEOUT);
        Building { meta: self.meta(), captured, snapshots: self.snapshots.clone() }
    }

    /// A snapshot is durable; openraft is to learn of it.
    pub(crate) fn announce(&mut self, meta: SnapshotMeta, path: PathBuf) {
        if self.current.as_ref().is_none_or(|(current, _)| current.last_log_id < meta.last_log_id) {
            self.current = Some((meta, path));
            self.unannounced = true;
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let (meta, path) = self.current.clone()?;
        let snapshot = SnapshotFile { snapshots: SnapshotsOf(self.snapshots.clone()), path };
        Some(Snapshot { meta, snapshot })
    }

    async fn apply_together(
        &mut self,
        batches: Vec<Batch>,
        responders: &mut Vec<(Option<ApplyResponder<TypeConfig>>, bool)>,
    ) -> io::Result<()> {
        let mut outcomes = self.applier.apply(batches.into()).await?.into_iter();
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
        let (mut batches, mut responders) = (Vec::new(), Vec::new());
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            self.last = Some(entry.log_id);
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
                self.apply_together(std::mem::take(&mut batches), &mut responders).await?;
            }
        }
        self.apply_together(batches, &mut responders).await
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        if std::mem::take(&mut self.unannounced) {
            return self.snapshot().map(Builder::Written);
        }
        force.then(|| Builder::Unwritten(Arc::new(self.capture())))
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder::Unwritten(Arc::new(self.capture()))
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotFile) -> Result<(), io::Error> {
        if self.current.as_ref().is_some_and(|(current, _)| current == meta) && self.last >= meta.last_log_id {
            return Ok(()); // it is what was restored when opening
        }
        let loaded = snapshot.snapshots.0.load(&snapshot.path).map_err(io::Error::other)?;
        self.restore(loaded, snapshot.path).await?;
        // The state machine is the snapshot now, so that writing it copies the snapshot.
        let built = self.capture().write()?;
        self.current = Some(built);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        if self.current.is_none()
            && let Some(path) = self.snapshots.newest().map_err(io::Error::other)?
        {
            let Loaded { meta, .. } = self.snapshots.load(&path).map_err(io::Error::other)?;
            let membership = types::read_stored_membership(&meta.membership).unwrap_or_default();
            let meta = SnapshotMeta { last_log_id: meta.last.map(types::log_id), last_membership: membership };
            self.current = Some((meta, path));
        }
        Ok(self.snapshot())
    }
}

/// A snapshot that has its content and is not written yet.
pub(crate) struct Building {
    meta: SnapshotMeta,
    captured: Captured,
    snapshots: Snapshots,
}

impl Building {
    /// Writes the snapshot; takes as long as the disk does.
    pub(crate) fn write(&self) -> io::Result<(SnapshotMeta, PathBuf)> {
        let last = self.meta.last_log_id.as_ref().map(log_ref);
        let membership = types::put_stored_membership(&self.meta.last_membership);
        let meta = Meta { last, membership, base: self.captured.base };
        let path = self.snapshots.write(&meta, &self.captured).map_err(io::Error::other)?;
        Ok((self.meta.clone(), path))
    }
}

/// Hands a snapshot to openraft.
pub(crate) enum Builder {
    /// It is durable already.
    Written(Snapshot),
    /// It is to be written now.
    Unwritten(Arc<Building>),
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        match self {
            Builder::Written(snapshot) => Ok(snapshot.clone()),
            Builder::Unwritten(building) => {
                let building = building.clone();
                let snapshots = SnapshotsOf(building.snapshots.clone());
                let written = tokio::task::spawn_blocking(move || building.write()).await;
                let (meta, path) = written.map_err(io::Error::other)??;
                Ok(Snapshot { meta, snapshot: SnapshotFile { snapshots, path } })
            }
        }
    }
}
