//! Copies a running API server and follows its changes, until a signal says that no client writes to it any more.
//!
//! The copied objects are kept in a [`Journal`]. An interrupted import therefore continues where it was: it lists only
//! the resources that were not listed completely, and watches the others for changes since. At the end, the names and
//! versions of all objects are compared with the journal, and resources that differ are listed again. The watches
//! shorten this last step, but its result does not depend on them.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use flotilla_cluster::{Drafts, Revision};
use flotilla_proto::json;
use flotilla_proto::value::Value;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::journal::Journal;
use super::live::{Live, LiveError, SourceResource};
use super::orders::Orders;
use super::watching::{Sender, WatchEvent, WatchedChange, waiting, watch};
use crate::limits;

/// Accepts the metadata of a list only.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// The reason why following a server failed. The journal stays.
#[derive(Debug, thiserror::Error)]
pub enum FollowingError {
    /// A request to the server failed.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The journal cannot be written.
    #[error("cannot write {path}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The journal has objects of another cluster.
    #[error("{path} has objects of another cluster, whose namespace kube-system has another UID")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The journal has objects of a group that the server no longer answers for.
    #[error("{table} was copied before, but the server does not answer for its group any more")]
    Unanswered {
        /// The table.
        table: String,
    },
    /// The server compacts the state of a list before it was read completely.
    #[error("{path} cannot be listed completely: the server compacts its state too early")]
    Forgotten {
        /// The path.
        path: String,
    },
    /// A thread cannot be started, or signals cannot be received.
    #[error("cannot start a thread or receive signals")]
    Signals(#[source] io::Error),
    /// A signal has interrupted the import.
    #[error("the import was interrupted")]
    Left,
}

impl From<FollowingError> for flotilla_cluster::RestoreError {
    fn from(error: FollowingError) -> Self {
        Self::Source(Box::new(error))
    }
}

/// Copies a server and follows its changes.
pub(super) struct Following {
    live: Live,
    journal: Journal,
    path: PathBuf,
    orders: Orders,
    synced: Instant,
    reported: Instant,
}

impl Following {
    /// Opens the journal at a path, or creates it.
    pub(super) fn open(live: Live, path: &Path, orders: Orders) -> Result<Self, FollowingError> {
        let failed = |source| FollowingError::Journal { path: path.to_owned(), source };
        let mut journal = Journal::open(path).map_err(failed)?;
        let known = journal.count_objects();
        let cluster = live.get("/api/v1/namespaces/kube-system")?;
        if !journal.is_of(cluster.str_at(&["metadata", "uid"])).map_err(failed)? {
            return Err(FollowingError::Foreign { path: path.to_owned() });
        }
        if known > 0 {
            eprintln!("flotilla: {known} objects had come before");
        }
        let now = Instant::now();
        Ok(Self { live, journal, path: path.to_owned(), orders, synced: now, reported: now })
    }

    /// Copies all objects, follows changes, and compares at the end.
    pub(super) fn run(&mut self) -> Result<(), FollowingError> {
        let resources = self.live.resources();
        for (at, resource) in resources.iter().enumerate() {
            if self.journal.reached(resource.table()).is_none() {
                self.list(resource)?;
            }
            self.progress(&format!("{} resources are left", resources.len() - at - 1));
        }
        self.sync()?;
        self.follow(resources)?;
        self.compare()?;
        self.sync()
    }

    /// Returns the largest revision that the server has shown.
    pub(super) fn revision(&self) -> Revision {
        Revision::new(self.journal.last()).min(Revision::LAST).max(self.live.revision())
    }

    /// Returns the server, with the report of the import.
    pub(super) fn into_live(self) -> Live {
        self.live
    }

    /// Applies the changes of all watches until a signal requests the takeover.
    fn follow(&mut self, resources: Vec<SourceResource>) -> Result<(), FollowingError> {
        let (sender, changes) = waiting();
        self.must_leave()?;
        if self.orders.must_take_over() {
            return Ok(());
        }
        for resource in resources {
            self.watch(Arc::new(resource), &sender)?;
        }
        eprintln!(
            "flotilla: {} objects were copied and changes are followed; send SIGUSR1 to process {} to take over",
            self.journal.count_objects(),
            std::process::id()
        );
        loop {
            self.must_leave()?;
            if self.orders.must_take_over() {
                eprintln!("flotilla: taking over");
                return self.rest(&changes);
            }
            if let Ok(change) = changes.recv_timeout(limits::MOVING_SIGNAL_INTERVAL) {
                self.apply(change, Some(&sender))?;
                self.progress("changes are followed");
            }
            if self.synced.elapsed() >= limits::MOVING_SYNC_INTERVAL {
                self.sync()?;
            }
        }
    }

