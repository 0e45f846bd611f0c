//! Controllers that belong to the API itself: namespaces, garbage collection, service accounts, root certificates,
//! roles that are put together, flow schemas, the types of policies, definitions of custom resources, cluster IPs that
//! were left behind, what is in use, ranges of service addresses, counts of quotas, what ends at a time, pods of nodes
//! that are gone, the lease of each server, and the objects that every cluster has.
//!
//! Each follows the change logs of the tables that concern it ([`crate::follow`]), puts the keys of what may need work
//! into a queue that holds every key once ([`queue`]), and compares what is with what should be ([`agent`] makes the
//! writes). Nothing is remembered that does not follow from the present state, so that a restart resumes everything,
//! but for what was removed a moment ago and is searched once more; nothing polls, so that idle controllers cost
//! nothing.

mod agent;
mod api_services;
mod cluster_ips;
mod custom_definitions;
mod custom_objects;
mod custom_services;
mod each_namespace;
mod expiry;
mod flow_schemas;
mod garbage;
mod identity;
mod kubernetes_service;
mod lost_pods;
mod metadata;
mod namespaces;
mod policy_types;
mod protection;
mod queue;
mod quotas;
mod roles;
mod root_ca;
mod service_accounts;
mod service_cidrs;
mod token_secrets;
mod upkeep;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::rt::task::JoinHandle;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;

use self::agent::Agent;
use crate::access::tokens::Issuer;
use crate::aggregation::Aggregation;
use crate::bootstrap::BootstrapInput;
use crate::drain::Drain;
use crate::metrics::queues::QueueMetrics;
use crate::registry::Registry;
use crate::status::ApiResult;

/// How long a controller that ended rests before it begins again.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// What controllers need besides objects.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether all of them run, or only what is every server's own.
    pub embedded: bool,
    /// Name of this server among those of its cluster.
    pub member: String,
    /// Issues the tokens of service accounts that live in Secrets.
    pub issuer: Issuer,
    /// PEM bundle that clients check the server's certificate against.
    pub root_ca: String,
    /// The address at which clients inside the cluster reach this server, and its port.
    pub advertised: SocketAddr,
    /// Whether this server keeps the endpoints of the Service `kubernetes`.
    pub publishes: bool,
    /// What of the configuration shows in the objects that every cluster has.
    pub bootstrap: BootstrapInput,
    /// The servers that answer for group versions of their own.
    pub aggregation: Arc<Aggregation>,
    /// Address and port of this server, under which what controllers ask is counted.
    pub host: String,
}

/// Controllers that run; they stop when this is dropped.
#[derive(Debug)]
pub struct Controllers {
    tasks: Vec<JoinHandle<()>>,
    broken: Broken,
}

/// How many controllers broke and have not begun again. Those that have nothing to do here are not broken: another
/// replica leads, or the server is stopping.
#[derive(Debug, Clone, Default)]
pub struct Broken(Arc<AtomicUsize>);

impl Broken {
    /// Whether there is one.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Controllers {
    /// Tells whether one is broken.
    pub fn broken(&self) -> Broken {
        self.broken.clone()
    }

    /// Stops them where they are; what they leave undone is taken up by those that start next.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// What a controller does: it works until something breaks it.
type Run = fn(Rc<Agent>, QueueMetrics) -> LocalBoxFuture<'static, ApiResult<()>>;

/// A controller: the name by which it is logged, that by which its queue is measured, and what it does.
type Controller = (&'static str, &'static str, Run);

/// What belongs to the API, and a kube-controller-manager does, too.
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
    ("certificatesigningrequest-cleaner", "csr_cleaner", |agent, queue| {
        expiry::certificate_requests(agent, queue).boxed_local()
    }),
    ("token-cleaner", "token_cleaner", |agent, queue| expiry::bootstrap_tokens(agent, queue).boxed_local()),
    ("validatingadmissionpolicy-status", "validatingadmissionpolicy-status", |agent, queue| {
        policy_types::run(agent, queue).boxed_local()
    }),
    ("pod-garbage-collector", "orphaned_pods", |agent, queue| lost_pods::run(agent, queue).boxed_local()),
];

/// What API servers do, also where a kube-controller-manager runs.
const OF_API: &[Controller] = &[
    ("kubernetes-service", "kubernetes_service", |agent, queue| kubernetes_service::run(agent, queue).boxed_local()),
    ("upkeep", "upkeep", |agent, queue| upkeep::run(agent, queue).boxed_local()),
    ("service-ip-repair", "service_ip_repair", |agent, queue| cluster_ips::run(agent, queue).boxed_local()),
    ("custom-resource-definitions", "crd_naming_condition_controller", |agent, queue| {
        custom_definitions::run(agent, queue).boxed_local()
    }),
    ("custom-resource-objects", "crd_finalizer", |agent, queue| custom_objects::run(agent, queue).boxed_local()),
    ("apiservice-availability", "RemoteAvailabilityController", |agent, queue| {
        api_services::run(agent, queue).boxed_local()
    }),
    ("custom-resource-services", "autoregister", |agent, queue| custom_services::run(agent, queue).boxed_local()),
];

/// Starts the controllers on this thread, which must run a local task set. They work while this replica leads, so
/// that of several replicas one does, and end when the drain begins. What is every server's own works always.
pub fn start(registry: &Arc<Registry>, settings: &Settings, drain: &Drain) -> Controllers {
    let manager = Rc::new(Agent::new(Arc::clone(registry), settings.clone()));
    let server = Rc::new(Agent::of_server(Arc::clone(registry), settings.clone()));
    let broken = Broken::default();
    let begin = |&(name, queue, run): &Controller, agent: &Rc<Agent>| {
        // Every replica has these metrics, whether or not it leads.
        let measured = QueueMetrics::named(registry.metrics.meter(), queue);
        let (agent, drain, broken, leads) = (Rc::clone(agent), drain.clone(), broken.clone(), registry.leadership());
        let run = move || run(Rc::clone(&agent), measured.clone());
        actix_web::rt::spawn(async move {
            tokio::select! {
                () = drain.begun() => {}
                () = while_leading(leads, || keep_running(name, &run, &broken)) => {}
            }
        })
    };
    let embedded = if settings.embedded { CONTROLLERS } else { &[] };
    let embedded = embedded.iter().map(|controller| begin(controller, &manager));
    let of_api = OF_API.iter().map(|controller| begin(controller, &server));
    let mut tasks: Vec<_> = embedded.chain(of_api).collect();
    let (drain, of_each) = (drain.clone(), broken.clone());
    tasks.push(actix_web::rt::spawn(async move {
        tokio::select! {
            () = drain.begun() => {}
            () = keep_running("identity", || identity::run(Rc::clone(&server)), &of_each) => {}
        }
    }));
    Controllers { tasks, broken }
}

/// Works whenever this replica leads, until the store ends.
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

/// Counts a controller as broken while this lives.
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

/// Runs a controller again whenever it ends, since one that is missing leaves a cluster that no longer tidies up.
async fn keep_running<F: Future<Output = ApiResult<()>>>(name: &'static str, run: impl Fn() -> F, broken: &Broken) {
    loop {
        match AssertUnwindSafe(run()).catch_unwind().await {
            Ok(Ok(())) => tracing::error!(controller = name, "controller ended"),
            Ok(Err(error)) => tracing::error!(controller = name, %error, "controller failed"),
            Err(_) => tracing::error!(controller = name, "controller panicked"),
        }
        let _counted = Counted::new(broken);
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

#[cfg(test)]
#[path = "controllers_tests.rs"]
mod tests;
