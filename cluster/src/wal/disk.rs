//! What the log and the snapshots need of a file system: a seam at which tests put a disk that fails.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::PAGE;

/// A file that is read and written at offsets.
pub(crate) trait DiskFile: Send + Sync {
    fn size(&self) -> io::Result<u64>;
    /// Fills `out` from `offset`; what lies beyond the end of the file reads as nothing. The bytes read.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
    /// Writes at an offset; whole pages of [`super::Pages`] in a file that was created here cost least.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything that was written durable.
    fn sync(&self) -> io::Result<()>;
}

/// A file system.
pub(crate) trait Disk: Send + Sync {
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// The files of a directory.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Creates an empty file, in place of one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file of `size` zero bytes that no later write within it can lack space for.
    fn preallocate(&self, path: &Path, size: u64) -> io::Result<Box<dyn DiskFile>>;
    /// How many bytes more files can take, about, where this directory is.
    fn room(&self, directory: &Path) -> io::Result<u64>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Does work that waits for this disk, somewhere where it holds nobody up.
    fn work(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        tokio::task::spawn_blocking(work).map(drop).boxed()
    }
}

/// What such work comes to.
///
/// # Errors
/// It panicked.
pub(crate) async fn aside<T: Send + 'static>(
    disk: &dyn Disk,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    disk.work(Box::new(move || drop(done.send(work())))).await;
    result.await.map_err(io::Error::other)
}

/// Bytes of zeros written at once.
const ZEROS: usize = 1 << 20;

/// Opens a file to be written past the page cache, which spares the processor the copying, and memory that nobody reads
/// again; not every file system can. What is written so must begin at a page in memory and in the file, and be pages.
fn open_directly(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Fills a file with zeros past the page cache.
fn write_zeros_directly(path: &Path, size: u64) -> io::Result<()> {
    let file = open_directly(path)?;
    let zeros = vec![0; ZEROS + PAGE];
    let aligned = zeros.as_ptr().align_offset(PAGE);
    for offset in (0..size).step_by(ZEROS) {
        let length = (size - offset).min(ZEROS as u64) as usize;
        file.write_all_at(&zeros[aligned..aligned + length], offset)?;
    }
    Ok(())
}

/// The file system of this machine.
pub(crate) struct LocalDisk {
    /// Whether anything waits until it is durable.
    syncs: bool,
}

struct LocalFile {
    file: File,
    syncs: bool,
    /// The same file past the page cache.
    direct: Option<File>,
}

impl LocalDisk {
    /// One that makes durable what it is told to.
    pub(crate) const DURABLE: LocalDisk = LocalDisk { syncs: true };
    /// One that leaves to the system when anything is written, for data that may be lost.
    pub(crate) const THROWAWAY: LocalDisk = LocalDisk { syncs: false };

    fn file(&self, path: &Path, file: File) -> Box<dyn DiskFile> {
        // The page cache is there to take what nobody waits for.
        let direct = if self.syncs { open_directly(path).ok() } else { None };
        Box::new(LocalFile { file, syncs: self.syncs, direct })
    }

    /// For an empty file of its own, in place of one that is there. What is stored may be secret.
    fn new_file() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        options
    }
}

impl LocalFile {
    /// The file past the page cache, if these bytes can be written there.
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
            // The device has larger sectors than pages.
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
        // Zeros are written, not only allocated: a write into an extent that was never written makes every later
        // fdatasync also commit the conversion of the extent.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size)?;
        if !self.syncs {
            return Ok(self.file(path, file));
        }
        if write_zeros_directly(path, size).is_err() {
            let zeros = vec![0; ZEROS];
            for offset in (0..size).step_by(ZEROS) {
                file.write_all_at(&zeros[..(size - offset).min(ZEROS as u64) as usize], offset)?;
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