    /// Applies the changes that already wait. The watches end once the receiver is dropped.
    fn rest(&mut self, changes: &Receiver<WatchedChange>) -> Result<(), FollowingError> {
        for _ in 0..limits::MOVING_CHANGES_WAITING {
            let Ok(change) = changes.try_recv() else { break };
            self.apply(change, None)?;
        }
        Ok(())
    }

    fn watch(&self, resource: Arc<SourceResource>, changes: &Sender) -> Result<(), FollowingError> {
        let Some(version) = self.journal.reached(resource.table()) else { return Ok(()) };
        let begun = watch(Arc::clone(self.live.client()), resource, version.to_owned(), changes.clone());
        begun.map_err(FollowingError::Signals)
    }

    fn apply(
        &mut self,
        WatchedChange { of, shown, held: _held }: WatchedChange,
        changes: Option<&Sender>,
    ) -> Result<(), FollowingError> {
        let table = of.table().to_owned();
        let applied = match shown {
            WatchEvent::Put(object) => self.put(&of, object).and_then(|version| self.journal.reach(&table, &version)),
            WatchEvent::Deleted(object) => {
                let (namespace, name, version) = named(&object);
                self.journal.delete(&table, (&namespace, &name)).and_then(|()| self.journal.reach(&table, &version))
            }
            WatchEvent::Reached(version) => self.journal.reach(&table, &version),
            WatchEvent::Lost => {
                let lost = self.journal.lose(&table);
                self.written(lost)?;
                let Some(changes) = changes else { return Ok(()) };
                self.list(&of)?;
                return self.watch(of, changes);
            }
        };
        self.written(applied)
    }

    /// Writes an object to the journal. Returns its version.
    fn put(&mut self, resource: &SourceResource, object: Value) -> io::Result<String> {
        let (namespace, name, version) = named(&object);
        let of = (&*namespace, &*name);
        if self.journal.version(resource.table(), of) != Some(&version) {
            self.journal.put(resource.table(), of, &version, &json::to_vec(&resource.stated(object)))?;
        }
        Ok(version)
    }

    /// Lists a resource completely. If the server no longer has it, drops it from the journal.
    fn list(&mut self, resource: &SourceResource) -> Result<(), FollowingError> {
        for _ in 0..limits::MOVING_LIST_ATTEMPTS {
            match self.list_once(resource) {
                Err(FollowingError::Live(error)) if error.code() == Some(410) => {}
                Err(FollowingError::Live(error)) if error.code() == Some(404) => {
                    let gone = self.journal.give_up(resource.table());
                    return self.written(gone);
                }
                outcome => return outcome,
            }
        }
        Err(FollowingError::Forgotten { path: resource.path.clone() })
    }

    fn list_once(&mut self, resource: &SourceResource) -> Result<(), FollowingError> {
        let table = resource.table();
        let lost = self.journal.lose(table);
        self.written(lost)?;
        let mut unseen: BTreeSet<_> = self.journal.names(table).into_iter().collect();
        let (mut token, mut version) = (String::new(), String::new());
        loop {
            self.must_leave()?;
            let mut page = self.page(resource, &token, "application/json")?;
            for object in page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default() {
                let (namespace, name, _) = named(&object);
                unseen.remove(&(namespace, name));
                let put = self.put(resource, object).map(drop);
                self.written(put)?;
            }
            (token, version) = continued(&page).unwrap_or((String::new(), version));
            self.progress(&format!("{table} is being listed"));
            if token.is_empty() {
                break;
            }
        }
        for (namespace, name) in unseen {
            let deleted = self.journal.delete(table, (&namespace, &name));
            self.written(deleted)?;
        }
        let reached = self.journal.reach(table, &version);
        self.written(reached)
    }

    fn page(&self, resource: &SourceResource, token: &str, accept: &str) -> Result<Value, FollowingError> {
        let token = utf8_percent_encode(token, NON_ALPHANUMERIC);
        let path = format!("{}?limit={}&continue={token}", resource.path, limits::MOVING_PAGE_OBJECTS);
        Ok(self.live.get_as(&path, accept)?)
    }

