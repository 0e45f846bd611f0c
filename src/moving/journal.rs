//! Stores the objects copied from a running API server in one file, so that an interrupted import can continue.
//!
//! The file is a sequence of records with length and checksum. A later record replaces an earlier one about the same
//! object. The journal ends before the first record that is incomplete or damaged.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits;

/// The extension of the new file that replaces the old one after a rewrite.
pub(super) const BESIDE: &str = "tmp";
/// Bytes before each record: its length and its checksum.
const HEAD: usize = 8;

/// A record. The bytes of an object may follow it.
#[derive(Debug, Serialize, Deserialize)]
enum Record {
    /// The cluster of the objects.
    Of { cluster: String },
    /// An object exists in this version; its bytes follow.
    Put { table: String, namespace: String, name: String, version: String },
    /// An object does not exist.
    Deleted { table: String, namespace: String, name: String },
    /// The journal has all objects of a table as of this resourceVersion.
    Reached { table: String, version: String },
    /// Changes of a table were missed: it must be listed again.
    Lost { table: String },
    /// The table no longer exists.
    Gone { table: String },
}

/// The position of an object in the file, the length of its record, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordPosition {
    offset: u64,
    length: u32,
    record: u64,
    version: String,
}

/// The objects of a table, by namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TableObjects {
    /// The resourceVersion up to which the table is complete. `None` if it is not complete.
    reached: Option<String>,
    objects: BTreeMap<(String, String), RecordPosition>,
}

/// The file, with an index of its records.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    /// Bytes in records of existing objects.
    live: u64,
    /// How many outdated bytes are tolerated before the file is rewritten, in addition to as many bytes as are live.
    outdated: u64,
    cluster: Option<String>,
    tables: BTreeMap<String, TableObjects>,
}

impl Journal {
    /// Returns the path of the new file during a rewrite.
    fn beside(path: &Path) -> PathBuf {
        path.with_extension(BESIDE)
    }

    /// Opens the file or creates it. Cuts off the first record that is incomplete or damaged, and all that follow.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // A process that was killed during a rewrite leaves this file.
        match fs::remove_file(Self::beside(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Self::read_from(path),
        }
    }

