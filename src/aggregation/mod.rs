//! API servers that answer for group versions of their own (aggregation, API concepts "Kubernetes API Aggregation
//! Layer").
//!
//! An APIService with a service says that requests for a version of a group are another server's. [`Aggregation`] knows
//! these [`Remote`]s as they are stored, and costs a request nothing but one look while there are none. [`pass`] makes
//! the request of the other server as this server's own front proxy; [`availability`] says by the condition of each
//! APIService whether that makes sense; [`documents`] fetches what is listed of them in discovery and OpenAPI.

pub mod availability;
pub mod documents;
mod identity;
pub mod measured;
pub mod pass;
mod remote;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flotilla_cluster::Interest;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::follow::{Seen, follow};
use crate::limits;
use crate::outbound::{CredentialFiles, Identity};
use crate::pki::Pki;
use crate::registry::{Registry, stored_value};

pub use remote::Remote;

/// Group of APIServices.
pub const GROUP: &str = "apiregistration.k8s.io";
/// Their resource.
pub const RESOURCE: &str = "apiservices";

/// How long the certificate that is shown to other servers is used before it is looked at again.
const IDENTITY_TIME: Duration = Duration::from_secs(600);

/// The servers that answer for group versions of their own.
pub struct Aggregation {
    /// Whether there are none: then nobody looks further.
    is_empty: AtomicBool,
    /// By group and version.
    remotes: RwLock<BTreeMap<(String, String), Arc<Remote>>>,
    /// Who has the documents of OpenAPI v3 that others have, by their paths in the index.
    documents: RwLock<BTreeMap<String, Arc<Remote>>>,
    changes: watch::Sender<u64>,
    identity: Shown,
}

/// The certificate that other servers are shown.
#[derive(Default)]
struct Shown {
    given: CredentialFiles,
    made: Option<Arc<Pki>>,
    kept: Mutex<Option<(Instant, Option<Identity>)>>,
}

impl std::fmt::Debug for Aggregation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregation").finish_non_exhaustive()
    }
}

impl Default for Aggregation {
    fn default() -> Self {
        Self {
            is_empty: AtomicBool::new(true),
            remotes: RwLock::default(),
            documents: RwLock::default(),
            changes: watch::Sender::new(0),
            identity: Shown::default(),
        }
    }
}

impl Aggregation {
    /// None yet. Other servers are shown a certificate of these files, or else the one that is made here.
    pub fn new(given: CredentialFiles, made: Arc<Pki>) -> Self {
        Self { identity: Shown { given, made: Some(made), kept: Mutex::default() }, ..Self::default() }
    }

    /// Who answers for what a path names, or has that document of OpenAPI v3, if that is another server. The path need
    /// not be decoded: groups and versions have no escapes.
    pub fn of_path(&self, path: &str) -> Option<Arc<Remote>> {
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

    fn set_documents(&self, listed: &[documents::Listed]) {
        let of = |listed: &documents::Listed| {
            let remote = Arc::clone(&listed.remote);
            listed.openapi.iter().map(move |(path, _)| (path.clone(), Arc::clone(&remote))).collect::<Vec<_>>()
        };
        *self.documents.write() = listed.iter().flat_map(of).collect();
    }

    /// All of them, by group and version.
    pub fn all(&self) -> Vec<Arc<Remote>> {
        self.remotes.read().values().cloned().collect()
    }

    /// Told whenever one comes, goes, or changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What this server proves itself with to other servers.
    pub fn identity(&self) -> Option<Identity> {
        if let Some(identity) = self.identity.given.identity() {
            return Some(identity);
        }
        let mut kept = self.identity.kept.lock();
        if let Some((since, identity)) = &*kept
            && since.elapsed() < IDENTITY_TIME
        {
            return identity.clone();
        }
        let leaf = self.identity.made.as_ref().map(|pki| pki.proxy_client()).transpose().unwrap_or_else(|error| {
            tracing::error!(%error, "there is no certificate to show to aggregated servers");
            None
        });
        let identity = leaf.map(|leaf| Identity {
            certificates: leaf.pem().to_owned().into_bytes().into(),
            key: leaf.key_pem().into_bytes().into(),
        });
        *kept = Some((Instant::now(), identity.clone()));
        identity
    }

    /// Follows what is stored, for ever.
    pub async fn follow(registry: Arc<Registry>) {
        let Some(served) = registry.resources.of_resource(GROUP, RESOURCE) else { return };
        let own = &registry.aggregation;
        // What a list found is taken in as a whole, since others may be gone.
        let mut listed: Option<BTreeMap<(String, String), Arc<Remote>>> = None;
        follow(&registry.table(&served), Interest::default(), |seen| match seen {
            Seen::Begin => listed = Some(BTreeMap::new()),
            Seen::Listed(_) => {
                if let Some(all) = listed.take() {
                    own.change(|remotes| *remotes = all);
                }
            }
            seen => {
                let (live, deleted) = (seen.live(), seen.deleted());
                let Some(object) = live.or(deleted) else { return };
                let Some(key) = remote::split_name(object.key().name()) else { return };
                let remote = live.and_then(|live| Remote::of(&stored_value(live).ok()?)).map(Arc::new);
                let set = |remotes: &mut BTreeMap<_, _>| match remote {
                    Some(remote) if remotes.len() < limits::AGGREGATED_VERSIONS => drop(remotes.insert(key, remote)),
                    _ => drop(remotes.remove(&key)),
                };
                match &mut listed {
                    Some(all) => set(all),
                    None => own.change(set),
                }
            }
        })
        .await;
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<(String, String), Arc<Remote>>)) {
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

    #[test]
    fn whose_a_path_is() {
        let own = Aggregation::default();
        let service = value!({"metadata": {"name": "v1.a.example"}, "spec": {
            "group": "a.example", "version": "v1", "service": {"namespace": "n", "name": "s"}}});
        let remote = Arc::new(Remote::of(&service).unwrap());
        assert!(own.of_path("/apis/a.example/v1").is_none());
        own.change(|remotes| drop(remotes.insert(remote::split_name("v1.a.example").unwrap(), remote)));
        for path in ["/apis/a.example/v1", "/apis/a.example/v1/", "/apis/a.example/v1/things/x"] {
            assert!(own.of_path(path).is_some(), "{path}");
        }
        for path in ["/apis/a.example", "/apis/a.example/", "/apis/a.example/v2/x", "/api/v1", "/apis"] {
            assert!(own.of_path(path).is_none(), "{path}");
        }
        let before = *own.changes().borrow();
        own.change(|_| {});
        assert_eq!(*own.changes().borrow(), before, "nothing changed");
        own.change(BTreeMap::clear);
        assert!(own.of_path("/apis/a.example/v1").is_none() && *own.changes().borrow() > before);
    }
}
