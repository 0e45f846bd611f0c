//! Files that are encrypted on the disk.
//!
//! Every file has a key of its own. It is stored in a header before the content, encrypted by a key that is not on the
//! disk ([`super::file_key`]). A thief of the disk alone cannot read the content. Repeated copies of the disk show
//! which blocks of 16 bytes have changed, and which sectors are zeros.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::file_key::{Beginning, FileKey, HEADER};
use super::magic::{Magic, SEGMENT};
use super::{Disk, DiskFile, KeyWrapping, Pages, SECTOR};
use crate::limits::WAL_READ_BYTES;

/// A disk whose new files are encrypted, if `wrapping` encrypts keys. It reads files of both kinds.
pub(crate) struct EncryptedDisk {
    disk: Arc<dyn Disk>,
    wrapping: Arc<dyn KeyWrapping>,
    has_keys: bool,
}

impl EncryptedDisk {
    /// Returns a disk that stores its files on `disk`. Without `wrapping`, new files are not encrypted, and encrypted
    /// files cannot be opened.
    pub(crate) fn over(disk: Arc<dyn Disk>, wrapping: Option<Arc<dyn KeyWrapping>>) -> EncryptedDisk {
        let has_keys = wrapping.is_some();
        EncryptedDisk { disk, wrapping: wrapping.unwrap_or_else(|| Arc::new(NoKeys)), has_keys }
    }

    /// Creates a file with `make`, which gets the number of bytes to reserve for the header, and makes the header
    /// durable.
    fn make(&self, make: impl FnOnce(usize) -> io::Result<Box<dyn DiskFile>>) -> io::Result<Box<dyn DiskFile>> {
        let Some((key, header)) = FileKey::create(&*self.wrapping)? else { return make(0) };
        let file = make(header.len())?;
        file.write_at(0, Pages::of(&header).as_slice())?;
        file.sync()?;
        Ok(Box::new(EncryptedFile { file, key }))
    }

    /// Replaces a file by a copy that is encrypted, or not, as a new file would be.
    fn replace(&self, path: &Path) -> io::Result<()> {
        let unfinished = path.with_extension("tmp");
        tracing::info!(path = %path.display(), "copying a file to encrypt or decrypt it");
        self.copy(path, &unfinished).inspect_err(|_| {
            let _ = self.disk.remove(&unfinished); // an incomplete file would take space that is needed
        })?;
        self.disk.rename(&unfinished, path)?;
        path.parent().map_or(Ok(()), |directory| self.disk.sync_directory(directory))
    }

    /// Copies the content of a file into a new one, which is durable then.
    fn copy(&self, path: &Path, copy: &Path) -> io::Result<()> {
        let from = self.open(path)?;
        let size = from.size()?;
        let mut magic = Magic::default();
        from.read_at(0, &mut magic)?;
        if magic == *SEGMENT && size % SECTOR as u64 != 0 {
            // The copy would have whole sectors again, which would hide the loss.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the end of the file is missing"));
        }
        let to = self.preallocate(copy, size)?;
        let mut piece = Pages::default();
        for offset in (0..size).step_by(WAL_READ_BYTES) {
            piece.resize((size - offset).min(WAL_READ_BYTES as u64) as usize);
            let read = from.read_at(offset, piece.as_mut_slice())?;
            piece.resize(read);
            to.write_at(offset, piece.as_slice())?;
        }
        to.sync()
    }
}

impl Disk for EncryptedDisk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.create_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(directory)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(path)?;
        match Beginning::read(&*file)? {
            Beginning::Encrypted(wrapped) => {
                Ok(Box::new(EncryptedFile { file, key: wrapped.unwrap(&*self.wrapping)? }))
            }
            // The reader of a damaged file notices the damage.
            Beginning::Plain | Beginning::Unknown => Ok(file),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.make(|_| self.disk.create(path))
    }

    fn preallocate(&self, path: &Path, size: u64) -> io::Result<Box<dyn DiskFile>> {
        self.make(|header| {
            let unit = if header > 0 { SECTOR as u64 } else { 1 };
            self.disk.preallocate(path, header as u64 + size.next_multiple_of(unit))
        })
    }

    fn room(&self, directory: &Path) -> io::Result<u64> {
        self.disk.room(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(path)
    }

    fn has_keys(&self) -> bool {
        self.has_keys
    }

    fn renew(&self, path: &Path) -> io::Result<()> {
        if !self.has_keys {
            return Ok(());
        }
        let file = self.disk.open(path)?;
        let stays = match Beginning::read(&*file)? {
            Beginning::Encrypted(wrapped) => {
                wrapped.is_current(&*self.wrapping) || wrapped.rewrap(&*file, &*self.wrapping)?
            }
            Beginning::Plain => FileKey::create(&*self.wrapping)?.is_none(),
            Beginning::Unknown => true, // a copy would hide the fault
        };
        if stays { Ok(()) } else { self.replace(path) }
    }

    fn work(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.disk.work(work)
    }
}

/// The key wrapping of a server without keys.
struct NoKeys;

impl KeyWrapping for NoKeys {
    fn wrap(&self, _: &[u8]) -> Option<io::Result<Vec<u8>>> {
        None
    }

    fn unwrap(&self, _: &[u8]) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::InvalidData, "the file is encrypted, and no keys are configured"))
    }

    fn is_current(&self, _: &[u8]) -> bool {
        false
    }
}

struct EncryptedFile {
    /// The header, and then the encrypted content.
    file: Box<dyn DiskFile>,
    key: FileKey,
}

impl EncryptedFile {
    /// Reads whole sectors, as far as the file reaches, and decrypts them. Returns the number of bytes read.
    fn read_sectors(&self, first: u64, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(HEADER as u64 + first * SECTOR as u64, out)?;
        let whole = read - read % SECTOR;
        self.key.decrypt(&mut out[..whole], first);
        out[whole..read].fill(0);
        Ok(whole)
    }
}

impl DiskFile for EncryptedFile {
    fn size(&self) -> io::Result<u64> {
        let size = self.file.size()?.saturating_sub(HEADER as u64);
        Ok(size - size % SECTOR as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let (first, within) = (offset / SECTOR as u64, offset as usize % SECTOR);
        if within == 0 && out.len().is_multiple_of(SECTOR) {
            return self.read_sectors(first, out);
        }
        let mut sectors = vec![0; (within + out.len()).next_multiple_of(SECTOR)];
        let read = self.read_sectors(first, &mut sectors)?.saturating_sub(within).min(out.len());
        out[..read].copy_from_slice(&sectors[within..within + read]);
        Ok(read)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (first, within) = (offset / SECTOR as u64, offset as usize % SECTOR);
        let end = within + bytes.len();
        let mut sectors = Pages::default();
        sectors.resize(end.next_multiple_of(SECTOR));
        let buffer = sectors.as_mut_slice();
        // The rest of the first and of the last sector stays as it is.
        let last = end / SECTOR * SECTOR;
        if within > 0 {
            self.read_sectors(first, &mut buffer[..SECTOR])?;
        }
        if end > last && (last > 0 || within == 0) {
            self.read_sectors(first + (last / SECTOR) as u64, &mut buffer[last..])?;
        }
        buffer[within..end].copy_from_slice(bytes);
        self.key.encrypt(buffer, first);
        self.file.write_at(HEADER as u64 + first * SECTOR as u64, sectors.as_slice())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
#[path = "encrypted_tests.rs"]
mod tests;
