//! The write-ahead log of one data directory. All groups share it, so that one fsync serves them all.
//!
//! The log is a sequence of preallocated segments. A segment has [`frame`]s, each of which was made durable by one
//! fsync; a frame has [`record`]s. A [`ledger`] per group indexes the records. [`recovery`] reads the log back, through
//! a [`window`]; [`writer`] writes it, on a thread that [`runner`] starts.
//!
//! - Space is reserved before anything is proposed ([`room`]): an admitted write always finds room.
//! - Everything found when the log is opened is made durable before any of it is acknowledged.
//! - The frame that was being written when the machine stopped is cut off. Damage anywhere else is an error.
//! - After a failed write or fsync nothing is retried, because the content of the disk is unknown then.

mod draft;
#[cfg(test)]
mod durability_tests;
#[cfg(test)]
mod encrypted_tests;
mod entry_on_disk;
mod error;
mod frame;
mod ledger;
pub(crate) mod reach;
mod record;
mod recovery;
mod room;
#[cfg(test)]
mod room_tests;
mod runner;
mod segment;
#[cfg(test)]
pub(crate) mod simulated_runner;
#[cfg(test)]
mod wal_tests;
mod window;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

pub(crate) use self::draft::Appender;
use self::draft::Draft;
pub(crate) use self::entry_on_disk::{Announced, Announcer, EntryOnDisk};
pub use self::error::WalError;
use self::ledger::Ledger;
pub(crate) use self::record::{Ballot, LogRef, Record};
pub(crate) use self::recovery::{Recovered, is_begun, missing_end};
use self::runner::RunningLog;
pub(crate) use self::runner::{LogRunner, Threads};
use crate::disk::{Disk, DiskFile, PAGE};
use crate::limits::WAL_FRAME_BYTES;

/// Frames begin at multiples of this, so that no header straddles two sectors.
const ALIGNMENT: usize = 64;

/// The number of a group within the log.
pub(crate) type GroupId = u16;

/// Called once the appended records are durable, or with the error that prevents it.
pub(crate) type Callback = Box<dyn FnOnce(io::Result<()>) + Send>;

/// Options of the log.
#[derive(Clone)]
pub(crate) struct WalOptions {
    pub(crate) directory: PathBuf,
    /// Size of each segment, in bytes.
    pub(crate) segment_bytes: u64,
    /// Called on the writer's thread when a write or fsync failed.
    pub(crate) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    /// Runs the writer and the preparer.
    pub(crate) runner: Arc<dyn LogRunner>,
}

impl WalOptions {
    /// Returns the size of each segment in bytes: whole pages, and at least four.
    fn whole_segment_bytes(&self) -> u64 {
        self.segment_bytes.max(4 * PAGE as u64).next_multiple_of(PAGE as u64)
    }
}

/// The queue of the writer.
struct DraftQueue {
    /// Complete drafts, and last the one that is being filled.
    drafts: std::collections::VecDeque<Draft>,
    /// A buffer for reuse.
    spare: Vec<u8>,
    /// Whether a caller waits until the queued records are durable.
    flush: bool,
    closing: bool,
    failed: bool,
}

/// A segment whose entries can be read.
struct Segment {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

/// The segments by number.
type Segments = BTreeMap<u64, Arc<Segment>>;

/// The state that the writer, the preparer and the readers share.
struct Shared {
    options: WalOptions,
    disk: Arc<dyn Disk>,
    /// The names of the groups, by number. Locked only for a moment, and never while waiting for a lock below.
    names: Mutex<Vec<String>>,
    queue: Mutex<DraftQueue>,
    queued: Condvar,
    ledgers: Mutex<Vec<Ledger>>,
    segments: Mutex<Segments>,
    spare: segment::SpareSegment,
    /// Bytes left in the active segment.
    active_left: AtomicU64,
    reserved: AtomicUsize,
    /// Notified when a caller must wait because the disk is too slow.
    behind: Notify,
    /// Bytes written, including headers and padding.
    written: AtomicU64,
    flushes: AtomicU64,
    /// Nanoseconds that writing and flushing took.
    flushing: AtomicU64,
}

impl Shared {
    /// Returns the bytes after which a frame takes no further record.
    fn frame_bytes(&self) -> usize {
        WAL_FRAME_BYTES.min(self.options.segment_bytes as usize / 4)
    }
}

/// A handle on the log. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Wal {
    shared: Arc<Shared>,
    running: Arc<Mutex<Option<Box<dyn RunningLog>>>>,
    is_new: bool,
}

