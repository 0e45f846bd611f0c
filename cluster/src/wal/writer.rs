//! The thread that writes the log, and the one that makes segments ready for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use std::{io, mem, thread};

use super::disk::DiskFile;
use super::ledger::{Ledger, Position};
use super::record::Record;
use super::segment::{self, SEGMENT_HEADER};
use super::{Draft, GroupId, PAGE, Segment, Shared, Threads, WalError, frame};
use crate::limits::WAL_RETRY_INTERVAL;

/// The segment that is being written.
pub(super) struct Active {
    pub(super) number: u64,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Number of the last frame.
    pub(super) sequence: u64,
    /// What the page in which `offset` lies holds before it.
    pub(super) page: Vec<u8>,
}

/// Starts both threads.
pub(super) fn spawn(shared: &Arc<Shared>, active: Active) -> Result<Threads, WalError> {
    let started = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let failed = |source| WalError::Io { path: shared.options.directory.clone(), source };
        thread::Builder::new().name(name.into()).spawn(run).map_err(failed)
    };
    let preparer = shared.clone();
    let preparer = started("wal-prepare", Box::new(move || prepare(&preparer)))?;
    let ledgers = shared.ledgers.lock().clone();
    let writer = Writer { shared: shared.clone(), active, ledgers };
    let writer = started("wal", Box::new(move || writer.run()))?;
    shared.spare.want();
    Ok(Threads { writer: Some(writer), preparer: Some(preparer) })
}

/// Makes segments ready as they are wanted.
fn prepare(shared: &Shared) {
    while let Some(attempts) = shared.spare.wanted() {
        let options = &shared.options;
        let segment = segment::prepare(&*shared.disk, &options.directory, options.segment_bytes, attempts + 1);
        if let Err(error) = &segment {
            tracing::warn!(%error, "no room for the next segment of the write-ahead log");
        }
        shared.spare.made(segment.ok());
    }
}

struct Writer {
    shared: Arc<Shared>,
    active: Active,
    /// The groups as of the last frame, with which the next segment will begin. Their entries are not kept up.
    ledgers: Vec<Ledger>,
}

impl Writer {
    fn run(mut self) {
        // The groups may have other numbers than when the segment was begun.
        let begun = self.begin_segment();
        if begun.is_err() {
            return self.fail(Vec::new(), begun);
        }
        while let Some(draft) = self.next() {
            let Draft { mut frame, entries, callbacks } = draft;
            let written = self.write(&mut frame, &entries);
            if written.is_err() {
                return self.fail(callbacks, written);
            }
            for callback in callbacks {
                callback(Ok(()));
            }
            self.shared.queue.lock().spare = frame;
        }
    }

