//! Writes the log, and prepares its segments.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use std::{io, mem, thread};

use parking_lot::MutexGuard;

use super::GroupId;
use super::ledger::{Ledger, Position};
use super::record::Record;
use super::segment::{self, SEGMENT_HEADER};
use super::{Draft, Segment, Shared, frame, reach};
use crate::disk::{DiskFile, PAGE, Pages};
use crate::limits::{WAL_BUFFER_BYTES, WAL_RETRY_INTERVAL};

/// The segment that is being written.
pub(super) struct Active {
    pub(super) number: u64,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// The number of the last frame.
    pub(super) sequence: u64,
    /// The bytes before `offset` in the page in which it lies.
    pub(super) page: Pages,
}

/// Returns the writer and the preparer of a log.
pub(super) fn over(shared: &Arc<Shared>, active: Active) -> (LogWriter, Preparer) {
    let ledgers = shared.ledgers.lock().clone();
    (LogWriter { shared: shared.clone(), active, ledgers, needed: 0 }, Preparer { shared: shared.clone() })
}

/// Makes segments as they are wanted.
pub(crate) struct Preparer {
    shared: Arc<Shared>,
}

impl Preparer {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn run(self) {
        while let Some(attempts) = self.shared.spare.wanted() {
            self.prepare(attempts);
        }
    }

    /// Makes a segment, after this many earlier attempts.
    pub(super) fn prepare(&self, attempts: u64) {
        let Shared { options, disk, spare, .. } = &*self.shared;
        let segment = segment::prepare(&**disk, &options.directory, options.segment_bytes, attempts + 1);
        if let Err(error) = &segment
            && !*spare.lacks().borrow()
        {
            tracing::warn!(%error, "no room for the next segment of the write-ahead log");
        }
        spare.made(segment.ok());
    }
}

/// Writes the queued drafts, one frame after the other.
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
    active: Active,
    /// The state of the groups after the last frame, with which the next segment will begin. New entries are not added
    /// to these ledgers.
    ledgers: Vec<Ledger>,
    /// Segments before this one are superfluous.
    needed: u64,
}

impl LogWriter {
    pub(super) fn run(mut self) {
        if let Err(error) = self.begin() {
            return self.fail(Vec::new(), &error);
        }
        while let Some(mut draft) = self.next(true) {
            let written = self.put(&mut draft).and_then(|()| self.flush(&draft));
            match written {
                Ok(()) => self.finish(draft),
                Err(error) => return self.fail(draft.callbacks, &error),
            }
        }
        self.note_end();
    }

    /// Notes that the log ends with the last frame.
    fn note_end(&self) {
        let Shared { options, disk, .. } = &*self.shared;
        if let Err(error) = reach::note_end(&**disk, &options.directory, self.active.sequence) {
            tracing::warn!(%error, "cannot note where the write-ahead log ends");
        }
    }

