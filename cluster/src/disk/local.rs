//! The file system of this machine.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile, PAGE};
use crate::limits::DISK_ZEROS_BYTES;

/// Opens a file for direct I/O, past the page cache. That saves copying, and memory for pages that are not read again
/// soon. Not every file system supports it. Writes must be whole pages, aligned to pages in memory and in the file.
fn open_directly(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Fills a file with zeros by direct I/O.
fn write_zeros_directly(path: &Path, size: u64) -> io::Result<()> {
    let file = open_directly(path)?;
    let zeros = vec![0; DISK_ZEROS_BYTES + PAGE];
    let aligned = zeros.as_ptr().align_offset(PAGE);
    for offset in (0..size).step_by(DISK_ZEROS_BYTES) {
        let length = (size - offset).min(DISK_ZEROS_BYTES as u64) as usize;
        file.write_all_at(&zeros[aligned..aligned + length], offset)?;
    }
    Ok(())
}

/// The file system of this machine.
pub(crate) struct LocalDisk {
    /// Whether `sync` waits until data is durable.
    syncs: bool,
}

struct LocalFile {
    file: File,
    syncs: bool,
    /// The same file, opened for direct I/O, if that is possible.
    direct: Option<File>,
}

impl LocalDisk {
    /// A disk whose syncs make data durable.
    pub(crate) const DURABLE: LocalDisk = LocalDisk { syncs: true };
    /// A disk whose syncs do nothing, for data that may be lost.
    pub(crate) const THROWAWAY: LocalDisk = LocalDisk { syncs: false };

    fn file(&self, path: &Path, file: File) -> Box<dyn DiskFile> {
        // Without syncs, the page cache should absorb the writes.
        let direct = if self.syncs { open_directly(path).ok() } else { None };
        Box::new(LocalFile { file, syncs: self.syncs, direct })
    }

    /// Returns options that create a file, or truncate an existing one. Only its owner may read it: the data may be
    /// secret.
    fn new_file() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        options
    }
}

impl LocalFile {
    /// Returns the file for direct I/O, if these bytes can be written by it; `None` otherwise.
    fn direct_for(&self, offset: u64, bytes: &[u8]) -> Option<&File> {
        let whole = offset.is_multiple_of(PAGE as u64) && bytes.len().is_multiple_of(PAGE);
        self.direct.as_ref().filter(|_| whole && bytes.as_ptr().align_offset(PAGE) == 0)
    }
}

impl DiskFile for LocalFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < out.len() {
            match self.file.read_at(&mut out[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.direct_for(offset, bytes).map(|direct| direct.write_all_at(bytes, offset)) {
            // The device has sectors larger than a page.
            Some(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => self.file.write_all_at(bytes, offset),
            Some(written) => written,
            None => self.file.write_all_at(bytes, offset),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.syncs { self.file.sync_data() } else { Ok(()) }
    }
}

impl Disk for LocalDisk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(LocalFile { file, syncs: self.syncs, direct: None }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = LocalDisk::new_file().open(path)?;
        Ok(self.file(path, file))
    }

    fn preallocate(&self, path: &Path, size: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = LocalDisk::new_file().open(path)?;
        // Zeros are written, not only allocated: after a write into an extent that was only allocated, the next
        // fdatasync must also commit that the extent now has data.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size)?;
        if !self.syncs {
            return Ok(self.file(path, file));
        }
        if write_zeros_directly(path, size).is_err() {
            let zeros = vec![0; DISK_ZEROS_BYTES];
            for offset in (0..size).step_by(DISK_ZEROS_BYTES) {
                file.write_all_at(&zeros[..(size - offset).min(DISK_ZEROS_BYTES as u64) as usize], offset)?;
            }
        }
        file.sync_all()?;
        Ok(self.file(path, file))
    }

    fn room(&self, directory: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(directory)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        if self.syncs { File::open(path)?.sync_all() } else { Ok(()) }
    }
}