    fn read_from(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut journal = Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file.try_clone()?),
            written: 0,
            live: 0,
            outdated: limits::MOVING_OUTDATED_BYTES,
            cluster: None,
            tables: BTreeMap::new(),
        };
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let size = file.metadata()?.len();
        while let Some((record, body)) = read(&mut reader, size - journal.written)? {
            journal.count(record, body);
        }
        file.set_len(journal.written)?;
        io::Seek::seek(&mut journal.file, io::SeekFrom::Start(journal.written))?;
        Ok(journal)
    }

    /// Records the cluster of the objects if none is recorded yet. Returns false if another one is recorded.
    pub(super) fn is_of(&mut self, cluster: &str) -> io::Result<bool> {
        if self.cluster.is_none() {
            self.add(&Record::Of { cluster: cluster.to_owned() }, b"")?;
        }
        Ok(self.cluster.as_deref() == Some(cluster))
    }

    /// Adds or replaces an object.
    pub(super) fn put(&mut self, table: &str, of: (&str, &str), version: &str, object: &[u8]) -> io::Result<()> {
        let (table, namespace, name) = (table.to_owned(), of.0.to_owned(), of.1.to_owned());
        self.add(&Record::Put { table, namespace, name, version: version.to_owned() }, object)
    }

    /// Removes an object.
    pub(super) fn delete(&mut self, table: &str, (namespace, name): (&str, &str)) -> io::Result<()> {
        let (table, namespace, name) = (table.to_owned(), namespace.to_owned(), name.to_owned());
        self.add(&Record::Deleted { table, namespace, name }, b"")
    }

    /// Notes that a table is complete up to a version.
    pub(super) fn reach(&mut self, table: &str, version: &str) -> io::Result<()> {
        self.add(&Record::Reached { table: table.to_owned(), version: version.to_owned() }, b"")
    }

    /// Notes that a table must be listed again.
    pub(super) fn lose(&mut self, table: &str) -> io::Result<()> {
        self.add(&Record::Lost { table: table.to_owned() }, b"")
    }

    /// Notes that a table no longer exists.
    pub(super) fn give_up(&mut self, table: &str) -> io::Result<()> {
        self.add(&Record::Gone { table: table.to_owned() }, b"")
    }

    /// Returns the version up to which a table is complete. `None` if it is not complete.
    pub(super) fn reached(&self, table: &str) -> Option<&str> {
        self.tables.get(table)?.reached.as_deref()
    }

    /// Returns the version of an object. `None` if the journal does not have the object.
    pub(super) fn version(&self, table: &str, (namespace, name): (&str, &str)) -> Option<&str> {
        let position = self.tables.get(table)?.objects.get(&(namespace.to_owned(), name.to_owned()))?;
        Some(&position.version)
    }

    /// Returns all tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Returns namespace and name of all objects of a table.
    pub(super) fn names(&self, table: &str) -> Vec<(String, String)> {
        self.tables.get(table).map(|came| came.objects.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns the number of objects.
    pub(super) fn count_objects(&self) -> usize {
        self.tables.values().map(|came| came.objects.len()).sum()
    }

    /// Returns the largest resourceVersion that is a number; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        let versions = self
            .tables
            .values()
            .flat_map(|came| came.reached.iter().chain(came.objects.values().map(|position| &position.version)));
        versions.filter_map(|version| version.parse().ok()).max().unwrap_or(0)
    }

    /// Returns the bytes of an object. `None` if the journal does not have it. Records added since the last
    /// [`Journal::sync`] cannot be read.
    pub(super) fn read(&self, table: &str, of: &(String, String)) -> io::Result<Option<Vec<u8>>> {
        let Some(position) = self.tables.get(table).and_then(|came| came.objects.get(of)) else { return Ok(None) };
        let mut bytes = vec![0; position.length as usize];
        self.file.get_ref().read_exact_at(&mut bytes, position.offset)?;
        Ok(Some(bytes))
    }

    /// Makes all added records durable. Rewrites the file if most of it is outdated.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.written > 2 * self.live + self.outdated {
            self.rewrite()?;
        }
        self.file.get_ref().sync_data()
    }

    /// Writes the current records to a new file, which replaces this one.
    fn rewrite(&mut self) -> io::Result<()> {
        let beside = Self::beside(&self.path);
        let _ = fs::remove_file(&beside); // of an attempt that failed
        let mut anew = Self { outdated: self.outdated, ..Self::read_from(&beside)? };
        if let Some(cluster) = &self.cluster {
            anew.is_of(cluster)?;
        }
        for (table, came) in &self.tables {
            for (of, position) in &came.objects {
                let bytes = self.read(table, of)?.unwrap_or_default();
                anew.put(table, (&of.0, &of.1), &position.version, &bytes)?;
            }
            if let Some(version) = &came.reached {
                anew.reach(table, version)?;
            }
        }
        anew.file.flush()?;
        anew.file.get_ref().sync_all()?;
        fs::rename(&beside, &self.path)?;
        if let Some(parent) = self.path.parent() {
            File::open(parent)?.sync_all()?;
        }
        anew.path.clone_from(&self.path);
        *self = anew;
        Ok(())
    }

    fn add(&mut self, record: &Record, object: &[u8]) -> io::Result<()> {
        let mut body = serde_json::to_vec(record)?;
        body.push(b'\n');
        body.extend_from_slice(object);
        let length = u32::try_from(body.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&crc32c::crc32c(&body).to_le_bytes())?;
        self.file.write_all(&body)?;
        // Parsing the written bytes ensures that they are counted as they will be read.
        if let Some(record) = parse(&body) {
            self.count(record, body.len());
        }
        Ok(())
    }

    /// Updates the index after `record`, the last one in the file so far.
    fn count(&mut self, (record, object): (Record, usize), body: usize) {
        let whole = (HEAD + body) as u64;
        let end = self.written + whole;
        match record {
            Record::Of { cluster } => self.cluster = Some(cluster),
            Record::Put { table, namespace, name, version } => {
                let position =
                    RecordPosition { offset: end - object as u64, length: object as u32, record: whole, version };
                self.live += whole;
                let before = self.tables.entry(table).or_default().objects.insert((namespace, name), position);
                self.live -= before.map_or(0, |position| position.record);
            }
            Record::Deleted { table, namespace, name } => {
                let before = self.tables.get_mut(&table).and_then(|came| came.objects.remove(&(namespace, name)));
                self.live -= before.map_or(0, |position| position.record);
            }
            Record::Reached { table, version } => self.tables.entry(table).or_default().reached = Some(version),
            Record::Lost { table } => self.tables.entry(table).or_default().reached = None,
            Record::Gone { table } => {
                let gone = self.tables.remove(&table).unwrap_or_default();
                self.live -= gone.objects.values().map(|position| position.record).sum::<u64>();
            }
        }
        self.written = end;
    }
}

/// Parses a record. Returns it with the number of the object's bytes that follow it.
fn parse(body: &[u8]) -> Option<(Record, usize)> {
    let end = body.iter().position(|byte| *byte == b'\n')?;
    Some((serde_json::from_slice(&body[..end]).ok()?, body.len() - end - 1))
}

/// Reads the next record and the length of its body. `left` is the number of bytes to the end of the file. Returns
/// `None` at the end, and for a record that is incomplete or damaged.
fn read(reader: &mut impl Read, left: u64) -> io::Result<Option<((Record, usize), usize)>> {
    if left < HEAD as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD];
    reader.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = word(0) as usize;
    if length as u64 > left - HEAD as u64 {
        return Ok(None);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if crc32c::crc32c(&body) != word(4) {
        return Ok(None);
    }
    Ok(parse(&body).map(|record| (record, length)))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
