//! Writes a snapshot from front to back.
//!
//! The pages of keys come first, in the order in which they are given; then the branches above them, the other buckets,
//! and the root. The meta pages are written last, and the hash after that, so that an unfinished file is not a valid
//! snapshot.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use crate::keyvalue::revision_bytes;
use crate::page::{BRANCH, BUCKET, BUCKET_BYTES, ELEMENT_BYTES, FREELIST, HEADER_BYTES, Header, LEAF, Meta};
use crate::snapshot::digest;
use crate::{Error, KeyValue, Lease};

const PAGE_BYTES: usize = 4096;
/// The page that lists free pages, of which there are none.
const FREELIST_PAGE: u64 = 2;
/// Largest size of a bucket that is stored inline.
const INLINE_BYTES: usize = PAGE_BYTES / 4;
/// The transaction id of the whole file.
const TRANSACTION: u64 = 2;
/// Buckets of etcd that are empty at first.
const EMPTY: [&str; 8] = ["alarm", "auth", "authRoles", "authUsers", "cluster", "members", "members_removed", "test"];

/// The parts of a snapshot besides keys.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Leases that keys are attached to.
    pub leases: Vec<Lease>,
    /// The present revision: etcd answers watches and reads of earlier ones with "compacted".
    pub revision: i64,
}

/// Writes a snapshot.
#[derive(Debug)]
pub struct SnapshotWriter {
    file: BufWriter<File>,
    /// The number of the next page.
    next: u64,
    keys: OpenTree,
    last: Option<(i64, i64)>,
}

impl SnapshotWriter {
    /// Starts a snapshot in an empty file, which must be readable, too.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(file: File) -> Result<SnapshotWriter, Error> {
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&[0; 3 * PAGE_BYTES])?;
        Ok(SnapshotWriter { file, next: FREELIST_PAGE + 1, keys: OpenTree::default(), last: None })
    }

    /// Writes a key. Its `mod_revision` must not be below that of the key before it.
    ///
    /// # Errors
    /// If it is below, or the file cannot be written.
    pub fn put(&mut self, key_value: &KeyValue) -> Result<(), Error> {
        let main = key_value.mod_revision;
        let sub = match self.last {
            Some((last, _)) if last > main => return Err(Error::Order(main)),
            Some((last, sub)) if last == main => sub + 1,
            _ => 0,
        };
        self.last = Some((main, sub));
        let mut message = Vec::with_capacity(key_value.key.len() + key_value.value.len() + 64);
        key_value.write(&mut message);
        self.keys.put(&revision_bytes(main, sub), &message, 0, &mut self.next, &mut self.file)
    }

    /// Writes the rest, and makes the file durable. Returns its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, ending: &Ending) -> Result<u64, Error> {
        let keys = std::mem::take(&mut self.keys).finish(&mut self.next, &mut self.file)?;
        let mut buckets = vec![("key", bucket(keys, None))];
        let mut lease = OpenTree::default();
        let mut leases = ending.leases.clone();
        leases.sort_by_key(|lease| lease.id);
        let entries = leases.iter().map(|lease| {
            let mut message = Vec::new();
            lease.write(&mut message);
            (lease.id.to_be_bytes().to_vec(), message)
        });
        for (key, value) in entries {
            lease.put(&key, &value, 0, &mut self.next, &mut self.file)?;
        }
        buckets.push(("lease", self.small(lease)?));
        let mut meta = OpenTree::default();
        let compacted = revision_bytes(ending.revision, 0);
        let one = 1_u64.to_be_bytes();
        let described: [(&str, &[u8]); 5] = [
            ("consistent_index", &one),
            ("finishedCompactRev", &compacted),
            ("scheduledCompactRev", &compacted),
            ("storageVersion", b"3.6.0"),
            ("term", &one),
        ];
        for (key, value) in described {
            meta.put(key.as_bytes(), value, 0, &mut self.next, &mut self.file)?;
        }
        buckets.push(("meta", self.small(meta)?));
        for name in EMPTY {
            buckets.push((name, self.small(OpenTree::default())?));
        }
        buckets.sort_by_key(|(name, _)| *name);
        let mut root = OpenTree::default();
        for (name, value) in buckets {
            root.put(name.as_bytes(), &value, BUCKET, &mut self.next, &mut self.file)?;
        }
        let root = root.finish(&mut self.next, &mut self.file)?;
        self.close(root)
    }

    /// Returns the value of a bucket, with the bucket inline if it is small.
    fn small(&mut self, tree: OpenTree) -> Result<Vec<u8>, Error> {
        if tree.branches.is_empty() && tree.leaf.bytes() <= INLINE_BYTES {
            let mut inline = Vec::new();
            tree.leaf.write(0, LEAF, 0, &mut inline);
            return Ok(bucket(0, Some(&inline)));
        }
        Ok(bucket(tree.finish(&mut self.next, &mut self.file)?, None))
    }

    fn close(mut self, root: u64) -> Result<u64, Error> {
        let mut head = Vec::with_capacity(3 * PAGE_BYTES);
        let meta = |transaction| {
            let (page_size, freelist, pages) = (PAGE_BYTES as u32, FREELIST_PAGE, self.next);
            Meta { page_size, root, freelist, pages, transaction }
        };
        // The newer meta page is the one that the next transaction does not overwrite.
        for (number, transaction) in [(0, TRANSACTION), (1, TRANSACTION - 1)] {
            meta(transaction).write(number, &mut head);
            head.resize((number as usize + 1) * PAGE_BYTES, 0);
        }
        Header { number: FREELIST_PAGE, flags: FREELIST, count: 0, overflow: 0 }.write(&mut head);
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        let mut file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let length = self.next * PAGE_BYTES as u64;
        let digest = digest(&file, length)?;
        file.seek(SeekFrom::Start(length))?;
        file.write_all(digest.as_ref())?;
        file.sync_all()?;
        Ok(length + digest.as_ref().len() as u64)
    }
}

