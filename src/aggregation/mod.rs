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
mod known;
pub mod measured;
pub mod pass;
mod remote;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_cluster::Interest;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::known::Known;
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

/// The servers that answer for group versions of their own, as the objects of a registry name them.
pub struct Aggregation {
    registry: Arc<Registry>,
    known: Known,
    identity: Shown,
}

/// The certificate that other servers are shown.
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

impl Aggregation {
    /// Knows no server yet. Other servers are shown the certificate in the files `given`. If these name none, they are
    /// shown the one that `made` issues; `None` issues none.
    pub fn new(registry: Arc<Registry>, given: CredentialFiles, made: Option<Arc<Pki>>) -> Self {
        Self { registry, known: Known::default(), identity: Shown { given, made, kept: Mutex::default() } }
    }

    /// Who answers for what a path names, or has that document of OpenAPI v3, if that is another server. The path need
    /// not be decoded: groups and versions have no escapes.
    pub fn of_path(&self, path: &str) -> Option<Arc<Remote>> {
        self.known.of_path(path)
    }

    /// All of them, by group and version.
    pub fn all(&self) -> Vec<Arc<Remote>> {
        self.known.all()
    }

    /// Told whenever one comes, goes, or changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.known.changes()
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
    pub async fn follow(self: Arc<Self>) {
        let Some(served) = self.registry.resources.of_resource(GROUP, RESOURCE) else { return };
        // What a list found is taken in as a whole, since others may be gone.
        let mut listed: Option<BTreeMap<(String, String), Arc<Remote>>> = None;
        follow(&self.registry.table(&served), Interest::default(), |seen| match seen {
            Seen::Begin => listed = Some(BTreeMap::new()),
            Seen::Listed(_) => {
                if let Some(all) = listed.take() {
                    self.known.change(|remotes| *remotes = all);
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
                    None => self.known.change(set),
                }
            }
        })
        .await;
    }
}
