//! Controllers that belong to the API itself: namespaces, garbage collection, service accounts, root certificates,
//! aggregated roles, flow schemas, certificate requests, the signatures by which joining nodes recognize the cluster,
//! type checks of policies, definitions of custom resources and their selectable fields, leaked cluster IPs, protection
//! of objects in use, unused tokens, ranges of service addresses, usage of quotas, expiry, pods of lost nodes, the
//! lease of each server, and the objects that every cluster has.
//!
//! Each controller follows the change logs of the tables that concern it ([`crate::follow`]) and puts the keys of
//! objects that may need work into a queue that holds every key once ([`queue`]). Workers compare the present state
//! with the desired one and write through an [`agent`]. Controllers keep no state that cannot be derived from stored
//! objects, so that a restart resumes everything; with one exception: a removed namespace or definition is searched
//! once more for late objects. Nothing polls, so that idle controllers cost nothing.

mod agent;
mod api_services;
mod certificates;
mod cluster_info;
mod cluster_ips;
mod custom_definitions;
mod custom_objects;
mod custom_services;
mod each_namespace;
mod events;
mod expiry;
mod flow_schemas;
mod garbage;
mod identity;
mod kubernetes_service;
mod legacy_tokens;
mod lost_pods;
mod metadata;
mod namespaces;
mod policy_types;
mod protection;
mod queue;
mod quotas;
mod roles;
mod root_ca;
mod selectable_fields;
mod service_accounts;
mod service_cidrs;
mod token_secrets;
mod upkeep;

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;

use self::agent::Agent;
use crate::access::tokens::{Issuer, LegacyUses};
use crate::aggregation::Aggregation;
use crate::bootstrap::BootstrapInput;
use crate::drain::Drain;
use crate::metrics::queues::QueueMetrics;
use crate::pki::Authority;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::tasks::{self, Task};

/// The settings of controllers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether all controllers run, or only those of API servers.
    pub embedded: bool,
    /// Name of this server among those of its cluster.
    pub member: String,
    /// Issues the tokens of service accounts that live in Secrets.
    pub issuer: Issuer,
    /// Uses of tokens in Secrets that this server has seen.
    pub legacy_uses: Arc<LegacyUses>,
    /// PEM bundle with which clients verify the server's certificate.
    pub root_ca: String,
    /// How long events live after their last write. `None` for ever.
    pub event_ttl: Option<Duration>,
    /// Issues certificates that are requested by CertificateSigningRequests.
    pub authority: Arc<Authority>,
    /// The address at which clients inside the cluster reach this server, and its port.
    pub advertised: SocketAddr,
    /// Whether this server keeps the endpoints of the Service `kubernetes`.
    pub publishes: bool,
    /// The configuration that the objects of every cluster depend on.
    pub bootstrap: BootstrapInput,
    /// The servers that answer for group versions of their own.
    pub aggregation: Arc<Aggregation>,
    /// Address and port of this server: the label under which requests of controllers are counted.
    pub host: String,
}

/// The running controllers; they stop when this is dropped.
#[derive(Debug)]
pub struct Controllers {
    #[expect(dead_code, reason = "they work until they are dropped")]
    tasks: Vec<Task>,
    broken: Broken,
}

/// The number of controllers that failed and have not started again. A controller that is idle because another replica
/// leads, or because the server stops, has not failed.
#[derive(Debug, Clone, Default)]
pub struct Broken(Arc<AtomicUsize>);

impl Broken {
    /// Returns whether any controller has failed.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Controllers {
    /// Returns the shared count of failed controllers.
    pub fn broken(&self) -> Broken {
        self.broken.clone()
    }

    /// Stops the controllers immediately; the next ones to start resume the unfinished work.
    pub fn stop(self) {
        drop(self);
    }
}

/// The function of a controller: it runs until it fails.
type Run = fn(Rc<Agent>, QueueMetrics) -> LocalBoxFuture<'static, ApiResult<()>>;