    /// Compares all resources with the journal, and lists those that differ. Resources may have been added or removed
    /// meanwhile.
    fn compare(&mut self) -> Result<(), FollowingError> {
        self.live.discover()?;
        let resources = self.live.resources();
        let there: BTreeSet<&str> = resources.iter().map(SourceResource::table).collect();
        let tables: Vec<String> = self.journal.tables().map(str::to_owned).collect();
        for table in tables.into_iter().filter(|table| !there.contains(&**table)) {
            if self.live.is_unanswered(&table) {
                return Err(FollowingError::Unanswered { table });
            }
            let gone = self.journal.give_up(&table);
            self.written(gone)?;
        }
        for resource in &resources {
            self.must_leave()?;
            if self.journal.reached(resource.table()).is_none() || !self.is_as_it_came(resource)? {
                self.list(resource)?;
            }
        }
        Ok(())
    }

    /// Returns whether a resource has exactly the objects of the journal, in the same versions.
    fn is_as_it_came(&self, resource: &SourceResource) -> Result<bool, FollowingError> {
        let (mut token, mut count) = (String::new(), 0);
        loop {
            let page = match self.page(resource, &token, METADATA) {
                Ok(page) => page,
                // Listing the resource again shows which of these it is.
                Err(FollowingError::Live(error)) if matches!(error.code(), Some(404 | 406 | 410)) => return Ok(false),
                Err(error) => return Err(error),
            };
            for object in page.list_at(&["items"]) {
                let (namespace, name, version) = named(object);
                if self.journal.version(resource.table(), (&namespace, &name)) != Some(&version) {
                    return Ok(false);
                }
                count += 1;
            }
            match continued(&page) {
                Some((next, _)) if !next.is_empty() => token = next,
                _ => return Ok(count == self.journal.names(resource.table()).len()),
            }
        }
    }

    /// Returns all objects in batches, definitions first.
    pub(super) fn drafts(&mut self) -> impl Iterator<Item = Result<Drafts, FollowingError>> + '_ {
        let resources = self.live.resources().into_iter();
        let named = resources.map(|resource| (self.journal.names(resource.table()), resource));
        let mut left: VecDeque<_> = named.collect();
        let mut ended = false;
        std::iter::from_fn(move || {
            let (mut drafts, mut bytes) = (Vec::new(), 0);
            while let Some((names, resource)) = left.front_mut() {
                let Some(of) = names.pop() else {
                    left.pop_front();
                    continue;
                };
                match self.draft(resource, &of, &mut drafts) {
                    Ok(length) => bytes += length,
                    Err(error) => return Some(Err(error)),
                }
                if bytes >= limits::MOVING_CHUNK_BYTES {
                    return Some(Ok(drafts));
                }
            }
            if !drafts.is_empty() {
                return Some(Ok(drafts));
            }
            match std::mem::replace(&mut ended, true) {
                true => None,
                false => self.live.end().err().map(|error| Err(error.into())),
            }
        })
    }

    /// Adds the draft of an object. Returns the size of the object, in bytes.
    fn draft(
        &mut self,
        resource: &SourceResource,
        of: &(String, String),
        drafts: &mut Drafts,
    ) -> Result<usize, FollowingError> {
        let read = self.journal.read(resource.table(), of);
        let Some(bytes) = read.map_err(|source| self.failed(source))? else { return Ok(0) };
        self.live.draft(resource, (&of.0, &of.1), &bytes, drafts)?;
        Ok(bytes.len())
    }

    fn must_leave(&mut self) -> Result<(), FollowingError> {
        if !self.orders.must_leave() {
            return Ok(());
        }
        self.sync()?;
        Err(FollowingError::Left)
    }

    fn sync(&mut self) -> Result<(), FollowingError> {
        self.synced = Instant::now();
        let synced = self.journal.sync();
        self.written(synced)
    }

    fn written(&self, written: io::Result<()>) -> Result<(), FollowingError> {
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> FollowingError {
        FollowingError::Journal { path: self.path.clone(), source }
    }

    fn progress(&mut self, what: &str) {
        if self.reported.elapsed() >= limits::MOVING_PROGRESS_INTERVAL {
            self.reported = Instant::now();
            eprintln!("flotilla: {} objects were copied, {what}", self.journal.count_objects());
        }
    }
}

/// Returns namespace, name and version of an object.
fn named(object: &Value) -> (String, String, String) {
    let of = |field| object.str_at(&["metadata", field]).to_owned();
    (of("namespace"), of("name"), of("resourceVersion"))
}

/// Returns the continue token and the version of a list.
fn continued(page: &Value) -> Option<(String, String)> {
    let of = |field| page.str_at(&["metadata", field]).to_owned();
    page.get("metadata").map(|_| (of("continue"), of("resourceVersion")))
}
