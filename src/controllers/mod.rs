//! Controllers that belong to the API itself: namespaces, garbage collection, service accounts, root certificates,
//! roles that are put together, flow schemas, definitions of custom resources, cluster IPs that were left behind, the
//! lease of each server.
//!
//! Each follows the change logs of the tables that concern it ([`crate::follow`]), puts the keys of what may need work
//! into a queue that holds every key once ([`queue`]), and compares what is with what should be ([`agent`] makes the
//! writes). Nothing is remembered that does not follow from the present state, so that a restart resumes everything;
//! nothing polls, so that idle controllers cost nothing.

mod agent;
mod cluster_ips;
mod custom_definitions;
mod custom_objects;
mod custom_services;
mod each_namespace;
mod flow_schemas;
mod garbage;
mod identity;
mod metadata;
mod namespaces;
mod queue;
mod roles;
mod root_ca;
mod service_accounts;
mod token_secrets;

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
use crate::boot::Drain;
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

/// A controller: works until something breaks it.
type Run = fn(Rc<Agent>) -> LocalBoxFuture<'static, ApiResult<()>>;

/// Every controller under the name by which it is logged.
const CONTROLLERS: &[(&str, Run)] = &[
    ("garbage-collector", |agent| garbage::run(agent).boxed_local()),
    ("priority-and-fairness-config", |agent| flow_schemas::run(agent).boxed_local()),
    ("clusterrole-aggregation", |agent| roles::run(agent).boxed_local()),
    ("namespace", |agent| namespaces::run(agent).boxed_local()),
    ("serviceaccount", |agent| service_accounts::run(agent).boxed_local()),
    ("root-ca-certificate-publisher", |agent| root_ca::run(agent).boxed_local()),
    ("serviceaccount-token", |agent| token_secrets::run(agent).boxed_local()),
];

/// What API servers do, also where a kube-controller-manager runs.
const OF_API: &[(&str, Run)] = &[
    ("service-ip-repair", |agent| cluster_ips::run(agent).boxed_local()),
    ("custom-resource-definitions", |agent| custom_definitions::run(agent).boxed_local()),
    ("custom-resource-objects", |agent| custom_objects::run(agent).boxed_local()),
    ("custom-resource-services", |agent| custom_services::run(agent).boxed_local()),
];

/// What every server does, whether it leads or not.
const OF_EACH: &[(&str, Run)] = &[("identity", |agent| identity::run(agent).boxed_local())];

/// Starts the controllers on this thread, which must run a local task set. They work while this replica leads, so
/// that of several replicas one does, and end when the drain begins. What is every server's own works always.
pub fn start(registry: &Arc<Registry>, settings: &Settings, drain: &Drain) -> Controllers {
    let manager = Rc::new(Agent::new(Arc::clone(registry), settings.clone()));
    let server = Rc::new(Agent::of_server(Arc::clone(registry), settings.clone()));
    let broken = Broken::default();
    let begin = |name, run, agent: &Rc<Agent>, always: bool| {
        let (agent, drain, broken) = (Rc::clone(agent), drain.clone(), broken.clone());
        let leads = registry.leadership();
        actix_web::rt::spawn(async move {
            let work = || keep_running(name, run, Rc::clone(&agent), &broken);
            tokio::select! {
                () = drain.begun() => {}
                () = work(), if always => {}
                () = while_leading(leads, work), if !always => {}
            }
        })
    };
    let embedded = if settings.embedded { CONTROLLERS } else { &[] };
    let embedded = embedded.iter().map(|&(name, run)| begin(name, run, &manager, false));
    let of_api = OF_API.iter().map(|&(name, run)| begin(name, run, &server, false));
    let of_each = OF_EACH.iter().map(|&(name, run)| begin(name, run, &server, true));
    let tasks = embedded.chain(of_api).chain(of_each).collect();
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
async fn keep_running(name: &'static str, run: Run, agent: Rc<Agent>, broken: &Broken) {
    loop {
        match AssertUnwindSafe(run(Rc::clone(&agent))).catch_unwind().await {
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
