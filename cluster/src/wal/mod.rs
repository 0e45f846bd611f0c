//! The write-ahead log of one data directory, shared by all groups, so that one fsync serves them all.
//!
//! It is a sequence of preallocated segments; a segment holds [`frame`]s, of which each was made durable by one
//! fsync; a frame holds [`record`]s. A [`ledger`] per group says what the records add up to. [`recovery`] reads the
//! log back, [`writer`] writes it, on a thread that [`drive`] starts.
//!
//! - Space is reserved before anything is proposed ([`room`]): what was let in always finds room.
//! - What is found when it is opened is made durable before anything of it is acknowledged.
//! - The frame that was being written when the machine stopped is cut off; damage anywhere else is refused.
//! - After a failed write or fsync nothing is retried, because what the disk then holds is unknown.

pub(crate) mod disk;
mod draft;
mod drive;
#[cfg(test)]
mod durability_tests;
mod error;
mod frame;
mod ledger;
mod pages;
mod place;
mod reach;
mod record;
mod recovery;
mod room;
#[cfg(test)]
mod room_tests;
mod segment;
#[cfg(test)]
pub(crate) mod simulated_disk;
#[cfg(test)]
pub(crate) mod simulated_drive;
#[cfg(test)]
mod wal_tests;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

use self::disk::{Disk, DiskFile};
pub(crate) use self::draft::Appender;
use self::draft::Draft;
use self::drive::Driven;
pub(crate) use self::drive::{Drive, Threads};
pub use self::error::WalError;
use self::ledger::Ledger;
pub(crate) use self::pages::Pages;
pub(crate) use self::place::{Announced, Announcer, Place};
pub(crate) use self::record::{Ballot, LogRef, Record};
pub(crate) use self::recovery::{Recovered, is_begun, missing_end};
use crate::limits::WAL_FRAME_BYTES;

/// Frames begin at multiples of this, so that no header straddles two sectors.
const ALIGNMENT: usize = 64;
/// Segments are written in whole pages, so that the system never has to read the rest of one first.
pub(crate) const PAGE: usize = 4096;

/// Number of a group within the log.
pub(crate) type GroupId = u16;

/// Called once what was appended is durable, or with why it is not.
pub(crate) type Callback = Box<dyn FnOnce(io::Result<()>) + Send>;

/// How the log is kept.
#[derive(Clone)]
pub(crate) struct WalOptions {
    pub(crate) directory: PathBuf,
    /// Size of each segment, in bytes.
    pub(crate) segment_bytes: u64,
    /// Called on the writer's thread when a write or fsync failed.
    pub(crate) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    /// Who writes it.
    pub(crate) drive: Arc<dyn Drive>,
}

impl WalOptions {
    /// Size of each segment: pages, and some of them.
    fn whole_segment_bytes(&self) -> u64 {
        self.segment_bytes.max(4 * PAGE as u64).next_multiple_of(PAGE as u64)
    }
}

/// What waits for the writer.
struct Queue {
    /// Whole drafts, and last the one that is being filled.
    drafts: std::collections::VecDeque<Draft>,
    /// A buffer to be used again.
    spare: Vec<u8>,
    /// Somebody waits for what is queued to be durable.
    flush: bool,
    closing: bool,
    failed: bool,
}

/// A segment with entries that can be read.
struct Segment {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

/// The segments by their numbers.
type Segments = BTreeMap<u64, Arc<Segment>>;

/// What the writer, the preparer and the readers share.
struct Shared {
    options: WalOptions,
    disk: Arc<dyn Disk>,
    /// Names of the groups, by their numbers. Held only for a moment, and never while a lock below is waited for.
    names: Mutex<Vec<String>>,
    queue: Mutex<Queue>,
    queued: Condvar,
    ledgers: Mutex<Vec<Ledger>>,
    segments: Mutex<Segments>,
    spare: segment::Spare,
    /// Bytes that are left in the active segment.
    active_left: AtomicU64,
    reserved: AtomicUsize,
    /// Told when somebody waits because the disk is too slow.
    behind: Notify,
    /// Bytes written, including what segments and frames add.
    written: AtomicU64,
    flushes: AtomicU64,
    /// Nanoseconds that these took.
    flushing: AtomicU64,
}

impl Shared {
    /// Bytes after which a frame takes no further record.
    fn frame_bytes(&self) -> usize {
        WAL_FRAME_BYTES.min(self.options.segment_bytes as usize / 4)
    }
}

/// A handle on the log. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Wal {
    shared: Arc<Shared>,
    driven: Arc<Mutex<Option<Box<dyn Driven>>>>,
    is_new: bool,
}

impl Wal {
    /// Opens the log of a directory, for these groups, whose places in `groups` are their numbers from now on. Groups
    /// that it has entries of besides are numbered after them.
    #[cfg(test)]
    pub(crate) fn open(disk: Arc<dyn Disk>, options: WalOptions, groups: &[Arc<str>]) -> Result<Wal, WalError> {
        let recovered = Recovered::read(&*disk, &options, groups, None)?;
        Wal::start(disk, options, recovered)
    }

    /// Goes on with a log that was read.
    pub(crate) fn start(disk: Arc<dyn Disk>, mut options: WalOptions, recovered: Recovered) -> Result<Wal, WalError> {
        options.segment_bytes = options.whole_segment_bytes();
        let is_new = recovered.is_new;
        let queue = Queue {
            drafts: [Draft::new(Vec::new())].into(),
            spare: Vec::new(),
            flush: false,
            closing: false,
            failed: false,
        };
        let left = recovered.active.size.saturating_sub(recovered.active.offset);
        let shared = Arc::new(Shared {
            spare: segment::Spare::default(),
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
        let driven = shared.options.drive.start(writer, preparer).map_err(failed)?;
        shared.spare.want();
        Ok(Wal { shared, driven: Arc::new(Mutex::new(Some(driven))), is_new })
    }

    /// Whether there was no log before it was opened.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// How many bytes of entries are appended at once at most, and one more entry: they go into one frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.shared.frame_bytes()
    }

    /// Size of each segment, in bytes.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.shared.options.segment_bytes
    }