/// Encodes the value of a bucket.
fn bucket(root: u64, inline: Option<&[u8]>) -> Vec<u8> {
    let mut value = Vec::with_capacity(BUCKET_BYTES);
    value.extend_from_slice(&root.to_le_bytes());
    value.extend_from_slice(&0_u64.to_le_bytes());
    value.extend_from_slice(inline.unwrap_or_default());
    value
}

/// A page under construction.
#[derive(Debug, Default)]
struct OpenPage {
    /// Flags, key length and value length of each element; in a branch the page below instead of the flags.
    elements: Vec<(u64, u32, u32)>,
    content: Vec<u8>,
}

impl OpenPage {
    fn bytes(&self) -> usize {
        HEADER_BYTES + self.elements.len() * ELEMENT_BYTES + self.content.len()
    }

    /// Returns whether an element of this many bytes fits into the page. The first one always does: a page that is too
    /// small for it gets overflow pages.
    fn has_room(&self, bytes: usize) -> bool {
        self.elements.is_empty()
            || (self.bytes() + ELEMENT_BYTES + bytes <= PAGE_BYTES && self.elements.len() < usize::from(u16::MAX) - 1)
    }

    fn add(&mut self, mark: u64, key: &[u8], value: &[u8]) {
        self.elements.push((mark, key.len() as u32, value.len() as u32));
        self.content.extend_from_slice(key);
        self.content.extend_from_slice(value);
    }

    fn write(&self, number: u64, flags: u16, overflow: u32, out: &mut Vec<u8>) {
        Header { number, flags, count: self.elements.len() as u16, overflow }.write(out);
        let mut ahead = self.elements.len() * ELEMENT_BYTES;
        for (mark, key, value) in &self.elements {
            let position = ahead as u32;
            match flags {
                BRANCH => {
                    out.extend_from_slice(&position.to_le_bytes());
                    out.extend_from_slice(&key.to_le_bytes());
                    out.extend_from_slice(&mark.to_le_bytes());
                }
                _ => {
                    for word in [*mark as u32, position, *key, *value] {
                        out.extend_from_slice(&word.to_le_bytes());
                    }
                }
            }
            ahead = ahead + (key + value) as usize - ELEMENT_BYTES;
        }
        out.extend_from_slice(&self.content);
    }

    /// Writes the page. Returns its number.
    fn flush(&mut self, flags: u16, next: &mut u64, out: &mut impl Write) -> Result<u64, Error> {
        let pages = self.bytes().div_ceil(PAGE_BYTES);
        let mut page = Vec::with_capacity(pages * PAGE_BYTES);
        self.write(*next, flags, (pages - 1) as u32, &mut page);
        page.resize(pages * PAGE_BYTES, 0);
        out.write_all(&page)?;
        self.elements.clear();
        self.content.clear();
        let number = *next;
        *next += pages as u64;
        Ok(number)
    }
}

/// A tree under construction, whose elements come in the order of their keys.
#[derive(Debug, Default)]
struct OpenTree {
    leaf: OpenPage,
    first: Vec<u8>,
    /// The written pages, with the first key of each.
    branches: Vec<(Vec<u8>, u64)>,
}

impl OpenTree {
    fn put(&mut self, key: &[u8], value: &[u8], flags: u32, next: &mut u64, out: &mut impl Write) -> Result<(), Error> {
        if !self.leaf.has_room(key.len() + value.len()) {
            let number = self.leaf.flush(LEAF, next, out)?;
            self.branches.push((std::mem::take(&mut self.first), number));
        }
        if self.leaf.elements.is_empty() {
            self.first = key.to_vec();
        }
        self.leaf.add(u64::from(flags), key, value);
        Ok(())
    }

    /// Writes the remaining elements and the branches above. Returns the page of the root.
    fn finish(mut self, next: &mut u64, out: &mut impl Write) -> Result<u64, Error> {
        let number = self.leaf.flush(LEAF, next, out)?;
        self.branches.push((self.first, number));
        while self.branches.len() > 1 {
            let (mut above, mut node) = (Vec::new(), OpenPage::default());
            let mut first = Vec::new();
            for (key, page) in &self.branches {
                if !node.has_room(key.len()) {
                    above.push((std::mem::take(&mut first), node.flush(BRANCH, next, out)?));
                }
                if node.elements.is_empty() {
                    first.clone_from(key);
                }
                node.add(*page, key, &[]);
            }
            above.push((first, node.flush(BRANCH, next, out)?));
            self.branches = above;
        }
        Ok(self.branches[0].1)
    }
}
