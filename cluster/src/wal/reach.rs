//! Notes, outside the log's directory, how far the log has come. A log whose newest segments are missing looks like an
//! earlier state of itself, and a replica that continued with it would have forgotten entries that it acknowledged.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::magic::LOG_NOTES as MAGIC;
use crate::disk::{Disk, DiskFile};

/// There are two notes, written in turn, so that a crash can damage only one of them.
const NOTES: u64 = 2;
/// Bytes between the notes, which share no sector.
const DISTANCE: usize = 4096;
/// Marks the note about the end of a log that was closed; its offset is in no sector of the others.
const END_MAGIC: &[u8; 8] = b"FLOTEND\n";
const END_AT: u64 = DISTANCE as u64 / 2;
const LENGTH: usize = MAGIC.len() + 8 + 4;

/// The name of the file, and its name until it can be read.
pub(crate) const FILE: &str = "log";
pub(crate) const UNFINISHED_FILE: &str = "log.tmp";

/// Returns the path of the file, beside the directory of the log.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.with_file_name(FILE)
}

fn is_there(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok(disk.list(parent)?.iter().any(|file| file == path))
}

/// Brings the file into the form that a new one would have: encrypted or not, and by which key.
pub(super) fn renew(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let path = path(directory);
    if is_there(disk, &path)? { disk.renew(&path) } else { Ok(()) }
}

/// Notes that there is a segment with this number. Must be called before anything in it is acknowledged.
pub(super) fn note(disk: &dyn Disk, directory: &Path, number: u64) -> io::Result<()> {
    let path = path(directory);
    let write = |file: &dyn DiskFile| {
        file.write_at(number % NOTES * DISTANCE as u64, &sealed(MAGIC, number))?;
        file.sync()
    };
    if is_there(disk, &path)? {
        return write(&*disk.open(&path)?);
    }
    // The file has space for both notes from the start, so that a full disk cannot prevent the next note. It gets its
    // name when it can be read.
    let unfinished = directory.with_file_name(UNFINISHED_FILE);
    let written = disk.preallocate(&unfinished, NOTES * DISTANCE as u64).and_then(|file| write(&*file));
    written.inspect_err(|_| {
        let _ = disk.remove(&unfinished); // so that the next attempt does not find the unfinished file
    })?;
    disk.rename(&unfinished, &path)?;
    path.parent().map_or(Ok(()), |parent| disk.sync_directory(parent))
}

/// Notes the number of the last frame of a log that is being closed. If the disk loses frames later, the log looks as
/// if it ended earlier; this note shows that it did not.
pub(super) fn note_end(disk: &dyn Disk, directory: &Path, sequence: u64) -> io::Result<()> {
    let path = path(directory);
    if !is_there(disk, &path)? {
        return Ok(());
    }
    let file = disk.open(&path)?;
    file.write_at(END_AT, &sealed(END_MAGIC, sequence))?;
    file.sync()
}

/// Returns the number of the frame that [`note_end`] noted. Returns `None` without a note.
pub(super) fn read_end(disk: &dyn Disk, directory: &Path) -> io::Result<Option<u64>> {
    let path = path(directory);
    if !is_there(disk, &path)? {
        return Ok(None);
    }
    let mut bytes = [0; LENGTH];
    disk.open(&path)?.read_at(END_AT, &mut bytes)?;
    Ok(parse(END_MAGIC, &bytes))
}

/// Returns the highest segment number that was noted. Returns `None` without a note.
pub(super) fn read(disk: &dyn Disk, directory: &Path) -> io::Result<Option<u64>> {
    let path = path(directory);
    if !is_there(disk, &path)? {
        return Ok(None);
    }
    let file = disk.open(&path)?;
    let note = |number: u64| {
        let mut bytes = [0; LENGTH];
        file.read_at(number * DISTANCE as u64, &mut bytes)?;
        Ok::<_, io::Error>(parse(MAGIC, &bytes))
    };
    let notes = (0..NOTES).map(note).collect::<io::Result<Vec<_>>>()?;
    Ok(notes.into_iter().flatten().max())
}

/// Returns a note with its checksum.
fn sealed(magic: &[u8; 8], number: u64) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn parse(expected: &[u8; 8], bytes: &[u8; LENGTH]) -> Option<u64> {
    let (content, checksum) = bytes.split_last_chunk::<4>()?;
    let (magic, number) = content.split_last_chunk::<8>()?;
    let is_whole = magic == expected && crc32c::crc32c(content) == u32::from_le_bytes(*checksum);
    is_whole.then(|| u64::from_le_bytes(*number))
}
