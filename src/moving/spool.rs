//! Sorts any number of objects by revision. Their values are kept in a temporary file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The position of a key and its value in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpooledKey {
    revision: u64,
    offset: u64,
    key_bytes: u32,
    value_bytes: u32,
    mark: i64,
}

/// Keys and values, returned in order at the end.
#[derive(Debug)]
pub(super) struct Spool {
    file: BufWriter<File>,
    written: u64,
    waiting: Vec<SpooledKey>,
}

impl Spool {
    /// Creates the temporary file at a path where no file exists, and removes its name.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        fs::remove_file(path)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file), written: 0, waiting: Vec::new() })
    }

    /// Adds a key with its value. `mark` is returned with them.
    pub(super) fn add(&mut self, revision: u64, mark: i64, key: &str, value: &[u8]) -> io::Result<()> {
        let (key_bytes, value_bytes) = (key.len() as u32, value.len() as u32);
        self.waiting.push(SpooledKey { revision, offset: self.written, key_bytes, value_bytes, mark });
        self.file.write_all(key.as_bytes())?;
        self.file.write_all(value)?;
        self.written += (key.len() + value.len()) as u64;
        Ok(())
    }

    /// Calls `take` for everything that was added, in the order of revisions: revision, mark, key, value.
    pub(super) fn take<E: From<io::Error>>(
        self,
        mut take: impl FnMut(u64, i64, Vec<u8>, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut waiting = self.waiting;
        waiting.sort_unstable();
        for SpooledKey { revision, offset, key_bytes, value_bytes, mark } in waiting {
            let mut key = vec![0; (key_bytes + value_bytes) as usize];
            file.read_exact_at(&mut key, offset)?;
            let value = key.split_off(key_bytes as usize);
            take(revision, mark, key, value)?;
        }
        Ok(())
    }
}