/// A controller: its name in the log, the name of its queue in metrics, and its function.
type Controller = (&'static str, &'static str, Run);

/// Controllers that a kube-controller-manager also runs.
const CONTROLLERS: &[Controller] = &[
    ("garbage-collector", "garbage_collector_attempt_to_delete", |agent, queue| {
        garbage::run(agent, queue).boxed_local()
    }),
    ("priority-and-fairness-config", "priority_and_fairness_config_queue", |agent, queue| {
        flow_schemas::run(agent, queue).boxed_local()
    }),
    ("clusterrole-aggregation", "ClusterRoleAggregator", |agent, queue| roles::run(agent, queue).boxed_local()),
    ("namespace", "namespace", |agent, queue| namespaces::run(agent, queue).boxed_local()),
    ("serviceaccount", "serviceaccount", |agent, queue| service_accounts::run(agent, queue).boxed_local()),
    ("root-ca-certificate-publisher", "root_ca_cert_publisher", |agent, queue| {
        root_ca::run(agent, queue).boxed_local()
    }),
    ("serviceaccount-token", "serviceaccount_tokens_secret", |agent, queue| {
        token_secrets::run(agent, queue).boxed_local()
    }),
    ("persistentvolumeclaim-protection", "pvcprotection", |agent, queue| {
        protection::claims(agent, queue).boxed_local()
    }),
    ("persistentvolume-protection", "pvprotection", |agent, queue| protection::volumes(agent, queue).boxed_local()),
    ("volumeattributesclass-protection", "vacprotection", |agent, queue| {
        protection::classes(agent, queue).boxed_local()
    }),
    ("service-cidr", "service_cidrs", |agent, queue| service_cidrs::run(agent, queue).boxed_local()),
    ("resourcequota", "resourcequota_primary", |agent, queue| quotas::run(agent, queue).boxed_local()),
    ("certificatesigningrequest-approving", "certificate_approving", |agent, queue| {
        certificates::approve(agent, queue).boxed_local()
    }),
    ("certificatesigningrequest-signing", "certificate_signing", |agent, queue| {
        certificates::sign(agent, queue).boxed_local()
    }),
    ("bootstrap-signer", "bootstrap_signer_queue", |agent, queue| cluster_info::run(agent, queue).boxed_local()),
    ("certificatesigningrequest-cleaner", "csr_cleaner", |agent, queue| {
        expiry::certificate_requests(agent, queue).boxed_local()
    }),
    ("token-cleaner", "token_cleaner", |agent, queue| expiry::bootstrap_tokens(agent, queue).boxed_local()),
    ("legacy-serviceaccount-token-cleaner", "legacy_service_account_token_cleaner", |agent, queue| {
        legacy_tokens::clean(agent, queue).boxed_local()
    }),
    ("validatingadmissionpolicy-status", "validatingadmissionpolicy-status", |agent, queue| {
        policy_types::run(agent, queue).boxed_local()
    }),
    ("pod-garbage-collector", "orphaned_pods", |agent, queue| lost_pods::run(agent, queue).boxed_local()),
];

/// Controllers of API servers. They also run if a kube-controller-manager runs.
const OF_API: &[Controller] = &[
    ("kubernetes-service", "kubernetes_service", |agent, queue| kubernetes_service::run(agent, queue).boxed_local()),
    ("upkeep", "upkeep", |agent, queue| upkeep::run(agent, queue).boxed_local()),
    ("event-expiry", "event_expiry", |agent, queue| events::run(agent, queue).boxed_local()),
    ("service-ip-repair", "service_ip_repair", |agent, queue| cluster_ips::run(agent, queue).boxed_local()),
    ("custom-resource-definitions", "crd_naming_condition_controller", |agent, queue| {
        custom_definitions::run(agent, queue).boxed_local()
    }),
    ("custom-resource-objects", "crd_finalizer", |agent, queue| custom_objects::run(agent, queue).boxed_local()),
    ("custom-resource-selectors", "crd_selectable_fields", |agent, queue| {
        selectable_fields::run(agent, queue).boxed_local()
    }),
    ("apiservice-availability", "RemoteAvailabilityController", |agent, queue| {
        api_services::run(agent, queue).boxed_local()
    }),
    ("custom-resource-services", "autoregister", |agent, queue| custom_services::run(agent, queue).boxed_local()),
];

