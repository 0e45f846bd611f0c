//! Reads the objects of an etcd snapshot and converts each to the form in which the store keeps it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use flotilla_cluster::{Draft, Drafts, Key, RestoreError, Revision, TableId};
use flotilla_etcd_snapshot::{Current, FileLocation, Hash, Live, Snapshot};

use super::aside::Aside;
use super::key_meaning::{KeyMeaning, KeyMeanings, folder};
use super::report::Report;
use super::stored;
use crate::custom::{self, Definition};
use crate::encryption::{ENCRYPTED, Keys};
use crate::limits;
use crate::served::Resources;

/// The reason why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file is damaged, or is not a snapshot.
    #[error(transparent)]
    Snapshot(#[from] flotilla_etcd_snapshot::Error),
    /// No key has the prefix.
    #[error("the snapshot has no key that begins with {prefix:?}, among {others} keys; --etcd-prefix names another")]
    Empty {
        /// The prefix.
        prefix: String,
        /// The number of keys.
        others: u64,
    },
    /// Its revisions leave none for the store.
    #[error("the snapshot has revision {0}, which leaves no larger ones")]
    Exhausted(i64),
    /// Some values cannot be decrypted.
    #[error("values are encrypted and cannot be decrypted with the keys that --encryption-provider-config gives: {0}")]
    Encrypted(String),
    /// The aside file cannot be written.
    #[error("cannot write {path}")]
    Aside {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl From<InputError> for RestoreError {
    fn from(error: InputError) -> Self {
        Self::Source(Box::new(error))
    }
}

/// Reads a snapshot.
pub(super) struct Input {
    snapshot: Snapshot,
    current: Current,
    /// The last revision of the snapshot.
    last: i64,
    /// The prefix of all keys, including the slash at its end.
    prefix: String,
    meanings: KeyMeanings,
    keys: Keys,
    /// The numbers of imported and of refused objects.
    pub(super) report: Report,
    aside: Option<Aside>,
    /// The path of the complete aside file, and its number of keys.
    pub(super) put_aside: Option<(PathBuf, u64)>,
}

impl Input {
    /// Opens a snapshot and reads its keys and definitions. Refused objects will be written to `aside`.
    pub(super) fn open(
        path: &Path,
        hash: Hash,
        prefix: &str,
        keys: Keys,
        aside: Option<Aside>,
    ) -> Result<Self, InputError> {
        let snapshot = Snapshot::open(path, hash)?;
        let prefix = format!("/{}/", prefix.trim_matches('/'));
        let current = Current::read(&snapshot, prefix.as_bytes())?;
        if current.keys.is_empty() {
            return Err(InputError::Empty { prefix, others: current.others });
        }
        // Compacted revisions may be larger than those of the remaining keys.
        let last = current.revision.max(snapshot.versions()?.compacted.unwrap_or_default());
        let is_left = u64::try_from(last).is_ok_and(|last| Revision::new(last).next() < Revision::LAST);
        if !is_left {
            return Err(InputError::Exhausted(last));
        }
        let (meanings, report) = (KeyMeanings::builtin(), Report::default());
        let mut input = Self { snapshot, current, last, prefix, meanings, keys, report, aside, put_aside: None };
        input.put_definitions_first();
        input.check_encryption()?;
        input.define()?;
        Ok(input)
    }

    /// Returns the last revision of the snapshot.
    pub(super) fn revision(&self) -> Revision {
        Revision::new(self.last.cast_unsigned())
    }

    /// Returns the folder of definitions, without the prefix of all keys.
    fn definitions(&self) -> String {
        format!("{}/{}/", custom::GROUP, custom::RESOURCE)
    }

    fn put_definitions_first(&mut self) {
        let begin = format!("{}{}", self.prefix, self.definitions());
        self.current.keys.sort_by_key(|live| !live.key.starts_with(begin.as_bytes()));
    }

    /// Fails if some values cannot be decrypted, before anything is imported.
    fn check_encryption(&self) -> Result<(), InputError> {
        let mut closed = BTreeMap::<String, (u64, String)>::new();
        for live in &self.current.keys {
            let head = FileLocation { length: live.value.length.min(ENCRYPTED.len() as u32), ..live.value };
            if self.snapshot.read(head)? != ENCRYPTED {
                continue;
            }
            if let Err(how) = self.keys.decrypted(&live.key, self.snapshot.read(live.value)?) {
                let first = || (0, String::from_utf8_lossy(&live.key).into_owned());
                closed.entry(how).or_insert_with(first).0 += 1;
            }
        }
        if closed.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for (at, (how, (count, first))) in closed.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = write!(text, "{}{count} {how}, such as {first}", if at == 0 { "" } else { "; " });
        }
        Err(InputError::Encrypted(text))
    }

    /// Adds the folders of custom resources.
    fn define(&mut self) -> Result<(), InputError> {
        let (resources, folder) = (Resources::builtin(), self.definitions());
        let Some(of) = self.meanings.of_folder(folder.trim_end_matches('/')).cloned() else { return Ok(()) };
        for live in &self.current.keys {
            if !live.key[self.prefix.len()..].starts_with(folder.as_bytes()) {
                break; // definitions come first
            }
            let value = self.read(live)?;
            // Errors in a definition are reported when it is imported as an object.
            let read = stored::object(&of, &value).ok().and_then(|object| Definition::of(&object));
            if let Some(served) = read.and_then(|definition| resources.defined_by(definition)) {
                self.meanings.add(served);
            }
        }
        Ok(())
    }

    fn read(&self, live: &Live) -> Result<Vec<u8>, InputError> {
        let value = self.snapshot.read(live.value)?;
        self.keys
            .decrypted(&live.key, value)
            .map_err(|how| InputError::Encrypted(format!("{} {how}", String::from_utf8_lossy(&live.key))))
    }

    /// Returns all objects in batches, definitions first.
    pub(super) fn drafts(&mut self) -> impl Iterator<Item = Result<Drafts, InputError>> + '_ {
        InputPass { input: self, at: 0, ended: false, reported: Instant::now() }
    }

    /// Converts a key to a draft. `None` if the key is not that of an object, or if the object is refused.
    fn draft(&mut self, at: usize) -> Result<Option<(TableId, Key, Draft)>, InputError> {
        let live = &self.current.keys[at];
        let value = self.read(live)?;
        let whole = String::from_utf8_lossy(&live.key).into_owned();
        let (resource, why) = match self.meanings.find(&whole[self.prefix.len()..]) {
            KeyMeaning::MadeAnew(why) => {
                self.report.left_out(why);
                return Ok(None);
            }
            KeyMeaning::Unknown(why) => (of_unknown(&whole[self.prefix.len()..]), why),
            KeyMeaning::Object { served, namespace, name } => match stored::draft(served, namespace, name, &value) {
                Ok(draft) => {
                    let (table, key) = (served.table.clone(), served.key(namespace, name));
                    self.report.taken(table.as_str(), draft.bytes.len());
                    return Ok(Some((table, key, draft)));
                }
                Err(why) => (folder(served), why.to_string()),
            },
        };
        self.report.refused(&resource, &whole, &why);
        if let Some(aside) = &mut self.aside {
            let added = aside.add(&whole, live.mod_revision, &why, &value);
            added.map_err(|source| InputError::Aside { path: aside.path().into(), source })?;
        }
        Ok(None)
    }

    /// Makes the aside file durable. Called after the last object, before the store is complete.
    fn end(&mut self) -> Result<(), InputError> {
        if let Some(aside) = &mut self.aside {
            let finished = aside.finish();
            self.put_aside = finished.map_err(|source| InputError::Aside { path: aside.path().into(), source })?;
        }
        Ok(())
    }

    /// Keeps the aside file, because the import is complete.
    pub(super) fn complete(&mut self) {
        self.aside.iter_mut().for_each(Aside::complete);
    }
}

/// Returns the name under which an unknown key is counted: at most its first two parts.
fn of_unknown(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').collect();
    parts[..parts.len().saturating_sub(1).clamp(1, 2)].join("/")
}

struct InputPass<'a> {
    input: &'a mut Input,
    at: usize,
    ended: bool,
    reported: Instant,
}

impl InputPass<'_> {
    fn tell(&mut self) {
        if self.reported.elapsed() >= limits::MOVING_PROGRESS_INTERVAL {
            self.reported = Instant::now();
            eprintln!("flotilla: {} of {} keys are read", self.at, self.input.current.keys.len());
        }
    }
}

impl Iterator for InputPass<'_> {
    type Item = Result<Drafts, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut drafts, mut bytes) = (Vec::new(), 0);
        while self.at < self.input.current.keys.len() && bytes < limits::MOVING_CHUNK_BYTES {
            let draft = self.input.draft(self.at);
            self.at += 1;
            match draft {
                Ok(draft) => {
                    bytes += draft.as_ref().map_or(0, |(_, _, draft)| draft.bytes.len());
                    drafts.extend(draft);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        self.tell();
        if !drafts.is_empty() {
            return Some(Ok(drafts));
        }
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        self.input.end().err().map(Err)
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
