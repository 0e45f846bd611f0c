//! Reads the log back when it is opened.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::frame::{HEADER, SegmentContent};
use super::ledger::{Ledger, Position};
use super::record::Record;
use super::segment::{self, HeaderContent, SEGMENT_HEADER};
use super::window::Window;
use super::writer::Active;
use super::{Announcer, Segment, Segments, WalError, WalOptions, reach};
use crate::disk::{Disk, DiskFile, PAGE, Pages};
use crate::limits::OPENING_PROGRESS_INTERVAL;
use crate::progress::Progress;

/// The content of a log that was read.
pub(crate) struct Recovered {
    /// The groups that were asked for, and then the other groups with records.
    pub(super) names: Vec<String>,
    pub(super) ledgers: Vec<Ledger>,
    pub(super) segments: Segments,
    pub(super) active: Active,
    /// Whether there was no log yet.
    pub(super) is_new: bool,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> WalError + '_ {
    |source| WalError::Io { path: path.to_path_buf(), source }
}

impl Recovered {
    /// Reads the log of all groups; those in `groups` are numbered first. `announcer` announces the committed entries
    /// of the first of them while the rest is being read.
    pub(crate) fn read(
        disk: &dyn Disk,
        options: &WalOptions,
        groups: &[Arc<str>],
        announcer: Option<Announcer>,
    ) -> Result<Recovered, WalError> {
        let names = groups.iter().map(|group| group.to_string()).collect();
        recover(disk, options, RecordCollector::new(names, announcer))
    }

    /// Returns the number of entries that no snapshot supersedes.
    pub(crate) fn entries(&self) -> usize {
        self.ledgers.iter().map(Ledger::len).sum()
    }
}

/// Reads all segments, cuts off a frame that was never completed, and fails on damage. Everything that it returns is
/// durable.
fn recover(disk: &dyn Disk, options: &WalOptions, mut collector: RecordCollector) -> Result<Recovered, WalError> {
    let directory = &options.directory;
    disk.create_directory(directory).map_err(failed(directory))?;
    let paths = disk.list(directory).map_err(failed(directory))?;
    for unused in paths.iter().filter(|path| segment::is_blank_segment(path)) {
        disk.remove(unused).map_err(failed(unused))?; // it may be incomplete
    }
    let mut numbers: Vec<u64> = paths.iter().filter_map(|path| segment::number(path)).collect();
    numbers.sort_unstable();
    renew(disk, directory, &numbers)?;
    check_reach(disk, directory, numbers.last().copied())?;
    let (mut active, mut last, mut buffer) = (None, None, Vec::new());
    let what = "reading the segments of the write-ahead log";
    let mut progress = Progress::of(what, numbers.len() as u64, OPENING_PROGRESS_INTERVAL);
    for (index, number) in numbers.iter().enumerate() {
        let path = segment::path(directory, *number);
        progress.at(index as u64);
        if index > 0 && numbers[index - 1] + 1 != *number {
            return Err(WalError::Damaged { path, offset: 0, what: "the segment before it is missing" });
        }
        let file: Arc<dyn DiskFile> = disk.open(&path).map_err(failed(&path))?.into();
        let is_last = index + 1 == numbers.len();
        let segment = Segment { path: path.clone(), file: file.clone() };
        collector.segments.insert(*number, segment.into());
        let SegmentEnd { offset, size, frame } =
            read_segment(&mut collector, &mut buffer, &*file, &path, *number, is_last)?;
        if is_last {
            last = Some((file.clone(), path.clone(), offset, frame));
            let mut page = vec![0; offset as usize % PAGE];
            file.read_at(offset - page.len() as u64, &mut page).map_err(failed(&path))?;
            let sequence = collector.sequence;
            let page = Pages::of(&page);
            active = Some(Active { number: *number, file, offset, size, sequence, page });
        }
    }
    if let Some((_, path, offset, _)) = &last {
        check_end(disk, directory, collector.sequence, path, *offset)?;
    }
    let (names, ledgers, mut segments) = collector.finish(directory)?;
    if let Some((file, path, end, frame)) = last {
        make_durable(&*file, end, &frame).map_err(failed(&path))?;
        // The directory entries of the segment and of the file beside the directory may not be durable either.
        for directory in directory.ancestors().take(2) {
            disk.sync_directory(directory).map_err(failed(directory))?;
        }
    }
    let is_new = active.is_none();
    let active = match active {
        Some(active) => active,
        None => first_segment(disk, options, &mut segments).map_err(failed(directory))?,
    };
    Ok(Recovered { names, ledgers, segments, active, is_new })
}

