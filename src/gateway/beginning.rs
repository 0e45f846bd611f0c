//! The steps of a server before it is ready: it creates the objects that every cluster has, and starts the controllers.
//!
//! A server that is alone takes these steps before it listens. A server of a cluster of several cannot take them
//! without the others; meanwhile it answers the requests that it can.

use std::sync::{Arc, OnceLock};

use flotilla_cluster::Standing;

use crate::aggregation::Aggregation;
use crate::boot::{Boot, StartError};
use crate::bootstrap::{self, BootstrapInput, BootstrapObject, FrontProxy, SeedError};
use crate::causes::with_causes;
use crate::config::EndpointReconciler;
use crate::controllers::{self, Controllers, Settings};
use crate::discovery::health::{Health, ServerPart};
use crate::drain::Drain;
use crate::limits;
use crate::registry::{Registry, now};
use crate::status::{ApiError, ApiResult};
use crate::tasks;

/// The progress of a server through these steps. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Beginning(Arc<OnceLock<Controllers>>);

impl Beginning {
    /// Takes the steps: at once if the server is alone, otherwise in a task of its own.
    ///
    /// # Errors
    /// A server that is alone cannot write an object that must exist.
    pub(super) async fn start(
        boot: &Boot,
        registry: &Arc<Registry>,
        aggregation: &Arc<Aggregation>,
    ) -> Result<Self, StartError> {
        let beginning = Self::default();
        let input = bootstrap_input(boot);
        let settings = Settings {
            embedded: boot.config.embedded_controllers,
            member: boot.config.member_name(),
            issuer: boot.issuer.clone(),
            legacy_uses: Arc::clone(boot.authenticator.service_accounts().uses()),
            root_ca: boot.pki.authority_pem().to_owned(),
            authority: boot.pki.authority(),
            event_ttl: boot.config.event_ttl(),
            advertised: (boot.config.advertised(), boot.address.port()).into(),
            publishes: boot.config.endpoint_reconciler_type != EndpointReconciler::None,
            bootstrap: input.clone(),
            aggregation: Arc::clone(aggregation),
            host: boot.address.to_string(),
        };
        let (registry, drain) = (Arc::clone(registry), boot.drain.clone());
        let context = BeginningContext { registry, input, settings, drain };
        if boot.config.initial_cluster.is_none() {
            context.registry.repair_addresses().await.map_err(StartError::Addresses)?;
            let left = match seed(&context.registry, &context.input).await? {
                Seeded::Now => {
                    know_roles(&context.registry).await;
                    Vec::new()
                }
                Seeded::Before => {
                    let all = bootstrap::objects(&context.input).map_err(SeedError::from)?;
                    bootstrap::renew(&context.registry, all).await
                }
            };
            beginning.done(&context);
            tasks::detached_here("bootstrap", async move { renew(&context, left).await });
            return Ok(beginning);
        }
        let begun = beginning.clone();
        tasks::detached_here("bootstrap", async move {
            while let Err(error) = seed(&context.registry, &context.input).await {
                tracing::warn!(error = with_causes(&error), "the server cannot begin yet");
                actix_web::rt::time::sleep(limits::BEGIN_INTERVAL).await;
            }
            know_roles(&context.registry).await;
            begun.done(&context);
            tracing::info!("the objects that every cluster has exist");
            if let Ok(all) = bootstrap::objects(&context.input) {
                renew(&context, all).await;
            }
        });
        Ok(beginning)
    }

    fn done(&self, context: &BeginningContext) {
        let begun = controllers::start(&context.registry, &context.settings, &context.drain);
        let _ = self.0.set(begun); // it begins only once
    }

    /// Refuses requests that this server cannot answer or carry out yet.
    pub(super) fn check(&self, registry: &Registry, writes: bool) -> ApiResult<()> {
        let why = match *registry.tables.store.standing().borrow() {
            Standing::Waiting => "this server is not a member of its cluster yet",
            Standing::Removed => REMOVED,
            Standing::Starting | Standing::Member if writes && self.0.get().is_none() => "this server is starting",
            Standing::Starting | Standing::Member => return Ok(()),
        };
        Err(ApiError::unavailable(why.to_owned(), 1))
    }