impl Wal {
    /// Opens the log of a directory. Each group is numbered by its position in `groups`; other groups with entries in
    /// the log are numbered after them.
    #[cfg(test)]
    pub(crate) fn open(disk: Arc<dyn Disk>, options: WalOptions, groups: &[Arc<str>]) -> Result<Wal, WalError> {
        let recovered = Recovered::read(&*disk, &options, groups, None)?;
        Wal::start(disk, options, recovered)
    }

    /// Starts writing to a log that was read.
    pub(crate) fn start(disk: Arc<dyn Disk>, mut options: WalOptions, recovered: Recovered) -> Result<Wal, WalError> {
        options.segment_bytes = options.whole_segment_bytes();
        let is_new = recovered.is_new;
        let queue = DraftQueue {
            drafts: [Draft::new(Vec::new())].into(),
            spare: Vec::new(),
            flush: false,
            closing: false,
            failed: false,
        };
        let left = recovered.active.size.saturating_sub(recovered.active.offset);
        let shared = Arc::new(Shared {
            spare: segment::SpareSegment::default(),
            options,
            disk,
            names: Mutex::new(recovered.names),
            queue: Mutex::new(queue),
            queued: Condvar::new(),
            ledgers: Mutex::new(recovered.ledgers),
            segments: Mutex::new(recovered.segments),
            active_left: AtomicU64::new(left),
            reserved: AtomicUsize::new(0),
            behind: Notify::new(),
            written: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            flushing: AtomicU64::new(0),
        });
        let (writer, preparer) = writer::over(&shared, recovered.active);
        let failed = |source| WalError::Io { path: shared.options.directory.clone(), source };
        let running = shared.options.runner.start(writer, preparer).map_err(failed)?;
        shared.spare.want();
        Ok(Wal { shared, running: Arc::new(Mutex::new(Some(running))), is_new })
    }

