//! Segments: the files of the log, each preallocated before it is needed.

use std::io;
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::reach;
use crate::disk::magic::SEGMENT as MAGIC;
use crate::disk::{Disk, DiskFile, PAGE};

/// The offset of the first frame.
pub(crate) const SEGMENT_HEADER: usize = 64;
/// The format that this release writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

/// Returns the path of a segment.
pub(crate) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016x}.wal"))
}

/// Returns the number in a segment's file name. Returns `None` for another file.
pub(crate) fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".wal")?;
    u64::from_str_radix(name, 16).ok()
}

/// A blank segment that was prepared and has no number yet.
pub(crate) struct BlankSegment {
    pub(crate) file: Box<dyn DiskFile>,
    path: PathBuf,
    size: u64,
}

/// Returns whether a file is a blank segment that was never used.
pub(crate) fn is_blank_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tmp")
}

/// Creates a blank segment. Its name contains `count`, the number of the attempt, since the blank segment before it may
/// not have got its number yet.
pub(crate) fn prepare(disk: &dyn Disk, directory: &Path, size: u64, count: u64) -> io::Result<BlankSegment> {
    let path = directory.join(format!("blank-{count:x}.tmp"));
    let file = disk.preallocate(&path, size).inspect_err(|_| {
        let _ = disk.remove(&path); // an incomplete file would take space that is needed
    })?;
    Ok(BlankSegment { file, path, size })
}

impl BlankSegment {
    /// Makes this the segment with the given number.
    pub(crate) fn number(self, disk: &dyn Disk, directory: &Path, number: u64) -> io::Result<Box<dyn DiskFile>> {
        let mut page = header(number, self.size);
        page.resize(PAGE, 0);
        self.file.write_at(0, &page)?;
        self.file.sync()?;
        disk.rename(&self.path, &path(directory, number))?;
        disk.sync_directory(directory)?;
        reach::note(disk, directory, number)?;
        Ok(self.file)
    }
}

/// Returns the bytes before the frames of a segment of this size.
pub(crate) fn header(number: u64, size: u64) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FORMAT.to_le_bytes());
    header.extend_from_slice(&number.to_le_bytes());
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    // Former releases leave the rest blank, and do not read it.
    header.extend_from_slice(&size.to_le_bytes());
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    header.resize(SEGMENT_HEADER, 0);
    header
}

/// The content of a segment's header.
pub(crate) enum HeaderContent {
    /// A segment with this number, and this size if the header states it.
    Segment(u64, Option<u64>),
    /// A segment of a later release, in this format.
    Newer(u32),
    /// Not a header.
    Damaged,
}

/// Reads the header of a segment.
pub(crate) fn read_header(header: &[u8]) -> HeaderContent {
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let checked = |end: usize| crc32c::crc32c(&header[..end]) == word(end);
    if header.len() < SEGMENT_HEADER || !header.starts_with(MAGIC) {
        return HeaderContent::Damaged;
    }
    match word(8) {
        version if version > FORMAT => HeaderContent::Newer(version), // the rest may have another layout
        _ if !checked(20) => HeaderContent::Damaged,
        _ if (long(24), word(32)) == (0, 0) => HeaderContent::Segment(long(12), None),
        _ if !checked(32) => HeaderContent::Damaged,
        _ => HeaderContent::Segment(long(12), Some(long(24))),
    }
}

/// The next segment, which a thread of its own makes before it is needed.
#[derive(Default)]
pub(crate) struct SpareSegment {
    state: Mutex<SpareState>,
    changed: Condvar,
    /// Whether there is none because the last attempt to make one failed.
    lacks: watch::Sender<bool>,
}

#[derive(Default)]
struct SpareState {
    ready: Option<BlankSegment>,
    wanted: bool,
    closing: bool,
    /// The number of attempts to make one that have ended.
    attempts: u64,
}

impl SpareSegment {
    pub(crate) fn is_ready(&self) -> bool {
        self.state.lock().ready.is_some()
    }

    /// Returns a receiver of whether there is none because the last attempt to make one failed.
    pub(crate) fn lacks(&self) -> watch::Receiver<bool> {
        self.lacks.subscribe()
    }

    /// Returns whether a segment is wanted.
    #[cfg(test)]
    pub(crate) fn is_wanted(&self) -> bool {
        self.state.lock().wanted
    }

    /// Asks for a segment, unless there is one. Returns the number of attempts to make one that have ended.
    pub(crate) fn want(&self) -> u64 {
        let mut state = self.state.lock();
        if state.ready.is_none() && !state.wanted {
            state.wanted = true;
            self.changed.notify_all();
        }
        state.attempts
    }

    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.changed.notify_all();
    }

    /// Waits until a segment is wanted. Returns the number of attempts so far. Returns `None` when closing.
    pub(crate) fn wanted(&self) -> Option<u64> {
        let mut state = self.state.lock();
        while !state.wanted && !state.closing {
            self.changed.wait(&mut state);
        }
        (!state.closing).then_some(state.attempts)
    }

    /// Records the end of an attempt: a new segment, or `None` when it could not be made.
    pub(crate) fn made(&self, segment: Option<BlankSegment>) {
        let mut state = self.state.lock();
        state.wanted = false;
        state.attempts += 1;
        state.ready = segment.or(state.ready.take());
        self.changed.notify_all();
        let lacks = state.ready.is_none();
        self.lacks.send_if_modified(|known| std::mem::replace(known, lacks) != lacks);
    }

    /// Takes the segment, and waits while one is being made. `None` when it could not be made.
    pub(crate) fn take(&self) -> Option<BlankSegment> {
        let mut state = self.state.lock();
        if state.ready.is_none() {
            state.wanted = true;
            self.changed.notify_all();
            while state.ready.is_none() && state.wanted && !state.closing {
                self.changed.wait(&mut state);
            }
        }
        state.ready.take()
    }
}
