//! A file that is written from its beginning to its end.

use std::io;

use crate::wal::disk::DiskFile;
use crate::wal::{PAGE, Pages};

/// A new file. It is written in whole pages, past the page cache where that can be: what is written is not read again
/// soon, and copying it would cost as much as making it.
pub(super) struct Appending {
    file: Box<dyn DiskFile>,
    /// Bytes that were written; whole pages.
    written: u64,
    /// What follows them.
    rest: Pages,
}

impl Appending {
    pub(super) fn new(file: Box<dyn DiskFile>) -> Appending {
        Appending { file, written: 0, rest: Pages::default() }
    }

    /// Bytes of the file so far.
    pub(super) fn len(&self) -> u64 {
        self.written + self.rest.len() as u64
    }

    /// Adds bytes, and writes what are whole pages by then. None are added when they cannot be written.
    pub(super) fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.rest.len();
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - self.rest.len() % PAGE;
        if whole > 0 {
            let pages = &self.rest.as_slice()[..whole];
            self.file.write_at(self.written, pages).inspect_err(|_| self.rest.resize(before))?;
            self.written += whole as u64;
            self.rest.advance(whole, bytes.len() + PAGE);
        }
        Ok(())
    }

    /// Makes what was written durable, which leaves less than a page out.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Writes the last bytes, and makes all durable.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.file.write_at(self.written, self.rest.as_slice())?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::wal::disk::{Disk, LocalDisk};

    #[test]
    fn what_is_added_is_in_the_file_whatever_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path: &Path = &directory.path().join("file");
        let mut file = Appending::new(LocalDisk::DURABLE.create(path).unwrap());
        let mut expected = Vec::new();
        for round in 0..60_usize {
            let bytes = vec![round as u8; round * round * 7];
            file.extend(&bytes).unwrap();
            expected.extend(bytes);
            assert_eq!(file.len(), expected.len() as u64);
        }
        file.sync().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), expected[..expected.len() - expected.len() % PAGE]);
        file.finish().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), expected);
    }
}
