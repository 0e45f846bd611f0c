//! How far the log has come, noted outside of its directory: a log whose newest segments are missing looks like a
//! younger one, and a replica that goes on with it has forgotten what it acknowledged.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::Disk;

const MAGIC: &[u8; 8] = b"FLOTLOG\n";
/// There are two notes, written in turn: what a crash leaves of one of them does not matter.
const NOTES: u64 = 2;
/// Bytes between them: they share no sector.
const DISTANCE: usize = 4096;
const LENGTH: usize = MAGIC.len() + 8 + 4;
/// Where in the same file stands how far the log reached when it was closed, in a sector of its own.
const END_AT: u64 = 2048;
const END_MAGIC: &[u8; 8] = b"FLOTEND\n";
const END_LENGTH: usize = END_MAGIC.len() + 16 + 4;

/// The file beside the directory of the log.
fn path(directory: &Path) -> PathBuf {
    directory.with_file_name("log")
}

fn is_there(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok(disk.list(parent)?.iter().any(|file| file == path))
}

/// Notes that there is a segment of this number, before anything in it is acknowledged.
pub(super) fn note(disk: &dyn Disk, directory: &Path, number: u64) -> io::Result<()> {
    let path = path(directory);
    let known = is_there(disk, &path)?;
    // Room for both notes from the beginning: a disk that is full must not keep the log from its next segment.
    let file = if known { disk.open(&path)? } else { disk.preallocate(&path, NOTES * DISTANCE as u64)? };
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    file.write_at(number % NOTES * DISTANCE as u64, &bytes)?;
    file.sync()?;
    match (known, path.parent()) {
        (false, Some(parent)) => disk.sync_directory(parent),
        _ => Ok(()),
    }
}

/// Notes that the log is closed, and that its frames end at an offset of its newest segment.
pub(super) fn note_end(disk: &dyn Disk, directory: &Path, segment: u64, offset: u64) -> io::Result<()> {
    let file = disk.open(&path(directory))?;
    let mut bytes = END_MAGIC.to_vec();
    bytes.extend_from_slice(&segment.to_le_bytes());
    bytes.extend_from_slice(&offset.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    file.write_at(END_AT, &bytes)?;
    file.sync()
}

/// Where the frames ended when the log was last closed: the segment and the offset there. A log that was not closed
/// since has more.
pub(super) fn read_end(disk: &dyn Disk, directory: &Path) -> io::Result<Option<(u64, u64)>> {
    let path = path(directory);
    if !is_there(disk, &path)? {
        return Ok(None);
    }
    let mut bytes = [0; END_LENGTH];
    disk.open(&path)?.read_at(END_AT, &mut bytes)?;
    let parsed = bytes.split_last_chunk::<4>().and_then(|(content, checksum)| {
        let numbers = content.strip_prefix(END_MAGIC)?;
        let (segment, offset) = (numbers.first_chunk::<8>()?, numbers.last_chunk::<8>()?);
        let is_whole = crc32c::crc32c(content) == u32::from_le_bytes(*checksum);
        is_whole.then(|| (u64::from_le_bytes(*segment), u64::from_le_bytes(*offset)))
    });
    Ok(parsed)
}

/// The highest segment that was noted; `None` where nothing ever was.
pub(super) fn read(disk: &dyn Disk, directory: &Path) -> io::Result<Option<u64>> {
    let path = path(directory);
    if !is_there(disk, &path)? {
        return Ok(None);
    }
    let file = disk.open(&path)?;
    let note = |place: u64| {
        let mut bytes = [0; LENGTH];
        file.read_at(place * DISTANCE as u64, &mut bytes)?;
        Ok::<_, io::Error>(parse(&bytes))
    };
    let notes = (0..NOTES).map(note).collect::<io::Result<Vec<_>>>()?;
    Ok(notes.into_iter().flatten().max())
}

fn parse(bytes: &[u8; LENGTH]) -> Option<u64> {
    let (content, checksum) = bytes.split_last_chunk::<4>()?;
    let (magic, number) = content.split_last_chunk::<8>()?;
    let is_whole = magic == MAGIC && crc32c::crc32c(content) == u32::from_le_bytes(*checksum);
    is_whole.then(|| u64::from_le_bytes(*number))
}
