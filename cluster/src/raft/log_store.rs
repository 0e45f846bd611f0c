//! The log of one group, stored in the write-ahead log that all groups share.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{Stream, stream};
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use parking_lot::Mutex;

use super::rest::Rest;
use super::types::{self, Entry, LogIdentity, TypeConfig, Vote, log_id, log_ref};
use crate::Revision;
use crate::limits::ENTRY_CACHE_BYTES;
use crate::wal::{Appender, Ballot, GroupId, GroupState, LogRef, Record, Wal, WalError};

/// Reads and writes the log of one group. Cheap to clone; all clones are the same log.
#[derive(Clone)]
pub(crate) struct LogStore {
    wal: Wal,
    group: GroupId,
    recent: Arc<Mutex<Recent>>,
    appended: Arc<AtomicU64>,
    /// Woken by every write.
    rest: Arc<Rest>,
}

/// The last entries in decoded form: they are soon read again, to be applied and replicated.
#[derive(Default)]
struct Recent {
    entries: VecDeque<(Entry, usize)>,
    bytes: usize,
}

impl Recent {
    fn get(&self, index: u64) -> Option<&Entry> {
        let first = self.entries.front()?.0.index();
        self.entries.get(usize::try_from(index.checked_sub(first)?).ok()?).map(|(entry, _)| entry)
    }

    fn push(&mut self, entry: Entry, bytes: usize) {
        self.bytes += bytes;
        self.entries.push_back((entry, bytes));
    }

    fn pop_front(&mut self) {
        self.bytes -= self.entries.pop_front().map_or(0, |(_, bytes)| bytes);
    }

    fn truncate_after(&mut self, last: Option<u64>) {
        while self.entries.back().is_some_and(|(entry, _)| last.is_none_or(|last| entry.index() > last)) {
            self.bytes -= self.entries.pop_back().map_or(0, |(_, bytes)| bytes);
        }
    }
}

fn damaged(error: WalError) -> io::Error {
    io::Error::other(error)
}

impl LogStore {
    pub(crate) fn new(wal: Wal, group: GroupId) -> LogStore {
        LogStore { wal, group, recent: Arc::default(), appended: Arc::default(), rest: Arc::default() }
    }

    /// Returns the index of the last entry that is known to be committed.
    pub(crate) fn committed(&self) -> Option<u64> {
        self.wal.state(self.group).committed.map(|committed| committed.index)
    }

    /// Returns the bytes appended since the log was opened.
    pub(crate) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the shared log that cannot be freed because of this group.
    pub(crate) fn held(&self) -> u64 {
        self.wal.held_by(self.group)
    }

    /// Returns whether the log has a different entry at this index.
    pub(super) fn differs(&self, from: LogRef) -> bool {
        self.wal.entry_at(self.group, from.index).is_some_and(|own| own != from)
    }

    /// Returns the number of the group in the log.
    pub(super) fn group(&self) -> GroupId {
        self.group
    }

    /// Returns the state of the group in the log, apart from its entries.
    pub(super) fn state(&self) -> GroupState {
        self.wal.state(self.group)
    }

    /// Returns the state that says whether the group rests.
    pub(super) fn rest(&self) -> &Arc<Rest> {
        &self.rest
    }

    pub(crate) fn wal(&self) -> &Wal {
        &self.wal
    }

    fn entry(&self, index: u64, buffer: &mut Vec<u8>) -> Result<Option<Entry>, io::Error> {
        if let Some(entry) = self.recent.lock().get(index) {
            return Ok(Some(entry.clone()));
        }
        let Some(entry) = self.wal.read(self.group, index, buffer, types::read_entry).map_err(damaged)? else {
            return Ok(None);
        };
        entry.map(Some).ok_or_else(|| io::Error::other(format!("the entry {index} cannot be read")))
    }

