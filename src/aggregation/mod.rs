//! Aggregated API servers: servers that serve group versions of their own (Kubernetes documentation, "Kubernetes API
//! Aggregation Layer").
//!
//! An APIService with a service states that another server serves a version of a group. [`Aggregation`] keeps these
//! servers as [`Remote`]s. While there are none, a request pays for a single load. [`pass`] forwards a request as the
//! front proxy; [`availability`] keeps the condition of each APIService; [`documents`] fetches the discovery and
//! OpenAPI documents.

pub mod availability;
pub mod documents;
mod identity;
mod known;
pub mod measured;
pub mod pass;
mod remote;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use flotilla_cluster::Interest;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::known::Known;
use crate::follow::{Seen, follow};
use crate::limits;
use crate::outbound::{CredentialFiles, Identity};
use crate::pki::Pki;
use crate::registry::Registry;
use crate::tables::stored_value;

pub use remote::Remote;

/// The API group of APIServices.
pub const GROUP: &str = "apiregistration.k8s.io";
/// The resource name of APIServices.
pub const RESOURCE: &str = "apiservices";

/// The aggregated servers that the APIServices of a registry name.
pub struct Aggregation {
    registry: Arc<Registry>,
    known: Known,
    identity: ClientCertificate,
}

/// This server's client certificate for aggregated servers.
struct ClientCertificate {
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
    /// Returns an aggregation that knows no server yet. `given` has the files of the client certificate. If it names
    /// none, `made` issues the certificate; without `made`, there is none.
    pub fn new(registry: Arc<Registry>, given: CredentialFiles, made: Option<Arc<Pki>>) -> Self {
        Self { registry, known: Known::default(), identity: ClientCertificate { given, made, kept: Mutex::default() } }
    }

    /// Returns the aggregated server that serves a path: one of its group version, or that of one of its OpenAPI v3
    /// documents. Returns `None` if this server serves the path. The path need not be decoded, because groups and
    /// versions have no escapes.
    pub fn of_path(&self, path: &str) -> Option<Arc<Remote>> {
        self.known.of_path(path)
    }

    /// Returns all servers, in the order of group and version.
    pub fn all(&self) -> Vec<Arc<Remote>> {
        self.known.all()
    }

    /// Returns a receiver that is notified when a server is added, removed or changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.known.changes()
    }

    /// Returns the client certificate for aggregated servers. `None` if there is none.
    pub fn identity(&self) -> Option<Identity> {
        if let Some(identity) = self.identity.given.identity() {
            return Some(identity);
        }
        let mut kept = self.identity.kept.lock();
        if let Some((since, identity)) = &*kept
            && since.elapsed() < limits::AGGREGATED_IDENTITY_LIFETIME
        {
            return identity.clone();
        }
        let leaf = self.identity.made.as_ref().map(|pki| pki.proxy_client()).transpose().unwrap_or_else(|error| {
            tracing::error!(%error, "cannot issue the client certificate for aggregated servers");
            None
        });
        let identity = leaf.map(|leaf| Identity {
            certificates: leaf.pem().to_owned().into_bytes().into(),
            key: leaf.key_pem().into_bytes().into(),
        });
        *kept = Some((Instant::now(), identity.clone()));
        identity
    }

    /// Follows the stored APIServices, for ever.
    pub async fn follow(self: Arc<Self>) {
        let Some(served) = self.registry.tables.resources.of_resource(GROUP, RESOURCE) else { return };
        // A list replaces all servers, since some may have been removed meanwhile.
        let mut listed: Option<BTreeMap<(String, String), Arc<Remote>>> = None;
        follow(&self.registry.tables.table(&served), Interest::default(), |seen| match seen {
            Seen::Begin => listed = Some(BTreeMap::new()),
            Seen::ListEnd(_) => {
                if let Some(all) = listed.take() {
                    self.known.change(|remotes| *remotes = all);
                }
            }
            seen => {
                let (live, deleted) = (seen.live(), seen.deleted());
                let Some(object) = live.or(deleted) else { return };
                let Some(key) = remote::split_name(object.key().name()) else { return };
                let remote = live.and_then(|live| Remote::of(&stored_value(live).ok()?)).map(Arc::new);
                match &mut listed {
                    Some(all) => set(all, key, remote),
                    None => self.known.change(|remotes| set(remotes, key, remote)),
                }
            }
        })
        .await;
    }
}

/// Adds, replaces or removes the server of a group and version. A new one beyond the bound is left out.
fn set<R>(remotes: &mut BTreeMap<(String, String), R>, key: (String, String), remote: Option<R>) {
    match remote {
        Some(remote) if remotes.len() < limits::AGGREGATED_VERSIONS || remotes.contains_key(&key) => {
            remotes.insert(key, remote);
        }
        _ => {
            remotes.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_servers_can_be_replaced_when_no_new_one_fits() {
        let key = |number: usize| (format!("g{number}.example.com"), "v1".to_owned());
        let mut remotes = BTreeMap::new();
        for number in 0..=limits::AGGREGATED_VERSIONS {
            set(&mut remotes, key(number), Some("first"));
        }
        assert_eq!(remotes.len(), limits::AGGREGATED_VERSIONS);
        set(&mut remotes, key(0), Some("second"));
        assert_eq!((remotes.get(&key(0)), remotes.len()), (Some(&"second"), limits::AGGREGATED_VERSIONS));
        set(&mut remotes, key(0), None);
        set(&mut remotes, key(limits::AGGREGATED_VERSIONS), Some("second"));
        assert_eq!(remotes.get(&key(limits::AGGREGATED_VERSIONS)), Some(&"second"));
    }
}
