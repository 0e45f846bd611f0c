//! Decides when a group writes snapshots, and frees the log before them.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::{StartError, refused};
use super::log_store::LogStore;
use super::roster::Roster;
use super::state_machine::GroupRaft;
use super::types::Metrics;
use crate::limits::{
    SNAPSHOT_ANNOUNCED_TIMEOUT, SNAPSHOT_HELD_FACTOR, SNAPSHOT_RETRY_INTERVAL, SNAPSHOT_RETRY_INTERVAL_MAX,
};
use crate::snapshot::Pace;

/// The condition for the next snapshot.
#[derive(Default)]
struct SnapshotCondition {
    /// The bytes that had been appended when the last snapshot was started.
    begun_at: u64,
    /// The end of the pause after a failed snapshot, and the length of that pause.
    pause: Option<(Instant, Duration)>,
}

impl SnapshotCondition {
    fn is_pausing(&self) -> bool {
        self.pause.is_some_and(|(until, _)| Instant::now() < until)
    }

    /// Records that a snapshot could not be written, most likely because the disk is full. Another one starts only
    /// after a pause, which doubles each time. In the pause, the log can use the room that the failed one freed.
    fn failed(&mut self) {
        let last = self.pause.map(|(_, pause)| pause);
        let pause = last.map_or(SNAPSHOT_RETRY_INTERVAL, |last| (2 * last).min(SNAPSHOT_RETRY_INTERVAL_MAX));
        self.pause = Some((Instant::now() + pause, pause));
    }

    /// Records that a snapshot was written, which was started when `appended` bytes had been appended.
    fn written(&mut self, appended: u64) {
        *self = SnapshotCondition { begun_at: appended, pause: None };
    }
}

/// Writes the snapshots of a group.
pub(crate) struct Snapshotting {
    raft: GroupRaft,
    roster: Roster,
    log: LogStore,
    /// How far the log grows at least before a snapshot, in bytes.
    log_bytes: u64,
    /// The condition for the next snapshot; locked while one is being written.
    due: Mutex<SnapshotCondition>,
}

impl Snapshotting {
    pub(super) fn new(raft: GroupRaft, roster: Roster, log: LogStore, log_bytes: u64) -> Snapshotting {
        Snapshotting { raft, roster, log, log_bytes, due: Mutex::default() }
    }

    /// Returns whether the log has grown so much since the last snapshot that another may be due, and none is being
    /// written.
    pub(crate) fn has_grown(&self) -> bool {
        let is_due = |due: &SnapshotCondition| !due.is_pausing() && self.grown(due.begun_at) >= self.due_bytes();
        self.due.try_lock().is_ok_and(|due| is_due(&due))
    }

    /// Returns how far the log grows before a snapshot. This differs between members, so that they do not write
    /// snapshots at the same time.
    fn due_bytes(&self) -> u64 {
        let voters = self.roster.voters();
        let before = voters.iter().filter(|voter| **voter < self.roster.own()).count() as u64;
        self.log_bytes + self.log_bytes / 2 * before / (voters.len() as u64).max(1)
    }

    /// Returns how much the log has grown since `appended` bytes had been appended.
    fn grown(&self, appended: u64) -> u64 {
        // A group with few writes must not keep the log of other groups from being freed.
        (self.log.appended() - appended).max(self.log.held() / SNAPSHOT_HELD_FACTOR)
    }

    /// Writes a snapshot when the log has grown enough since the last one, and frees the log before it. When writing
    /// fails, as on a full disk, it is tried again after a pause.
    pub(crate) async fn write_when_due(&self) {
        let Ok(mut due) = self.due.try_lock() else { return };
        let (appended, grown) = (self.log.appended(), self.grown(due.begun_at));
        if grown < self.due_bytes() {
            return;
        }
        let live = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().object_bytes() })).await;
        if live.is_ok_and(|live| grown >= live as u64) {
            match self.write(Pace::Gentle).await {
                Ok(()) => due.written(appended),
                Err(_) => due.failed(),
            }
        }
    }

    /// Writes a snapshot, due or not, and frees the log before it.
    pub(crate) async fn write_now(&self) -> Result<(), StartError> {
        let mut due = self.due.lock().await;
        let appended = self.log.appended();
        self.write(Pace::Fast).await?;
        due.written(appended);
        Ok(())
    }

    async fn write(&self, pace: Pace) -> Result<(), StartError> {
        let started = Instant::now();
        let building = self.raft.with_state_machine(|machine| Box::pin(async { machine.capture() })).await;
        let building = building.map_err(refused)?;
        let written = building.write(pace).await;
        let (meta, path) = written.inspect_err(|error| tracing::warn!(%error, "a snapshot could not be written"))?;
        let index = meta.last_log_id.map(|last| last.index());
        let announced = self.raft.with_state_machine(move |machine| Box::pin(async { machine.announce(meta, path) }));
        announced.await.map_err(refused)?;
        self.raft.trigger().snapshot().await.map_err(refused)?;
        if let Some(index) = index {
            let built = self.raft.wait(Some(SNAPSHOT_ANNOUNCED_TIMEOUT));
            let known = move |metrics: &Metrics| metrics.snapshot.is_some_and(|snapshot| snapshot.index() >= index);
            built.metrics(known, "knows the snapshot").await.map_err(refused)?;
            self.raft.trigger().purge_log(index).await.map_err(refused)?;
        }
        tracing::info!(index, elapsed_ms = started.elapsed().as_millis() as u64, "wrote a snapshot");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failed_snapshot_is_tried_again_after_longer_and_longer_pauses() {
        let (mut due, began) = (SnapshotCondition::default(), Instant::now());
        let mut attempts = 0;
        while began.elapsed() < 10 * SNAPSHOT_RETRY_INTERVAL_MAX {
            if !due.is_pausing() {
                due.failed();
                attempts += 1;
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!((10..20).contains(&attempts), "{attempts} attempts");
        due.written(7);
        assert!(!due.is_pausing() && due.begun_at == 7);
    }
}