    /// Returns the largest revision that an entry of the log assigns or closes.
    pub(super) fn last_revision(&self) -> io::Result<Option<Revision>> {
        let mut buffer = Vec::new();
        for index in self.present(..).rev() {
            if let Some(last) = self.entry(index, &mut buffer)?.as_ref().and_then(types::last_revision) {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// Returns the part of a range of indexes that the log has.
    pub(super) fn present(&self, range: impl RangeBounds<u64>) -> std::ops::Range<u64> {
        let state = self.wal.state(self.group);
        let (Some(first), Some(last)) = (state.first_index, state.last) else { return 0..0 };
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        start.max(first)..end.min(last.index + 1)
    }

    pub(super) fn read(&self, indexes: std::ops::Range<u64>) -> impl Iterator<Item = io::Result<Entry>> + use<> {
        let (log, mut buffer) = (self.clone(), Vec::new());
        // A missing entry was purged meanwhile, which happens only at the beginning of the log.
        indexes.filter_map(move |index| log.entry(index, &mut buffer).transpose())
    }

    /// Appends records, and waits until they are durable.
    async fn write(&self, records: impl FnOnce(&mut Appender<'_>)) -> io::Result<()> {
        let (done, durable) = tokio::sync::oneshot::channel();
        let callback = Box::new(move |result| drop(done.send(result)));
        self.wal.append(self.group, Some(callback), records);
        durable.await.map_err(io::Error::other)?
    }

    /// Drops all entries when they do not lead to the last entry of the snapshot, before openraft reads the log: the
    /// log then continues after the snapshot. A process that ended while it installed the snapshot of another replica
    /// leaves such entries, and so does a leader of a later term whose entries were never committed.
    pub(super) async fn follow_snapshot(&self, last: LogRef) -> io::Result<()> {
        let state = self.wal.state(self.group);
        if state.purged.is_some_and(|purged| purged.index >= last.index) || self.wal.has(self.group, last) {
            return Ok(());
        }
        tracing::warn!(%last, log = ?state.last, "dropping the entries of a log that does not lead to its snapshot");
        let write = self.write(|appender| {
            appender.truncate(last.index.checked_sub(1));
            appender.record(&Record::Purge(last));
        });
        write.await
    }

    /// Appends an entry and a vote, before openraft reads the log, and waits until both are durable.
    pub(super) async fn add(&self, entry: Entry, ballot: Ballot) -> io::Result<()> {
        let write = self.write(|appender| {
            appender.entry(log_ref(&entry.log_id), |out| types::put_entry(&entry, out));
            appender.vote(ballot);
        });
        write.await
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<Entry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.read(self.present(range)).collect()
    }

    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        stream::iter(self.read(self.present(range)))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for entry in self.read(self.present(start..end)) {
            let entry = entry?;
            bytes += match &entry.payload {
                openraft::EntryPayload::Normal(batch) => batch.bytes(),
                _ => 0,
            };
            entries.push(entry);
            if bytes >= self.wal.frame_bytes() {
                break;
            }
        }
        Ok(entries)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.wal.state(self.group).vote.map(types::vote))
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let state = self.wal.state(self.group);
        Ok(LogState { last_purged_log_id: state.purged.map(log_id), last_log_id: state.last.map(log_id) })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.rest.note_event();
        if seeded!(ForgottenVote) {
            return Ok(());
        }
        self.write(|appender| appender.vote(types::ballot(vote))).await
    }

    async fn save_committed(&mut self, committed: Option<LogIdentity>) -> Result<(), io::Error> {
        // Becomes durable with the next write. Losing it costs nothing: after a restart the leader tells which entries
        // are committed.
        if let Some(committed) = committed {
            self.wal.append(self.group, None, |appender| appender.committed(log_ref(&committed)));
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogIdentity>, io::Error> {
        Ok(self.wal.state(self.group).committed.map(log_id))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.rest.note_event();
        let mut recent = self.recent.lock();
        let flushed = Box::new(move |result| callback.io_completed(result));
        self.wal.append(self.group, Some(flushed), |appender| {
            for entry in entries {
                let mut bytes = 0;
                appender.entry(log_ref(&entry.log_id), |out| {
                    let start = out.len();
                    types::put_entry(&entry, out);
                    bytes = out.len() - start;
                });
                self.appended.fetch_add(bytes as u64, Ordering::Relaxed);
                recent.push(entry, bytes);
            }
        });
        while recent.bytes > ENTRY_CACHE_BYTES {
            let Some(first) = recent.entries.front().map(|(entry, _)| entry.index()) else { break };
            if !self.wal.is_written(self.group, first) {
                break;
            }
            recent.pop_front();
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogIdentity>) -> Result<(), io::Error> {
        self.rest.note_event();
        let last = last.map(|last| last.index());
        self.recent.lock().truncate_after(last);
        // A snapshot that contradicts the truncated entries may be installed next, so the truncation must be durable
        // first.
        self.write(|appender| appender.truncate(last)).await
    }

    async fn purge(&mut self, last: LogIdentity) -> Result<(), io::Error> {
        let mut recent = self.recent.lock();
        while recent.entries.front().is_some_and(|(entry, _)| entry.index() <= last.index()) {
            recent.pop_front();
        }
        self.wal.purge(self.group, log_ref(&last));
        Ok(())
    }
}
