//! The aggregated servers that are known, and the paths that they serve.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::Remote;
use super::documents::GroupVersionDocuments;

/// The aggregated servers that are known at present.
#[derive(Debug)]
pub(super) struct Known {
    /// Whether there are no servers. This makes look-ups cheap for clusters without aggregated servers.
    is_empty: AtomicBool,
    /// The servers, by group and version.
    remotes: RwLock<BTreeMap<(String, String), Arc<Remote>>>,
    /// The servers of OpenAPI v3 documents, by the path of the document in the index.
    documents: RwLock<BTreeMap<String, Arc<Remote>>>,
    changes: watch::Sender<u64>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            is_empty: AtomicBool::new(true),
            remotes: RwLock::default(),
            documents: RwLock::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Known {
    /// Returns the server that serves a path; see [`super::Aggregation::of_path`].
    pub(super) fn of_path(&self, path: &str) -> Option<Arc<Remote>> {
        if self.is_empty.load(Ordering::Acquire) {
            return None;
        }
        if let Some(document) = path.strip_prefix("/openapi/v3/") {
            return self.documents.read().get(document).cloned();
        }
        let mut segments = path.strip_prefix("/apis/")?.splitn(3, '/');
        let (group, version) = (segments.next()?, segments.next().filter(|version| !version.is_empty())?);
        self.remotes.read().get(&(group.to_owned(), version.to_owned())).cloned()
    }

    /// Returns all servers, in the order of group and version.
    pub(super) fn all(&self) -> Vec<Arc<Remote>> {
        self.remotes.read().values().cloned().collect()
    }

    /// Returns a receiver that is notified when a server is added, removed or changed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Sets which server has which OpenAPI v3 documents.
    pub(super) fn set_documents(&self, listed: &[GroupVersionDocuments]) {
        let of = |listed: &GroupVersionDocuments| {
            let remote = Arc::clone(&listed.remote);
            listed.openapi.iter().map(move |(path, _)| (path.clone(), Arc::clone(&remote))).collect::<Vec<_>>()
        };
        *self.documents.write() = listed.iter().flat_map(of).collect();
    }

    /// Changes the servers.
    pub(super) fn change(&self, change: impl FnOnce(&mut BTreeMap<(String, String), Arc<Remote>>)) {
        let mut remotes = self.remotes.write();
        let before = remotes.clone();
        change(&mut remotes);
        self.is_empty.store(remotes.is_empty(), Ordering::Release);
        if *remotes != before {
            self.changes.send_modify(|times| *times += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;
    use crate::aggregation::remote::split_name;

    #[test]
    fn paths_lead_to_the_server_of_their_group_version() {
        let known = Known::default();
        let service = value!({"metadata": {"name": "v1.a.example"}, "spec": {
            "group": "a.example", "version": "v1", "service": {"namespace": "n", "name": "s"}}});
        let remote = Arc::new(Remote::of(&service).unwrap());
        assert!(known.of_path("/apis/a.example/v1").is_none());
        known.change(|remotes| drop(remotes.insert(split_name("v1.a.example").unwrap(), remote)));
        for path in ["/apis/a.example/v1", "/apis/a.example/v1/", "/apis/a.example/v1/things/x"] {
            assert!(known.of_path(path).is_some(), "{path}");
        }
        for path in ["/apis/a.example", "/apis/a.example/", "/apis/a.example/v2/x", "/api/v1", "/apis"] {
            assert!(known.of_path(path).is_none(), "{path}");
        }
        let before = *known.changes().borrow();
        known.change(|_| {});
        assert_eq!(*known.changes().borrow(), before, "nothing changed");
        known.change(BTreeMap::clear);
        assert!(known.of_path("/apis/a.example/v1").is_none() && *known.changes().borrow() > before);
    }
}
