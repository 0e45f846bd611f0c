//! Applies the log of a group when a store is opened, before openraft starts.
//!
//! Openraft would apply it too, but reads, decodes and applies one piece after the other. Here some threads read and
//! decode the next entries while the store's thread applies the ones before. For the default group, which has most
//! tables, the replay begins while the log is still being read, with the entries that are known to be committed.

use std::collections::VecDeque;
use std::io;

use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc;

use super::log_store::LogStore;
use super::state_machine::StateMachine;
use super::types::{self, Entry, log_ref};
use crate::limits::{OPENING_PROGRESS_INTERVAL, REPLAY_CHUNK_BYTES, REPLAY_CHUNKS_MAX};
use crate::progress::Progress;
use crate::wal::{Announced, EntryOnDisk, LogRef, WalError};

/// Entries that are read, decoded and applied together.
struct Chunk {
    entries: Vec<EntryOnDisk>,
    /// How many entries there are in all, as far as is known by now.
    known: u64,
}

impl StateMachine {
    /// Applies the group's entries that are announced while the log is being read, as long as they follow the present
    /// state without a gap.
    ///
    /// # Errors
    /// Fails when the log cannot be read, or revokes entries that it announced as committed.
    pub(crate) async fn follow(&mut self, announced: mpsc::Receiver<Announced>) -> io::Result<()> {
        let ahead = AnnouncedEntries { announced, queue: ReplayQueue::after(self.last().map(|last| log_ref(&last))) };
        self.take_all(stream::unfold(ahead, async |mut ahead| Some((ahead.next().await?, ahead)))).await
    }

    /// Applies the remaining entries of the log that are known to be committed.
    ///
    /// # Errors
    /// Fails when the log cannot be read.
    pub(super) async fn catch_up(&mut self, log: &LogStore) -> io::Result<()> {
        let Some(committed) = log.state().committed.filter(|committed| log.wal().has(log.group(), *committed)) else {
            return Ok(());
        };
        let first = self.last().map_or(0, |last| last.index() + 1);
        let entries =
            log.present(first..committed.index + 1).map_while(|index| log.wal().entry_on_disk(log.group(), index));
        let mut queue = ReplayQueue::after(self.last().map(|last| log_ref(&last)));
        queue.add(entries);
        self.take_all(stream::iter(std::iter::from_fn(move || queue.chunk().map(Ok)))).await
    }

    async fn take_all(&mut self, chunks: impl Stream<Item = io::Result<Chunk>>) -> io::Result<()> {
        let snapshots = self.snapshots().clone();
        let read = async |chunk: io::Result<Chunk>| {
            let Chunk { entries, known } = chunk?;
            Ok::<_, io::Error>((snapshots.aside(move || decoded(&entries)).await??, known))
        };
        let what = "applying the entries of the write-ahead log";
        let mut progress = Progress::of(what, 0, OPENING_PROGRESS_INTERVAL);
        let chunks = chunks.map(read).buffered(REPLAY_CHUNKS_MAX);
        futures_util::pin_mut!(chunks);
        while let Some(chunk) = chunks.next().await {
            let (entries, known) = chunk?;
            self.replay(entries).await?;
            progress.know(known);
            progress.at(self.last().map_or(0, |last| last.index() + 1));
        }
        Ok(())
    }
}

fn decoded(entries: &[EntryOnDisk]) -> io::Result<Vec<Entry>> {
    let mut buffer = Vec::new();
    let mut read =
        |entry: &EntryOnDisk| -> Result<Option<Entry>, WalError> { entry.read(&mut buffer, types::read_entry) };
    let unreadable = |at: LogRef| io::Error::other(format!("the entry {at} cannot be read"));
    let decode = |entry: &EntryOnDisk| read(entry).map_err(io::Error::other)?.ok_or_else(|| unreadable(entry.at));
    entries.iter().map(decode).collect()
}

/// Entries to be applied, in order and without a gap.
struct ReplayQueue {
    /// The last entry that is applied already.
    last: Option<LogRef>,
    waiting: VecDeque<EntryOnDisk>,
    /// The size of the waiting entries, in bytes.
    bytes: usize,
    /// The index of the next entry.
    next: u64,
    /// Whether the queue takes no more entries, because one contradicts the present state or follows a gap. Openraft
    /// applies it and those after it.
    ended: bool,
}

impl ReplayQueue {
    fn after(last: Option<LogRef>) -> ReplayQueue {
        let next = last.map_or(0, |last| last.index + 1);
        ReplayQueue { last, waiting: VecDeque::new(), bytes: 0, next, ended: false }
    }

    fn add(&mut self, entries: impl IntoIterator<Item = EntryOnDisk>) {
        for entry in entries {
            let is_other = self.last.is_some_and(|last| entry.at.index == last.index && entry.at != last);
            self.ended |= is_other || entry.at.index > self.next;
            if !self.ended && entry.at.index == self.next {
                self.next += 1;
                self.bytes += entry.length();
                self.waiting.push_back(entry);
            }
        }
    }

    fn chunk(&mut self) -> Option<Chunk> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while bytes < REPLAY_CHUNK_BYTES
            && let Some(entry) = self.waiting.pop_front()
        {
            bytes += entry.length();
            entries.push(entry);
        }
        self.bytes -= bytes;
        (!entries.is_empty()).then_some(Chunk { entries, known: self.next })
    }
}

/// The entries of a log that is still being read.
struct AnnouncedEntries {
    announced: mpsc::Receiver<Announced>,
    queue: ReplayQueue,
}

impl AnnouncedEntries {
    /// Returns the next chunk, once it is full or the log has ended.
    async fn next(&mut self) -> Option<io::Result<Chunk>> {
        while !self.queue.ended && self.queue.bytes < REPLAY_CHUNK_BYTES {
            match self.announced.recv().await {
                Some(Announced::Entries(entries)) => self.queue.add(entries),
                Some(Announced::Void) => {
                    return Some(Err(io::Error::other("the log revokes entries that it announced as committed")));
                }
                None => break,
            }
        }
        self.queue.chunk().map(Ok)
    }
}