    /// Returns whether there was no log before it was opened.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns how many bytes of entries one append may have, not counting its last entry: they all go into one frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.shared.frame_bytes()
    }

    /// Returns the size of each segment, in bytes.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.shared.options.segment_bytes
    }

    /// Returns the names of the groups that the log knows.
    pub(crate) fn groups(&self) -> Vec<String> {
        self.shared.names.lock().clone()
    }

    /// Returns the number of a group, and adds the group to the log if it is new.
    pub(crate) fn group(&self, name: &str) -> GroupId {
        let mut queue = self.shared.queue.lock();
        let number = {
            let mut names = self.shared.names.lock();
            if let Some(number) = names.iter().position(|known| known == name) {
                return number as GroupId;
            }
            names.push(name.to_owned());
            (names.len() - 1) as GroupId
        };
        self.shared.ledgers.lock().push(Ledger::default());
        // This record is repeated at the beginning of every later segment.
        if queue.drafts.is_empty() {
            queue.drafts.push_back(Draft::new(Vec::new()));
        }
        if let Some(draft) = queue.drafts.back_mut() {
            Record::Group(name).encode(number, &mut draft.frame);
        }
        number
    }

    /// Appends records of a group, and calls back once they are durable. Without a callback they become durable with
    /// later records that have one.
    pub(crate) fn append(&self, group: GroupId, callback: Option<Callback>, records: impl FnOnce(&mut Appender<'_>)) {
        self.fill(callback, |draft, ledgers| {
            records(&mut Appender { group, draft, ledger: &mut ledgers[usize::from(group)] });
        });
    }

    /// Adds records to the frame that is being filled, and to the ledgers.
    fn fill(&self, callback: Option<Callback>, records: impl FnOnce(&mut Draft, &mut [Ledger])) {
        let mut queue = self.shared.queue.lock();
        if queue.failed || queue.closing {
            drop(queue);
            callback.into_iter().for_each(|callback| callback(Err(io::Error::other("the log is closed"))));
            return;
        }
        let full = queue.drafts.back().is_none_or(|draft| draft.frame.len() > self.shared.frame_bytes());
        if full {
            queue.drafts.push_back(Draft::new(Vec::new()));
        }
        let flush = callback.is_some();
        if let Some(draft) = queue.drafts.back_mut() {
            records(draft, &mut self.shared.ledgers.lock());
            draft.callbacks.extend(callback);
        }
        self.signal(queue, flush);
    }

    fn signal(&self, mut queue: MutexGuard<'_, DraftQueue>, flush: bool) {
        if flush && !queue.flush {
            queue.flush = true;
            drop(queue);
            self.shared.queued.notify_one();
        }
    }

    /// Drops entries up to `at`, which a durable snapshot includes, and frees segments that are not needed any more.
    pub(crate) fn purge(&self, group: GroupId, at: LogRef) {
        self.fill(Some(Box::new(|_| {})), |draft, ledgers| {
            Appender { group, draft, ledger: &mut ledgers[usize::from(group)] }.record(&Record::Purge(at));
            // Records that wait to be written will be in the newest segment or a later one.
            let newest = self.shared.segments.lock().last_key_value().map(|(number, _)| *number);
            draft.needed = ledgers.iter().filter_map(Ledger::oldest_segment).chain(newest).min();
        });
    }

    /// Returns the state of a group in the log, apart from its entries.
    pub(crate) fn state(&self, group: GroupId) -> GroupState {
        let ledgers = self.shared.ledgers.lock();
        let ledger = &ledgers[group as usize];
        let (vote, committed, purged) = (ledger.vote, ledger.committed, ledger.purged);
        GroupState { vote, committed, purged, last: ledger.last(), first_index: ledger.first_index() }
    }

    /// Returns the entry of a group at an index. Returns `None` when it is not in the log.
    pub(crate) fn entry_at(&self, group: GroupId, index: u64) -> Option<LogRef> {
        Some(self.shared.ledgers.lock()[usize::from(group)].entry(index)?.at)
    }

    /// Reads an entry from disk with `decode`, through a buffer that grows as needed. `None` when the log does not have
    /// the entry or it is not on disk yet.
    pub(crate) fn read<T>(
        &self,
        group: GroupId,
        index: u64,
        buffer: &mut Vec<u8>,
        decode: impl FnOnce(LogRef, &[u8]) -> T,
    ) -> Result<Option<T>, WalError> {
        self.entry_on_disk(group, index).map(|entry| entry.read(buffer, decode)).transpose()
    }

    /// Returns the position of an entry on disk. `None` when the log does not have the entry or it is not on disk yet.
    pub(crate) fn entry_on_disk(&self, group: GroupId, index: u64) -> Option<EntryOnDisk> {
        let entry = self.shared.ledgers.lock()[group as usize].entry(index)?;
        EntryOnDisk::of(entry.at, entry.position?, &self.shared.segments.lock())
    }

    /// Returns the bytes of the log, of any groups, that cannot be freed because of the oldest entry of a group.
    pub(crate) fn held_by(&self, group: GroupId) -> u64 {
        let oldest = self.shared.ledgers.lock()[group as usize].oldest_segment();
        let newest = self.shared.segments.lock().keys().max().copied();
        let (Some(oldest), Some(newest)) = (oldest, newest) else { return 0 };
        newest.saturating_sub(oldest) * self.shared.options.segment_bytes
    }

    /// Returns whether an entry is on disk, so that [`Wal::read`] finds it.
    pub(crate) fn is_written(&self, group: GroupId, index: u64) -> bool {
        self.shared.ledgers.lock()[group as usize].entry(index).is_some_and(|entry| entry.position.is_some())
    }

    /// Returns whether the log has an entry, on disk or not yet.
    pub(crate) fn has(&self, group: GroupId, at: LogRef) -> bool {
        self.shared.ledgers.lock()[group as usize].entry(at.index).is_some_and(|entry| entry.at == at)
    }

    /// Returns counters since the log was opened, and present sizes.
    pub(crate) fn usage(&self) -> WalUsage {
        let shared = &self.shared;
        let segments = shared.segments.lock().len();
        WalUsage {
            segments,
            disk_bytes: segments as u64 * shared.options.segment_bytes,
            bytes_written: shared.written.load(Ordering::Relaxed),
            flushes: shared.flushes.load(Ordering::Relaxed),
            flushing: Duration::from_nanos(shared.flushing.load(Ordering::Relaxed)),
            entries: shared.ledgers.lock().iter().map(Ledger::len).sum(),
        }
    }

    /// Writes everything that is queued, and closes the files.
    pub(crate) fn close(&self) {
        self.shared.queue.lock().closing = true;
        self.shared.queued.notify_one();
        let running = self.running.lock().take();
        running.into_iter().for_each(RunningLog::finish);
    }
}

/// The state of a group in the log, apart from its entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupState {
    pub(crate) vote: Option<Ballot>,
    pub(crate) committed: Option<LogRef>,
    pub(crate) purged: Option<LogRef>,
    /// The last entry, or the last purged one when there is none.
    pub(crate) last: Option<LogRef>,
    pub(crate) first_index: Option<u64>,
}

/// Counters since the log was opened, and present sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalUsage {
    /// The number of segments on disk.
    pub segments: usize,
    /// The size of the segments on disk, in bytes.
    pub disk_bytes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// The number of flushes, each of which made written bytes durable.
    pub flushes: u64,
    /// The time that writing and flushing took in all.
    pub flushing: Duration,
    /// The number of entries that no snapshot supersedes.
    pub entries: usize,
}