/// Brings the files of the log into the form that new ones would have: encrypted or not, and by which key. Changes
/// nothing if one cannot be decrypted.
fn renew(disk: &dyn Disk, directory: &Path, numbers: &[u64]) -> Result<(), WalError> {
    if !disk.has_keys() {
        return Ok(());
    }
    let paths = || numbers.iter().map(|number| segment::path(directory, *number));
    paths().try_for_each(|path| disk.open(&path).map(drop).map_err(failed(&path)))?;
    reach::renew(disk, directory).map_err(failed(&reach::path(directory)))?;
    paths().try_for_each(|path| disk.renew(&path).map_err(failed(&path)))
}

/// Makes the last frame durable. The process that wrote it may have ended before its fsync did, or because that failed;
/// then the frame was read from the page cache only. After a failed fsync the system considers the pages written, so
/// another fsync alone would do nothing, and the frame is written again. Every earlier frame was durable before the
/// next one was started.
fn make_durable(file: &dyn DiskFile, end: u64, frame: &[u8]) -> io::Result<()> {
    file.write_at(end - frame.len() as u64, frame)?;
    file.sync()
}

/// Fails when the newest segments of the log are missing.
fn check_reach(disk: &dyn Disk, directory: &Path, last: Option<u64>) -> Result<(), WalError> {
    match reach::read(disk, directory).map_err(failed(&reach::path(directory)))? {
        Some(reached) if last < Some(reached) => {
            return Err(WalError::Missing { path: segment::path(directory, reached) });
        }
        // A segment gets its name before it is noted. After a crash in between, the note is one segment behind.
        reached if reached < last => last.map_or(Ok(()), |last| reach::note(disk, directory, last)),
        _ => Ok(()),
    }
    .map_err(failed(directory))
}

/// Logs where the log ends. Fails when frames are missing that were durable when the log was last closed. For a log
/// that was not closed this cannot be known, since missing frames look like frames that were never written.
fn check_end(disk: &dyn Disk, directory: &Path, frame: u64, path: &Path, offset: u64) -> Result<(), WalError> {
    let noted = reach::read_end(disk, directory).map_err(failed(directory))?;
    if noted.is_some_and(|noted| frame < noted) {
        let what = "frames are missing that were durable when the server stopped";
        return Err(WalError::Damaged { path: path.to_path_buf(), offset, what });
    }
    tracing::info!(segment = %path.display(), offset, frame, "the write-ahead log ends here");
    Ok(())
}

/// Returns whether there is a log in a directory, or was one.
///
/// # Errors
/// Fails when the directory, or the file beside it, cannot be read.
pub(crate) fn is_begun(disk: &dyn Disk, directory: &Path) -> io::Result<bool> {
    let is_there = disk.list(directory)?.iter().any(|path| segment::number(path).is_some());
    Ok(is_there || reach::read(disk, directory)?.is_some())
}

