//! A snapshot file: its hash, its meta data, its buckets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

use crate::keyvalue::revision;
use crate::limits::{HASHED_BYTES, PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use crate::page::{FileLocation, HEADER_BYTES, META_BYTES, Meta};
use crate::tree::{Pages, Root, walk};
use crate::{Error, KeyValue};

/// The size of the database is a multiple of this; further bytes are a hash.
const SECTOR_BYTES: u64 = 512;

/// How to treat the hash at the end of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// It must be present and correct.
    Demanded,
    /// It may be missing, as in the database of a member, and is not checked.
    Skipped,
}

/// The versions that a snapshot states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The version of the format of the database, such as `3.6.0`. `None` if the release is older than 3.6.
    pub storage: Option<String>,
    /// The revision up to which the history was compacted. `None` if it never was.
    pub compacted: Option<i64>,
}

/// A snapshot of etcd.
#[derive(Debug)]
pub struct Snapshot {
    pages: Pages,
    buckets: BTreeMap<Vec<u8>, Root>,
    bytes: u64,
}

impl Snapshot {
    /// Opens a file and reads its list of buckets.
    ///
    /// # Errors
    /// If it is no snapshot, or is incomplete or damaged.
    pub fn open(path: &Path, hash: Hash) -> Result<Snapshot, Error> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let has_hash = bytes % SECTOR_BYTES == SHA256_OUTPUT_LEN as u64;
        let database = if has_hash { bytes - SHA256_OUTPUT_LEN as u64 } else { bytes };
        if database < 2 * PAGE_SIZE_MIN {
            return Err(Error::Short { bytes });
        }
        let meta = meta(&file, database)?;
        if hash == Hash::Demanded {
            if !has_hash {
                return Err(Error::NoHash { bytes });
            }
            check(&file, database)?;
        }
        let pages = Pages { file, page_size: u64::from(meta.page_size), count: meta.pages };
        let mut buckets = BTreeMap::new();
        walk(&pages, &Root::Page(meta.root), |element| {
            if element.is_bucket {
                buckets.insert(element.key.to_vec(), Root::of(element.value, element.location)?);
            }
            Ok(())
        })?;
        Ok(Snapshot { pages, buckets, bytes })
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the names of all buckets.
    pub fn buckets(&self) -> impl Iterator<Item = &[u8]> {
        self.buckets.keys().map(Vec::as_slice)
    }

    /// Calls `see` for all keys and values of a bucket, in the order of the keys, with the location of each value.
    ///
    /// # Errors
    /// If there is no such bucket, one of its pages is damaged, or `see` returns an error.
    pub fn walk(
        &self,
        bucket: &'static str,
        mut see: impl FnMut(&[u8], &[u8], FileLocation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let root = self.buckets.get(bucket.as_bytes()).ok_or(Error::NoBucket(bucket))?;
        walk(&self.pages, root, |element| match element.is_bucket {
            true => Err(Error::page(element.location.page, "there is a bucket among values")),
            false => see(element.key, element.value, element.location),
        })
    }

    /// Reads the bytes at a location, which [`Snapshot::walk`] has passed to `see`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, location: FileLocation) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; location.length as usize];
        self.pages.file.read_exact_at(&mut bytes, location.offset)?;
        Ok(bytes)
    }

    /// Returns the versions that the snapshot states.
    ///
    /// # Errors
    /// If a page is damaged.
    pub fn versions(&self) -> Result<Versions, Error> {
        let mut versions = Versions::default();
        if !self.buckets.contains_key(b"meta".as_slice()) {
            return Ok(versions);
        }
        self.walk("meta", |key, value, _| {
            match key {
                b"storageVersion" => versions.storage = Some(String::from_utf8_lossy(value).into_owned()),
                b"finishedCompactRev" => versions.compacted = revision(value).map(|revision| revision.main),
                _ => {}
            }
            Ok(())
        })?;
        Ok(versions)
    }

    /// Reads the version of a key at a location.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn key_value(&self, location: FileLocation) -> Result<KeyValue, Error> {
        KeyValue::read(&self.read(location)?)
            .ok_or(Error::Entry { page: location.page, what: "it is no message of a key" })
    }
}

/// Returns the newer one of the valid meta pages.
fn meta(file: &File, database: u64) -> Result<Meta, Error> {
    let read = |offset: u64| {
        let mut bytes = [0; HEADER_BYTES + META_BYTES];
        let there = offset + bytes.len() as u64 <= database;
        if there {
            file.read_exact_at(&mut bytes, offset).map(|()| Meta::read(&bytes))
        } else {
            Ok(Err("is not there"))
        }
    };
    let checked = |meta: Meta| {
        let size = u64::from(meta.page_size);
        if !size.is_power_of_two() || !(PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&size) {
            return Err("names a size of pages that there is not");
        }
        let enough = meta.pages.checked_mul(size).is_some_and(|bytes| bytes <= database);
        if enough { Ok(meta) } else { Err("names more pages than there are") }
    };
    let first = read(0)?.and_then(checked);
    let second = match &first {
        Ok(meta) => read(u64::from(meta.page_size))?.and_then(checked),
        // The page size is unknown, so the second page is looked for at every possible size.
        Err(_) => {
            let sizes = (0..).map(|shift| PAGE_SIZE_MIN << shift).take_while(|size| *size <= PAGE_SIZE_MAX);
            let mut found = Err("does not begin as it must");
            for size in sizes {
                let meta = read(size)?.and_then(checked);
                let is_there = meta.as_ref().is_ok_and(|meta| u64::from(meta.page_size) == size);
                if is_there || (found.is_err() && meta.is_err_and(|why| why != "does not begin as it must")) {
                    found = meta;
                }
            }
            found
        }
    };
    match (first, second) {
        (Ok(first), Ok(second)) if second.transaction > first.transaction => Ok(second),
        (Ok(first), _) => Ok(first),
        (_, Ok(second)) => Ok(second),
        (Err(first), Err(second)) => Err(Error::NoMeta { first, second }),
    }
}

/// Compares the hash at the end of the file with that of the database.
fn check(file: &File, database: u64) -> Result<(), Error> {
    let mut hash = [0; SHA256_OUTPUT_LEN];
    file.read_exact_at(&mut hash, database)?;
    if digest(file, database)?.as_ref() == hash { Ok(()) } else { Err(Error::Hash) }
}

/// Returns the SHA-256 of the first bytes of a file.
pub(crate) fn digest(file: &File, length: u64) -> Result<ring::digest::Digest, Error> {
    struct At<'a>(&'a File, u64);
    impl Read for At<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read_at(out, self.1)?;
            self.1 += count as u64;
            Ok(count)
        }
    }
    let (mut context, mut buffer) = (Context::new(&SHA256), vec![0; HASHED_BYTES]);
    let mut reader = BufReader::with_capacity(0, At(file, 0)).take(length);
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(context.finish()),
            count => context.update(&buffer[..count]),
        }
    }
}
