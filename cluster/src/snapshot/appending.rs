//! A file that is written from its beginning to its end.

use std::io;

use crate::disk::DiskFile;
use crate::disk::{PAGE, Pages};

/// A new file, written in whole pages, by direct I/O where possible: the data is not read again soon, and copying it
/// through the page cache would cost as much as making it.
pub(super) struct Appending {
    file: Box<dyn DiskFile>,
    /// Bytes that were written; whole pages.
    written: u64,
    /// The bytes after them, which are not a whole page yet.
    rest: Pages,
}

impl Appending {
    pub(super) fn new(file: Box<dyn DiskFile>) -> Appending {
        Appending { file, written: 0, rest: Pages::default() }
    }

    /// Returns the length of the file so far, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.written + self.rest.len() as u64
    }

    /// Appends bytes, and writes all complete pages. When writing fails, no bytes are appended.
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

    /// Makes everything that was written durable. Less than a page may not be written yet.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Writes the last bytes, and makes everything durable.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.file.write_at(self.written, self.rest.as_slice())?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::{Disk, LocalDisk};

    #[test]
    fn appended_bytes_of_any_size_are_in_the_file() {
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
