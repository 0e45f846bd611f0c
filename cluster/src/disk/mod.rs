//! The file system operations that the log and the snapshots need, on files that may be encrypted ([`encrypted`]).
//! Tests put a simulated disk in their place.

mod encrypted;
mod file_key;
mod local;
pub(crate) mod magic;
mod pages;
#[cfg(test)]
pub(crate) mod simulated;
#[cfg(test)]
pub(crate) mod simulated_keys;

use crate::tasks;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

pub(crate) use self::encrypted::EncryptedDisk;
pub use self::file_key::KeyWrapping;
pub(crate) use self::local::LocalDisk;
pub(crate) use self::pages::Pages;

/// Files are written in whole pages, so that the system never has to read the rest of a page first.
pub(crate) const PAGE: usize = 4096;
/// The unit that a disk writes completely or not at all.
pub(crate) const SECTOR: usize = 512;

/// A file that is read and written at offsets.
pub(crate) trait DiskFile: Send + Sync {
    /// Returns the size in bytes. That of an encrypted file is rounded up to whole sectors, with zeros at the end.
    fn size(&self) -> io::Result<u64>;
    /// Fills `out` from `offset`, as far as the file reaches. Returns the number of bytes read.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
    /// Writes at an offset. This is fastest for whole pages, as [`Pages`] has them, in a file that was created by this
    /// process.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything that was written to the file durable.
    fn sync(&self) -> io::Result<()>;
}

/// A file system.
pub(crate) trait Disk: Send + Sync {
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Returns the paths of the files in a directory.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Creates an empty file, or truncates an existing one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file of `size` zero bytes. No later write within it can fail for lack of space.
    fn preallocate(&self, path: &Path, size: u64) -> io::Result<Box<dyn DiskFile>>;
    /// Returns roughly how many more bytes the file system of this directory can store.
    fn room(&self, directory: &Path) -> io::Result<u64>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Returns whether keys to encrypt files are configured.
    fn has_keys(&self) -> bool {
        false
    }

    /// Brings a file into the form that a new one would have: encrypted or not, and by which key.
    fn renew(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Runs work that waits for this disk on a thread where that blocks nothing else.
    fn work(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        tasks::blocking(work).map(drop).boxed()
    }
}

/// Runs work that waits for the disk on a thread where that blocks nothing else, and returns its result.
///
/// # Errors
/// Fails when the work panicked.
pub(crate) async fn aside<T: Send + 'static>(
    disk: &dyn Disk,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    disk.work(Box::new(move || drop(done.send(work())))).await;
    result.await.map_err(io::Error::other)
}