    /// The names of the groups that the log knows.
    pub(crate) fn groups(&self) -> Vec<String> {
        self.shared.names.lock().clone()
    }

    /// The number of a group, which is made known to the log if it was not.
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
        // What this frame begins with is repeated at the beginning of every later segment.
        if queue.drafts.is_empty() {
            queue.drafts.push_back(Draft::new(Vec::new()));
        }
        if let Some(draft) = queue.drafts.back_mut() {
            Record::Group(name).encode(number, &mut draft.frame);
        }
        number
    }

    /// Appends records of a group, and calls back once they are durable. Without a callback they become so with the
    /// next records that have one.
    pub(crate) fn append(&self, group: GroupId, callback: Option<Callback>, records: impl FnOnce(&mut Appender<'_>)) {
        self.fill(callback, |draft, ledgers| {
            records(&mut Appender { group, draft, ledger: &mut ledgers[usize::from(group)] });
        });
    }

    /// Adds to the frame that is being filled, and to the ledgers.
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

    fn signal(&self, mut queue: MutexGuard<'_, Queue>, flush: bool) {
        if flush && !queue.flush {
            queue.flush = true;
            drop(queue);
            self.shared.queued.notify_one();
        }
    }

    /// Forgets entries up to `at`, which a durable snapshot holds, and gives back the space of whole segments.
    pub(crate) fn purge(&self, group: GroupId, at: LogRef) {
        self.fill(Some(Box::new(|_| {})), |draft, ledgers| {
            Appender { group, draft, ledger: &mut ledgers[usize::from(group)] }.record(&Record::Purge(at));
            // What waits to be written comes into the newest segment or a later one.
            let newest = self.shared.segments.lock().last_key_value().map(|(number, _)| *number);
            draft.needed = ledgers.iter().filter_map(Ledger::oldest_segment).chain(newest).min();
        });
    }

    /// What the log says of a group, besides its entries.
    pub(crate) fn state(&self, group: GroupId) -> GroupState {
        let ledgers = self.shared.ledgers.lock();
        let ledger = &ledgers[group as usize];
        let (vote, committed, purged) = (ledger.vote, ledger.committed, ledger.purged);
        GroupState { vote, committed, purged, last: ledger.last(), first_index: ledger.first_index() }
    }

    /// Which entry a group has at an index, if it is in the log.
    pub(crate) fn entry_at(&self, group: GroupId, index: u64) -> Option<LogRef> {
        Some(self.shared.ledgers.lock()[usize::from(group)].slot(index)?.at)
    }

    /// Reads an entry that is on disk with `decode`, through a buffer that grows as needed; none when the log has no
    /// such entry or it is not on disk yet.
    pub(crate) fn read<T>(
        &self,
        group: GroupId,
        index: u64,
        buffer: &mut Vec<u8>,
        decode: impl FnOnce(LogRef, &[u8]) -> T,
    ) -> Result<Option<T>, WalError> {
        self.place(group, index).map(|place| place.read(buffer, decode)).transpose()
    }

    /// Where an entry lies; none when the log has no such entry or it is not on disk yet.
    pub(crate) fn place(&self, group: GroupId, index: u64) -> Option<Place> {
        let slot = self.shared.ledgers.lock()[group as usize].slot(index)?;
        Place::of(slot.at, slot.position?, &self.shared.segments.lock())
    }

    /// Bytes of the log, of any groups, that cannot be given back because of the oldest entry of a group.
    pub(crate) fn held_by(&self, group: GroupId) -> u64 {
        let oldest = self.shared.ledgers.lock()[group as usize].oldest_segment();
        let newest = self.shared.segments.lock().keys().max().copied();
        let (Some(oldest), Some(newest)) = (oldest, newest) else { return 0 };
        newest.saturating_sub(oldest) * self.shared.options.segment_bytes
    }

    /// Whether an entry is on disk, so that [`Wal::read`] finds it.
    pub(crate) fn is_written(&self, group: GroupId, index: u64) -> bool {
        self.shared.ledgers.lock()[group as usize].slot(index).is_some_and(|slot| slot.position.is_some())
    }

    /// Whether the log has an entry, on disk or not yet.
    pub(crate) fn has(&self, group: GroupId, at: LogRef) -> bool {
        self.shared.ledgers.lock()[group as usize].slot(at.index).is_some_and(|slot| slot.at == at)
    }

    /// Counts since the log was opened and sizes now.
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

    /// Writes what is queued and lets go of the files.
    pub(crate) fn close(&self) {
        self.shared.queue.lock().closing = true;
        self.shared.queued.notify_one();
        let driven = self.driven.lock().take();
        driven.into_iter().for_each(Driven::finish);
    }
}

/// What the log says of a group, besides its entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupState {
    pub(crate) vote: Option<Ballot>,
    pub(crate) committed: Option<LogRef>,
    pub(crate) purged: Option<LogRef>,
    /// The last entry, or the last purged one when there is none.
    pub(crate) last: Option<LogRef>,
    pub(crate) first_index: Option<u64>,
}

/// Counts since the log was opened and sizes now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalUsage {
    /// Segments on disk.
    pub segments: usize,
    /// What they take there, in bytes.
    pub disk_bytes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// How often written bytes were made durable.
    pub flushes: u64,
    /// How long writing them and making them durable took in all.
    pub flushing: Duration,
    /// Entries that no snapshot supersedes.
    pub entries: usize,
}