    /// Returns the parts that the checks of health follow.
    pub(super) fn health(&self, boot: &Boot) -> Health {
        let mut health = Health::default();
        let (store, drain) = (boot.store.clone(), boot.drain.clone());
        health.explain(ServerPart::Storage, move || match *store.standing().borrow() {
            Standing::Removed => Err(REMOVED),
            _ if store.is_available() => Ok(()),
            Standing::Waiting => Err("this server is not a member of its cluster yet"),
            _ => Err("no majority of the members is reached"),
        });
        health.follow(ServerPart::Staying, move || !drain.is_announced());
        let begun = self.clone();
        health.follow(ServerPart::Bootstrap, move || begun.0.get().is_some());
        // Custom resources are served before the server answers its first request.
        health.done(ServerPart::CustomResources);
        let begun = self.clone();
        health.follow(ServerPart::Controllers, move || begun.0.get().is_some_and(|begun| !begun.broken().any()));
        health
    }
}

/// The refusal of a server that is no longer a member.
const REMOVED: &str = "this server was removed from its cluster";

/// The inputs of these steps.
struct BeginningContext {
    registry: Arc<Registry>,
    input: BootstrapInput,
    settings: Settings,
    drain: Drain,
}

/// When the objects that must exist were created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seeded {
    /// Just now, by this replica: they are the objects of this release.
    Now,
    /// Before, by another replica or another release.
    Before,
}

/// Creates the objects that must exist if this replica leads, else waits until the leader has created them.
async fn seed(registry: &Registry, input: &BootstrapInput) -> Result<Seeded, StartError> {
    let mut leads = registry.tables.leadership();
    loop {
        let leads_now = *leads.borrow_and_update();
        // The server also serves if a client has deleted some of them since.
        if bootstrap::was_seeded(registry) {
            return Ok(Seeded::Before);
        }
        if leads_now {
            // First free the addresses that an interrupted attempt allocated without creating their services. Later
            // this would be wrong: a request may have claimed an address for a service that it is about to create.
            registry.repair_addresses().await.map_err(StartError::Addresses)?;
            bootstrap::seed(registry, input).await?;
            return Ok(Seeded::Now);
        }
        // Polls, which is simpler than following the many tables that these objects are in.
        let _ = tokio::time::timeout(limits::SEED_CHECK_INTERVAL, leads.changed()).await;
    }
}

/// Waits until the authorizer knows the roles and bindings that were just created: a ready server must not refuse a
/// user whom they allow.
async fn know_roles(registry: &Registry) {
    let _ = registry.know_grants().await; // the server does not start without the tables of roles
}

/// Creates the objects that this release adds to those of an earlier one, and updates those that are out of date. Tries
/// failed writes again a few times.
async fn renew(context: &BeginningContext, mut left: Vec<BootstrapObject>) {
    for _ in 0..limits::RENEWALS {
        if left.is_empty() {
            return;
        }
        left = bootstrap::renew(&context.registry, left).await;
        actix_web::rt::time::sleep(limits::BEGIN_INTERVAL).await;
    }
    for desired in left {
        let name = desired.object.str_at(&["metadata", "name"]);
        tracing::warn!(resource = desired.resource, name, "an object of every cluster cannot be brought up to date");
    }
}

/// Returns the part of the configuration that appears in the objects that must exist.
fn bootstrap_input(boot: &Boot) -> BootstrapInput {
    BootstrapInput {
        service_cidrs: boot.config.service_cluster_ip_range.iter().map(|range| range.to_string()).collect(),
        port: boot.address.port(),
        client_ca: Some(boot.pki.client_authorities_pem()),
        front_proxy: Some(front_proxy(boot)),
        enablement: boot.config.runtime_config.clone(),
        now: now().to_string(),
    }
}