    /// Starts writing, with a frame that names the groups: their numbers may differ from those at the start of the
    /// segment.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.begin_segment()
    }

    /// Takes the next draft to write. If there is none and `waits` is true, waits for one until the log is closed.
    /// Returns `None` if there is still none.
    pub(super) fn next(&mut self, waits: bool) -> Option<Draft> {
        let shared = self.shared.clone();
        let mut queue = shared.queue.lock();
        loop {
            let more = queue.drafts.len() > 1;
            let wanted = queue.flush || queue.closing;
            if more
                || (wanted
                    && queue.drafts.front().is_some_and(|draft| !draft.is_empty() || !draft.callbacks.is_empty()))
            {
                let draft = queue.drafts.pop_front();
                queue.flush = queue.flush && more;
                if queue.drafts.is_empty() {
                    let spare = mem::take(&mut queue.spare);
                    queue.drafts.push_back(Draft::new(spare));
                }
                return draft;
            }
            if self.superfluous().is_some() {
                MutexGuard::unlocked(&mut queue, || self.give_back());
                continue; // drafts may have been queued meanwhile
            }
            queue.flush = false;
            if queue.closing || !waits {
                return None;
            }
            shared.queued.wait(&mut queue);
        }
    }

    /// Returns whether a draft needs the next segment.
    pub(super) fn is_beyond(&self, draft: &Draft) -> bool {
        let length = frame::frame_length(draft.frame.len() - frame::HEADER) as u64;
        self.active.offset + length > self.active.size
    }

    /// Writes a draft. It is not durable yet.
    pub(super) fn put(&mut self, draft: &mut Draft) -> io::Result<()> {
        if draft.is_broken {
            return Err(io::Error::other("an entry does not follow the one before it"));
        }
        if self.is_beyond(draft) {
            self.roll()?;
        }
        self.note(&draft.frame[frame::HEADER..])?;
        self.put_frame(&mut draft.frame)?;
        if seeded!(AckBeforeFsync) {
            draft.callbacks.drain(..).for_each(|callback| callback(Ok(())));
        }
        Ok(())
    }

    /// Makes the written draft durable. Its entries can be read from then on.
    pub(super) fn flush(&mut self, draft: &Draft) -> io::Result<()> {
        self.flush_frame()?;
        let start = self.active.offset - draft.frame.len() as u64;
        let mut ledgers = self.shared.ledgers.lock();
        for (group, at, within, length) in &draft.entries {
            let offset = start + *within as u64;
            let position = Position { segment: self.active.number, offset, length: *length };
            ledgers[*group as usize].written(*at, position);
        }
        Ok(())
    }

    /// Calls back that a draft is durable, and removes a segment that is not needed any more.
    pub(super) fn finish(&mut self, draft: Draft) {
        for callback in draft.callbacks {
            callback(Ok(()));
        }
        self.shared.queue.lock().spare = draft.frame;
        self.needed = self.needed.max(draft.needed.unwrap_or(0));
        self.give_back();
    }

    /// Updates the state with which the next segment will begin.
    fn note(&mut self, body: &[u8]) -> io::Result<()> {
        let mut at = 0;
        while let Some((group, record, length)) = Record::decode(&body[at..]) {
            if !matches!(record, Record::Entry(..) | Record::Truncate(_)) {
                let _ = self.ledger(group).note(&record, None);
            }
            at += length;
        }
        if at == body.len() { Ok(()) } else { Err(io::Error::other("a record cannot be read back")) }
    }

    /// Returns the ledger of a group, which may have been added since the log was opened.
    fn ledger(&mut self, group: GroupId) -> &mut Ledger {
        let count = self.ledgers.len().max(usize::from(group) + 1);
        self.ledgers.resize_with(count, Ledger::default);
        &mut self.ledgers[usize::from(group)]
    }

    fn put_frame(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let Active { number, file, offset, size, sequence, page } = &mut self.active;
        frame::seal(frame, *number, *sequence + 1);
        if *offset + frame.len() as u64 > *size {
            return Err(io::Error::other("a frame is larger than a segment"));
        }
        let start = *offset - page.len() as u64;
        page.extend_from_slice(frame);
        *offset += frame.len() as u64;
        let end = page.len();
        page.resize(end.next_multiple_of(PAGE).min((*size - start) as usize));
        let began = Instant::now();
        file.write_at(start, page.as_slice())?;
        self.shared.flushing.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        *sequence += 1;
        page.resize(end);
        page.advance(end / PAGE * PAGE, WAL_BUFFER_BYTES);
        self.shared.active_left.store(*size - *offset, Ordering::Release);
        self.shared.written.fetch_add(frame.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn flush_frame(&self) -> io::Result<()> {
        let began = Instant::now();
        self.active.file.sync()?;
        self.shared.flushing.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.shared.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Continues in the next segment.
    fn roll(&mut self) -> io::Result<()> {
        let shared = &self.shared;
        let blank = loop {
            match shared.spare.take() {
                Some(blank) => break blank,
                // Reserved records never get here. Others must wait until there is room.
                None if shared.queue.lock().closing => {
                    return Err(io::Error::new(io::ErrorKind::StorageFull, "the disk is full"));
                }
                None => thread::sleep(WAL_RETRY_INTERVAL),
            }
        };
        let (number, directory) = (self.active.number + 1, &shared.options.directory);
        let file: Arc<dyn DiskFile> = blank.number(&*shared.disk, directory, number)?.into();
        let size = shared.options.segment_bytes;
        let sequence = self.active.sequence;
        let (offset, page) = (SEGMENT_HEADER as u64, Pages::of(&segment::header(number, size)));
        self.active = Active { number, file: file.clone(), offset, size, sequence, page };
        shared.segments.lock().insert(number, Segment { path: segment::path(directory, number), file }.into());
        shared.spare.want();
        self.begin_segment()
    }

    /// Writes the records that make a segment readable without the ones before it.
    fn begin_segment(&mut self) -> io::Result<()> {
        let mut frame = vec![0; frame::HEADER];
        let names = self.shared.names.lock().clone();
        for (group, name) in names.iter().enumerate() {
            Record::Group(name).encode(group as GroupId, &mut frame);
            let checkpoint = self.ledger(group as GroupId).checkpoint();
            checkpoint.for_each(|record| record.encode(group as GroupId, &mut frame));
        }
        if self.active.offset + frame::frame_length(frame.len() - frame::HEADER) as u64 > self.active.size {
            return self.roll();
        }
        self.put_frame(&mut frame)?;
        self.flush_frame()
    }

    /// Returns the oldest segment if no group needs it. Returns `None` otherwise.
    fn superfluous(&self) -> Option<(u64, PathBuf)> {
        let segments = self.shared.segments.lock();
        let (number, segment) = segments.first_key_value()?;
        (*number < self.needed.min(self.active.number)).then(|| (*number, segment.path.clone()))
    }

    /// Removes the oldest segment if no group needs it. Only one at a time, between frames: each removal takes the disk
    /// some milliseconds, and many may be due while records wait to be written.
    fn give_back(&mut self) {
        let Some((number, path)) = self.superfluous() else { return };
        let Shared { segments, disk, options, .. } = &*self.shared;
        if let Err(error) = disk.remove(&path) {
            tracing::warn!(%error, segment = %path.display(), "cannot remove a segment of the write-ahead log");
            self.needed = 0; // no further attempt until more is purged
            return;
        }
        // The oldest goes first, so that a crash leaves a log without a gap.
        let _ = disk.sync_directory(&options.directory);
        segments.lock().remove(&number);
    }

    /// Fails everything that waits. Nothing becomes durable from here on, and nothing may be retried: the effect of a
    /// failed fsync is unknown, and a second one may succeed without having written the data.
    pub(super) fn fail(&mut self, callbacks: Vec<super::Callback>, error: &io::Error) {
        let reason = error.to_string();
        let (waiting, is_given_up): (Vec<super::Callback>, bool) = {
            let mut queue = self.shared.queue.lock();
            queue.failed = true;
            let waiting = queue.drafts.drain(..).flat_map(|draft| draft.callbacks).collect();
            // A draft that waited for room when the log was closed was not acknowledged, and the disk itself has not
            // failed.
            (waiting, queue.closing && error.kind() == io::ErrorKind::StorageFull)
        };
        if !is_given_up {
            (self.shared.options.on_fatal)(&format!("the write-ahead log is not durable any more: {reason}"));
        }
        for callback in callbacks.into_iter().chain(waiting) {
            callback(Err(io::Error::other(reason.clone())));
        }
    }
}