/// The function of a controller without a queue.
type RunOnEach = fn(Rc<Agent>) -> LocalBoxFuture<'static, ApiResult<()>>;

/// Controllers of each server, whether or not it leads: their names in the log, and their functions.
const OF_EACH: &[(&str, RunOnEach)] = &[
    ("identity", |agent| identity::run(agent).boxed_local()),
    ("legacy-token-uses", |agent| legacy_tokens::record(agent).boxed_local()),
];

/// Starts the controllers on this thread, which must run a local task set. They work while this replica leads, so that
/// the controllers of only one replica work at a time. Those that maintain this server's own objects always work. All
/// end when the drain begins.
pub fn start(registry: &Arc<Registry>, settings: &Settings, drain: &Drain) -> Controllers {
    let manager = Rc::new(Agent::new(Arc::clone(registry), settings.clone()));
    let server = Rc::new(Agent::of_server(Arc::clone(registry), settings.clone()));
    let broken = Broken::default();
    let begin = |&(name, queue, run): &Controller, agent: &Rc<Agent>| {
        // Every replica exports these metrics, whether or not it leads.
        let measured = QueueMetrics::named(registry.tables.metrics.meter(), queue);
        let (agent, drain, broken, leads) =
            (Rc::clone(agent), drain.clone(), broken.clone(), registry.tables.leadership());
        let run = move || run(Rc::clone(&agent), measured.clone());
        tasks::owned(name, async move {
            tokio::select! {
                () = drain.begun() => {}
                () = while_leading(leads, || keep_running(name, &run, &broken)) => {}
            }
        })
    };
    let embedded = if settings.embedded { CONTROLLERS } else { &[] };
    let embedded = embedded.iter().map(|controller| begin(controller, &manager));
    let of_api = OF_API.iter().map(|controller| begin(controller, &server));
    let mut running: Vec<_> = embedded.chain(of_api).collect();
    for &(name, run) in OF_EACH {
        let (agent, drain, broken) = (Rc::clone(&server), drain.clone(), broken.clone());
        running.push(tasks::owned(name, async move {
            tokio::select! {
                () = drain.begun() => {}
                () = keep_running(name, || run(Rc::clone(&agent)), &broken) => {}
            }
        }));
    }
    Controllers { tasks: running, broken }
}

/// Runs `work` whenever this replica leads, until the store or the work ends.
async fn while_leading<W: Future<Output = ()>>(mut leads: watch::Receiver<bool>, work: impl Fn() -> W) {
    loop {
        if leads.wait_for(|leads| *leads).await.is_err() {
            return;
        }
        tokio::select! {
            deposed = leads.wait_for(|leads| !*leads) => if deposed.is_err() { return },
            () = work() => return,
        }
    }
}

/// Counts a controller as failed as long as this value exists.
struct Counted<'a>(&'a Broken);

impl<'a> Counted<'a> {
    fn new(broken: &'a Broken) -> Self {
        broken.0.fetch_add(1, Ordering::Relaxed);
        Self(broken)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Restarts a controller whenever it ends, since nothing else would do its work. It counts as failed during the pause
/// before it starts again.
async fn keep_running<F: Future<Output = ApiResult<()>>>(name: &'static str, run: impl Fn() -> F, broken: &Broken) {
    let once = async || match run().await {
        Ok(()) => ControlFlow::Continue("it ended".to_owned()),
        Err(error) => ControlFlow::Continue(error.to_string()),
    };
    tasks::persist(name, once, || Counted::new(broken)).await;
}

#[cfg(test)]
#[path = "controllers_tests.rs"]
mod tests;