/// Returns the proxies that aggregated servers should trust: those that this server trusts, or else itself.
fn front_proxy(boot: &Boot) -> FrontProxy {
    let config = &boot.config;
    if let Some(proxy) = boot.authenticator.proxy() {
        return FrontProxy {
            ca: proxy.roots().pem(),
            allowed_names: config.front_proxy.requestheader_allowed_names.clone(),
            username_headers: config.front_proxy.requestheader_username_headers.clone(),
            uid_headers: config.front_proxy.requestheader_uid_headers.clone(),
            group_headers: config.front_proxy.requestheader_group_headers.clone(),
            extra_prefixes: config.front_proxy.requestheader_extra_headers_prefix.clone(),
        };
    }
    FrontProxy {
        ca: boot.pki.proxy_authority_pem().to_owned(),
        allowed_names: vec!["front-proxy".into()],
        username_headers: vec!["X-Remote-User".into()],
        uid_headers: Vec::new(),
        group_headers: vec!["X-Remote-Group".into()],
        extra_prefixes: vec!["X-Remote-Extra-".into()],
    }
}

#[cfg(test)]
mod tests {
    use flotilla_cluster::{Options, Store};
    use flotilla_proto::{conform, value};

    use super::*;
    use crate::access::User;
    use crate::config::PortRange;
    use crate::enablement::Enablement;
    use crate::registry::Incoming;
    use crate::request::{Caller, DeleteOptions, WriteOptions};
    use crate::scratch::Scratch;
    use crate::tables::{Tables, Target};

    async fn registry(dir: &Scratch) -> (Store, Registry) {
        let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
        let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
        (store, registry)
    }

    fn input() -> BootstrapInput {
        BootstrapInput {
            service_cidrs: vec!["10.96.0.0/16".into()],
            port: 6443,
            client_ca: None,
            front_proxy: None,
            enablement: Enablement::default(),
            now: now().to_string(),
        }
    }

    /// Claims an address for a service that does not exist yet.
    async fn claim(registry: &Registry, address: &str, service: &str) {
        let served = registry.tables.resources.of_resource("networking.k8s.io", "ipaddresses").unwrap();
        let labels = value!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
        let parent = value!({"resource": "services", "namespace": "default", "name": service});
        let mut value = value!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent},
        });
        conform::conform(served.of(), &mut value).unwrap();
        let target = Target::resource(&served, "");
        let incoming = Incoming { value, ..Incoming::default() };
        registry.create(target, incoming, &WriteOptions::default(), &mut client()).await.unwrap();
    }

    fn client() -> Caller {
        Caller::new(Arc::new(User::default()), "test")
    }

    #[actix_web::test]
    async fn the_rest_of_an_interrupted_attempt_is_no_obstacle() {
        let dir = Scratch::new();
        let (store, registry) = registry(&dir).await;
        claim(&registry, "10.96.0.1", "kubernetes").await;
        seed(&registry, &input()).await.unwrap();
        let services = registry.tables.resources.of_resource("", "services").unwrap();
        assert!(registry.tables.table(&services).get("default/kubernetes").is_some());
        store.shutdown().await;
    }

    #[actix_web::test]
    async fn claims_of_clients_survive_deletions() {
        let dir = Scratch::new();
        let (store, registry) = registry(&dir).await;
        seed(&registry, &input()).await.unwrap();
        claim(&registry, "10.96.0.7", "coming").await;
        let mut refused = 0;
        for object in bootstrap::objects(&input()).unwrap() {
            let served = registry.tables.resources.find(object.group, object.version, object.resource).unwrap();
            let metadata = |field| object.object.str_at(&["metadata", field]);
            let target = Target::object(&served, metadata("namespace"), metadata("name"));
            let deleted = registry.delete(target, &DeleteOptions::default(), &mut client()).await;
            refused += usize::from(deleted.is_err());
        }
        assert_eq!(refused, 5, "three namespaces and two priority classes");
        let services = registry.tables.resources.of_resource("", "services").unwrap();
        assert!(registry.tables.table(&services).get("default/kubernetes").is_none());
        seed(&registry, &input()).await.unwrap();
        let left = bootstrap::renew(&registry, bootstrap::objects(&input()).unwrap()).await;
        assert!(left.is_empty(), "{left:?}");
        let claims = registry.tables.resources.of_resource("networking.k8s.io", "ipaddresses").unwrap();
        assert!(registry.tables.current(&claims, "", "10.96.0.7").is_some());
        assert!(registry.tables.table(&services).get("default/kubernetes").is_some());
        store.shutdown().await;
    }
}