    /// Waits for something to write; none when the log is closed and everything is written.
    fn next(&mut self) -> Option<Draft> {
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
            if mem::take(&mut queue.reclaim) {
                drop(queue);
                self.reclaim();
                queue = shared.queue.lock();
                continue;
            }
            if queue.closing {
                return None;
            }
            queue.flush = false;
            shared.queued.wait(&mut queue);
        }
    }

    fn write(&mut self, body: &mut Vec<u8>, entries: &[(GroupId, super::LogRef, usize, u32)]) -> io::Result<()> {
        let length = frame::frame_length(body.len() - frame::HEADER) as u64;
        if self.active.offset + length > self.active.size {
            self.roll()?;
        }
        self.note(&body[frame::HEADER..])?;
        let start = self.active.offset;
        self.write_frame(body)?;
        let mut ledgers = self.shared.ledgers.lock();
        for (group, at, within, length) in entries {
            let offset = start + *within as u64;
            let position = Position { segment: self.active.number, offset, length: *length };
            ledgers[*group as usize].written(*at, position);
        }
        Ok(())
    }

    /// Follows what a segment that begins after this frame must begin with.
    fn note(&mut self, body: &[u8]) -> io::Result<()> {
        let mut at = 0;
        while let Some((group, record, length)) = Record::decode(&body[at..]) {
            if !matches!(record, Record::Entry(..) | Record::Truncate(_)) {
                let _ = self.ledgers[group as usize].note(&record, None);
            }
            at += length;
        }
        if at == body.len() { Ok(()) } else { Err(io::Error::other("a record cannot be read back")) }
    }

    fn write_frame(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let Active { number, file, offset, size, sequence, page } = &mut self.active;
        frame::seal(frame, *number, *sequence + 1);
        if *offset + frame.len() as u64 > *size {
            return Err(io::Error::other("a frame is larger than a segment"));
        }
        let start = *offset - page.len() as u64;
        page.extend_from_slice(frame);
        *offset += frame.len() as u64;
        let end = page.len();
        page.resize(end.next_multiple_of(PAGE).min((*size - start) as usize), 0);
        let began = Instant::now();
        file.write_at(start, page)?;
        file.sync()?;
        self.shared.flushing.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        *sequence += 1;
        page.truncate(end);
        page.drain(..end / PAGE * PAGE);
        page.shrink_to(1 << 20);
        self.shared.active_left.store(*size - *offset, Ordering::Release);
        self.shared.written.fetch_add(frame.len() as u64, Ordering::Relaxed);
        self.shared.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Goes on in the next segment.
    fn roll(&mut self) -> io::Result<()> {
        let shared = &self.shared;
        let blank = loop {
            match shared.spare.take() {
                Some(blank) => break blank,
                // Nothing that was reserved for comes here. What did must wait until there is room.
                None if shared.queue.lock().closing => return Err(io::Error::other("the disk is full")),
                None => thread::sleep(WAL_RETRY_INTERVAL),
            }
        };
        let (number, directory) = (self.active.number + 1, &shared.options.directory);
        let file: Arc<dyn DiskFile> = blank.number(&*shared.disk, directory, number)?.into();
        let size = shared.options.segment_bytes;
        let sequence = self.active.sequence;
        let (offset, page) = (SEGMENT_HEADER as u64, segment::header(number));
        self.active = Active { number, file: file.clone(), offset, size, sequence, page };
        shared.segments.lock().insert(number, Segment { path: segment::path(directory, number), file });
        shared.spare.want();
        self.begin_segment()
    }

    /// Writes what the rest of a segment refers to.
    fn begin_segment(&mut self) -> io::Result<()> {
        let mut frame = vec![0; frame::HEADER];
        for (group, name) in self.shared.names.iter().enumerate() {
            Record::Group(name).encode(group as GroupId, &mut frame);
            self.ledgers[group].checkpoint().for_each(|record| record.encode(group as GroupId, &mut frame));
        }
        if self.active.offset + frame::frame_length(frame.len() - frame::HEADER) as u64 > self.active.size {
            return self.roll();
        }
        self.write_frame(&mut frame)
    }

    /// Gives back the oldest segments of which no group needs an entry.
    fn reclaim(&mut self) {
        let needed = self.shared.ledgers.lock().iter().filter_map(Ledger::oldest_segment).min();
        let needed = needed.unwrap_or(self.active.number).min(self.active.number);
        loop {
            let oldest =
                self.shared.segments.lock().first_key_value().map(|(number, segment)| (*number, segment.path.clone()));
            let Some((number, path)) = oldest.filter(|(number, _)| *number < needed) else { return };
            if let Err(error) = self.shared.disk.remove(&path) {
                tracing::warn!(%error, segment = %path.display(), "cannot give back a segment of the write-ahead log");
                return;
            }
            // Removed one by one, oldest first, so that a crash leaves a log without a gap.
            let _ = self.shared.disk.sync_directory(&self.shared.options.directory);
            self.shared.segments.lock().remove(&number);
        }
    }

    /// Nothing is durable from here on, and nothing may be tried again: what an fsync that failed left behind is
    /// unknown, and a second one may succeed without having written it.
    fn fail(self, callbacks: Vec<super::Callback>, result: io::Result<()>) {
        let reason = result.err().map(|error| error.to_string()).unwrap_or_default();
        let waiting: Vec<super::Callback> = {
            let mut queue = self.shared.queue.lock();
            queue.failed = true;
            queue.drafts.drain(..).flat_map(|draft| draft.callbacks).collect()
        };
        (self.shared.options.on_fatal)(&reason);
        for callback in callbacks.into_iter().chain(waiting) {
            callback(Err(io::Error::other(reason.clone())));
        }
    }
}