/// Returns the segment with which a log ends that has lost its end: the newest one that was noted if that one is
/// missing, or the newest one that is there if frames are missing that were durable when the log was last closed.
/// Returns `None` if nothing is known to be missing. Changes nothing.
///
/// # Errors
/// Fails when the directory, the file beside it, or a segment cannot be read.
pub(crate) fn missing_end(disk: &dyn Disk, directory: &Path) -> io::Result<Option<PathBuf>> {
    let paths = disk.list(directory)?;
    let mut numbers: Vec<u64> = paths.iter().filter_map(|path| segment::number(path)).collect();
    numbers.sort_unstable();
    let last = numbers.last().copied();
    if let Some(reached) = reach::read(disk, directory)?.filter(|reached| last < Some(*reached)) {
        return Ok(Some(segment::path(directory, reached)));
    }
    let Some(noted) = reach::read_end(disk, directory)? else { return Ok(None) };
    let ends_before = last_frame(disk, directory, &numbers)? < Some(noted);
    Ok(last.filter(|_| ends_before).map(|last| segment::path(directory, last)))
}

/// Returns the number of the last frame in segments, up to the first damage in the newest one that has frames.
fn last_frame(disk: &dyn Disk, directory: &Path, numbers: &[u64]) -> io::Result<Option<u64>> {
    let mut buffer = Vec::new();
    for number in numbers.iter().rev() {
        let file = disk.open(&segment::path(directory, *number))?;
        let (mut window, mut last) = (Window::new(&*file, &mut buffer)?, None);
        let mut offset = SEGMENT_HEADER;
        while offset < window.size {
            let expected = last.map(|last| last + 1);
            let SegmentContent::Frame(header) = window.look(offset, *number, expected)? else { break };
            last = Some(header.sequence);
            offset += header.frame_length();
        }
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

fn first_segment(disk: &dyn Disk, options: &WalOptions, segments: &mut Segments) -> io::Result<Active> {
    let (directory, number, size) = (&options.directory, 1, options.whole_segment_bytes());
    let blank = segment::prepare(disk, directory, size, 0)?;
    let file: Arc<dyn DiskFile> = blank.number(disk, directory, number)?.into();
    let segment = Segment { path: segment::path(directory, number), file: file.clone() };
    segments.insert(number, segment.into());
    let page = Pages::of(&segment::header(number, size));
    Ok(Active { number, file, offset: SEGMENT_HEADER as u64, size, sequence: 0, page })
}

/// The end of a segment.
struct SegmentEnd {
    /// The offset at which its frames end.
    offset: u64,
    /// The size of the segment.
    size: u64,
    /// The bytes of its last frame, which were checked. Only set for the last segment.
    frame: Vec<u8>,
}

/// Reads one segment. Only the last one may end with a torn frame, which is cut off; in the others every frame was
/// durable before the next segment was started.
fn read_segment(
    collector: &mut RecordCollector,
    buffer: &mut Vec<u8>,
    file: &dyn DiskFile,
    path: &Path,
    number: u64,
    is_last: bool,
) -> Result<SegmentEnd, WalError> {
    let mut window = Window::new(file, buffer).map_err(failed(path))?;
    let damaged = |offset: usize, what| WalError::Damaged { path: path.to_path_buf(), offset: offset as u64, what };
    match segment::read_header(window.bytes(0, SEGMENT_HEADER).map_err(failed(path))?) {
        HeaderContent::Segment(_, Some(size)) if window.size < size as usize => {
            return Err(damaged(window.size, "the end of the file is missing"));
        }
        HeaderContent::Segment(found, _) if found == number => {}
        HeaderContent::Newer(version) => {
            return Err(WalError::Newer { path: path.to_path_buf(), version, supported: segment::FORMAT });
        }
        _ => return Err(damaged(0, "the header of the segment does not match its checksum")),
    }
    let (mut offset, mut frame) = (SEGMENT_HEADER, Vec::new());
    while offset < window.size {
        let expected = collector.next_sequence();
        match window.look(offset, number, expected).map_err(failed(path))? {
            SegmentContent::Frame(header) => {
                let whole = window.bytes(offset, header.frame_length()).map_err(failed(path))?;
                let (at, body) = (offset + HEADER, &whole[HEADER..HEADER + header.body_length()]);
                let records = collector.read_frame(body, number, at as u64, header.sequence);
                records.map_err(|(within, what)| damaged(at + within, what))?;
                if is_last {
                    frame.clear();
                    frame.extend_from_slice(whole);
                }
                offset += header.frame_length();
            }
            SegmentContent::End => break,
            SegmentContent::Torn if is_last => {
                let bytes = window.written_from(offset).map_err(failed(path))?;
                tracing::warn!(segment = %path.display(), offset, bytes, "cutting off a frame that was never completed");
                let zeros = vec![0; window.size - offset];
                file.write_at(offset as u64, &zeros).and_then(|()| file.sync()).map_err(failed(path))?;
                break;
            }
            SegmentContent::Torn => return Err(damaged(offset, "a frame before the last is incomplete")),
            SegmentContent::Damaged(what) => return Err(damaged(offset, what)),
        }
    }
    Ok(SegmentEnd { offset: offset as u64, size: window.size as u64, frame })
}

/// The names of the groups, the ledger of each, and the segments.
type Sums = (Vec<String>, Vec<Ledger>, Segments);

/// Collects the records of the log.
struct RecordCollector {
    names: Vec<String>,
    /// For each group number in the segment that is being read, the group's index in `names`.
    groups: BTreeMap<u16, usize>,
    ledgers: Vec<Ledger>,
    /// The segments read so far.
    segments: Segments,
    /// Announces entries of the first group.
    announcer: Option<Announcer>,
    /// The number of the last frame.
    sequence: u64,
    /// Whether a frame was read. The log may begin with any number.
    begun: bool,
}

impl RecordCollector {
    fn new(names: Vec<String>, announcer: Option<Announcer>) -> RecordCollector {
        let (ledgers, segments) = (vec![Ledger::default(); names.len()], Segments::new());
        RecordCollector { names, groups: BTreeMap::new(), ledgers, segments, announcer, sequence: 0, begun: false }
    }

    /// Returns the number that the next frame must have. `None` for the first one: frames before it may have been
    /// removed.
    fn next_sequence(&self) -> Option<u64> {
        self.begun.then_some(self.sequence + 1)
    }

    /// Applies the records of a frame whose body is at `start` in a segment. The error is the offset of a bad record in
    /// the body, and the fault of that record.
    fn read_frame(
        &mut self,
        body: &[u8],
        segment: u64,
        start: u64,
        sequence: u64,
    ) -> Result<(), (usize, &'static str)> {
        (self.sequence, self.begun) = (sequence, true);
        let mut at = 0;
        while at < body.len() {
            let (number, record, length) = Record::decode(&body[at..]).ok_or((at, "a record cannot be read"))?;
            if let Record::Group(name) = record {
                let known = self.names.iter().position(|candidate| candidate == name);
                let index = known.unwrap_or_else(|| {
                    self.names.push(name.to_owned());
                    self.ledgers.push(Ledger::default());
                    self.names.len() - 1
                });
                self.groups.insert(number, index);
            }
            let index = *self.groups.get(&number).ok_or((at, "a record is of no group"))?;
            let position = Position { segment, offset: start + at as u64, length: length as u32 };
            let noted = self.ledgers[index].note(&record, Some(position));
            noted.map_err(|_| (at, "an entry does not follow the one before it"))?;
            if index == 0
                && let Some(announcer) = &mut self.announcer
            {
                announcer.note(&record, &self.ledgers[index], &self.segments);
            }
            at += length;
        }
        Ok(())
    }

    fn finish(self, directory: &Path) -> Result<Sums, WalError> {
        match self.ledgers.iter().all(Ledger::is_whole) {
            true => Ok((self.names, self.ledgers, self.segments)),
            false => {
                let (path, what) = (directory.to_path_buf(), "the oldest entries are missing");
                Err(WalError::Damaged { path, offset: 0, what })
            }
        }
    }
}
