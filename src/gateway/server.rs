//! The state that all requests share, and the service through which the HTTP server reaches it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Actor as _;
use actix_service::fn_service;
use actix_web::FromRequest as _;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::web::{self, ServiceConfig};
use tokio::sync::Semaphore;

use super::actor::GatewayActor;
use super::beginning::Beginning;
use super::browsers::Browsers;
use super::console::Console;
use super::handler;
use super::head::Head;
use super::large_requests::LargeRequestThreads;
use super::members::Turns;
use super::published::Published;
use super::seats::Seats;
use crate::access::tokens::{Issuer, jwks_uri};
use crate::access::{Authenticator, rbac};
use crate::admission::{DynamicPlugin, Switches};
use crate::aggregation::{Aggregation, measured};
use crate::audit::Audit;
use crate::boot::{Boot, StartError};
use crate::config::Config;
use crate::drain::Drain;
use crate::tasks::{self, Task};
use crate::unsent;

use crate::discovery::health::Health;
use crate::fairness::{self, Fairness};
use crate::kinds::core::capabilities;
use crate::limits;
use crate::metrics::{Metrics, surroundings};
use crate::outbound::CredentialFiles;
use crate::pki::Pki;
use crate::prometheus::Page;
use crate::registry::Registry;
use crate::registry::subresources::remote::Kubelets;
use crate::served::Resources;
use crate::status::{ApiResult, qualified};
use crate::streams::ForwardedRequest;
use crate::tables::Tables;
use crate::version;
use crate::watchdog::{self, Watchdog, Work};

/// The state that all requests share.
#[derive(Debug)]
pub struct Gateway {
    /// Operations on objects.
    pub registry: Arc<Registry>,
    /// Other servers that answer for group versions.
    pub aggregation: Arc<Aggregation>,
    /// Authenticates users.
    pub authenticator: Arc<Authenticator>,
    /// Issues tokens of service accounts.
    pub issuer: Issuer,
    /// The address at which clients reach this server.
    pub address: SocketAddr,
    /// The URL of the keys that verify service account tokens.
    pub jwks_uri: String,
    /// The version that `/version` states.
    pub git_version: String,
    /// Discovery and OpenAPI.
    pub published: Arc<Published>,
    /// The checks of `/healthz`, `/livez` and `/readyz`.
    pub health: Health,
    /// Counts and bounds the requests in progress.
    pub seats: Seats,
    /// Priority levels and their queues. `None` if priority and fairness is off.
    pub fairness: Option<Arc<Fairness>>,
    /// Locks for changes of the cluster through this server.
    pub(super) turns: Turns,
    /// One permit for each backup that may still begin.
    pub(super) backups: Arc<Semaphore>,
    /// Ends watches when the server stops or receives no more changes.
    pub streams: Drain,
    /// The longest time of a request that is not long-running.
    pub(super) request_timeout: Duration,
    /// The part of the HTTP/2 requests whose clients are asked to reconnect, from 0 to 1.
    pub(super) goaway_chance: f64,
    /// Headers for browsers. `None` without settings for them.
    pub(super) browsers: Option<Box<Browsers>>,
    /// Records requests. `None` without a policy or a log.
    pub(super) audit: Option<Arc<Audit>>,
    pub(super) beginning: Beginning,
    /// Threads that answer large requests.
    pub(super) large_requests: Arc<LargeRequestThreads>,
    watchdog: Watchdog,
    pub(super) pki: Arc<Pki>,
    pub(super) data_dir: PathBuf,
    /// When the server began to serve.
    pub(super) began: Instant,
    /// The history window.
    pub(super) history: Duration,
    /// The console's state.
    pub(super) console: Console,
    /// Tasks that follow roles and bindings, custom resources, policies and webhooks, and other servers, and that
    /// search for unreadable objects.
    #[expect(dead_code, reason = "they work until they are dropped")]
    following: Vec<Task>,
}

/// Returns the registry that the configuration describes.
fn registry(boot: &Boot) -> Registry {
    let config = &boot.config;
    let mut tables = Tables::new(boot.store.clone());
    tables.metrics = Arc::new(Metrics::with(Arc::clone(&boot.meter)));
    tables.outbound = boot.outbound.clone();
    tables.resources = Resources::enabled(&config.runtime_config);
    tables.authorizer = boot.authorizer.clone();
    tables.routes_by_endpoints = config.enable_aggregator_routing;
    let mut registry = Registry::new(tables, config.service_node_port_range);
    registry.admission.accounts_are_made = config.embedded_controllers;
    registry.admission.plugins =
        Switches::new(&config.admission.enable_admission_plugins, &config.admission.disable_admission_plugins);
    registry.admission.configuration = Arc::clone(&boot.admission);
    registry.kubelets = Kubelets::of(config);
    registry.watch_time_min = Duration::from_secs(config.requests.min_request_timeout);
    registry
}

/// Lets the watchdog watch the workers. The registry names the resources on which they work.
fn start_watchdog(boot: &Boot, registry: &Arc<Registry>) -> Result<(), StartError> {
    let known = Arc::downgrade(registry);
    let describe = move |work: Work| {
        let all = known.upgrade()?.tables.resources.all();
        let served = all.iter().find(|served| work.is_of(served))?;
        Some(qualified(served.group(), &served.resource.name))
    };
    boot.watchdog.start(&registry.tables.metrics, describe).map_err(StartError::Watchdog)
}

impl Gateway {
    /// Creates the state that requests need: discovery, OpenAPI, and the objects that must exist. In a cluster of
    /// several members these objects follow later.
    ///
    /// # Errors
    /// An object that must exist cannot be written.
    pub async fn start(boot: &Boot) -> Result<Arc<Self>, StartError> {
        let registry = Arc::new(registry(boot));
        let shown = CredentialFiles::new(boot.config.proxy_files(), None);
        let aggregation = Arc::new(Aggregation::new(Arc::clone(&registry), shown, Some(Arc::clone(&boot.pki))));
        capabilities::decide(boot.config.allow_privileged);
        let address = format!("{}:{}", boot.config.advertised(), boot.address.port());
        let published = Published::new(address, &Arc::new(boot.config.runtime_config.clone()))?;
        let mut following = vec![follow_roles(&registry)?, published.follow(&registry)];
        let outside = DynamicPlugin::FOLLOWED.into_iter().filter(|of| registry.admission.plugins.is_on(of.plugin()));
        let outside: Vec<_> = outside.map(|plugin| follow_outside(&registry, plugin)).collect();
        let fairness = share(boot, &registry, &mut following)?;
        registry.tables.authorizer.rbac.is_complete().await;
        if let Some(fairness) = &fairness {
            fairness.is_complete().await;
        }
        let _ = registry.tables.resources.changes().wait_for(|times| *times > 0).await; // then definitions are served
        registry.admission.is_complete(outside.len()).await;
        let beginning = Beginning::start(boot, &registry, &aggregation).await?;
        following.extend(outside);
        following.push(follow_servers(&aggregation));
        following.push(published.follow_remotes(&aggregation));
        following.push(examine(&registry));
        let health = beginning.health(boot);
        start_watchdog(boot, &registry)?;
        let (meter, outbound) = (registry.tables.metrics.meter(), &registry.tables.outbound);
        let audit = boot.audit.clone().map(|prepared| prepared.start(meter, outbound)).transpose();
        let streams = boot.drain.or_removed(registry.tables.store.standing());
        Ok(Arc::new(Self {
            registry,
            aggregation,
            authenticator: Arc::clone(&boot.authenticator),
            following,
            issuer: boot.issuer.clone(),
            address: SocketAddr::new(boot.config.advertised(), boot.address.port()),
            jwks_uri: boot
                .config
                .tokens
                .service_account_jwks_uri
                .clone()
                .unwrap_or_else(|| jwks_uri((boot.config.advertised(), boot.address.port()).into())),
            git_version: match &boot.config.reported_version {
                Some(version) => version.clone().into(),
                None => version::GIT_VERSION.to_owned(),
            },
            published,
            health,
            seats: seats(&boot.config),
            fairness,
            turns: Turns::default(),
            backups: Arc::new(Semaphore::new(limits::BACKUPS)),
            streams,
            request_timeout: Duration::from_secs(boot.config.requests.request_timeout_seconds),
            goaway_chance: boot.config.requests.goaway_chance,
            browsers: Browsers::of(&boot.config.requests),
            audit: audit.map_err(StartError::Audit)?,
            beginning,
            large_requests: Arc::new(LargeRequestThreads::start(boot.config.worker_count())),
            watchdog: boot.watchdog.clone(),
            pki: Arc::clone(&boot.pki),
            data_dir: boot.config.data_dir.clone(),
            began: Instant::now(),
            history: boot.config.history(),
            console: Console::new(boot.config.console, boot.config.advertised()),
        }))
    }

    /// Returns the auditing of requests. `None` if nothing is recorded.
    pub fn audit(&self) -> Option<Arc<Audit>> {
        self.audit.clone()
    }

    /// Returns whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.seats.is_idle() && self.fairness.as_ref().is_none_or(|fairness| fairness.waiting() == 0)
    }

    /// Returns a request that is passed on to another server, at most until this one stops.
    ///
    /// # Errors
    /// As for [`Head::request`].
    pub(super) fn passing<'r>(&'r self, head: &Head<'r>) -> ApiResult<ForwardedRequest<'r>> {
        Ok(ForwardedRequest {
            outbound: &self.registry.tables.outbound,
            request: head.request()?,
            path: head.path,
            query: head.query_text,
            meter: self.registry.tables.metrics.shared_meter(),
            proxy: self.authenticator.proxy().map(|proxy| &**proxy),
            drain: Some(&self.streams),
        })
    }

    /// Returns the metrics, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let Tables { metrics, store, resources, outbound, .. } = &*self.registry.tables;
        outbound.measure(metrics.meter());
        metrics.render(store, resources, |page| {
            let help = "Most requests in progress at a time since the last look.";
            let mut samples = page.gauge("apiserver_current_inflight_requests", help);
            let [read_only, mutating] = self.seats.take_peaks();
            samples.sample(&[("request_kind", "mutating")], mutating as f64);
            samples.sample(&[("request_kind", "readOnly")], read_only as f64);
            let help = "Bytes of answers that were made and not taken by their clients yet.";
            page.gauge("flotilla_answers_ahead_bytes", help).sample(&[], unsent::held() as f64);
            let help = "Requests in progress and open watches. There are no goroutines here: what they would do goes on at once.";
            page.gauge("go_goroutines", help).sample(&[], self.seats.total() as f64);
            if let Some(fairness) = &self.fairness {
                fairness.measure(page);
            }
            measured::write(&self.registry, page);
            surroundings::write(page, &self.data_dir, self.pki.expirations());
        })
    }

    /// Returns the results of the checks of health, in the same format.
    pub fn health_metrics(&self) -> String {
        let mut page = Page::default();
        let mut samples = page.gauge("kubernetes_healthcheck", "Whether a check of health passes: 1 or 0.");
        for (endpoint, check, passes) in self.health.results() {
            samples.sample(&[("name", check), ("type", endpoint)], if passes { 1.0 } else { 0.0 });
        }
        page.0
    }

    /// Returns a function that routes every request of an HTTP server here. It is called once on each worker.
    pub fn routes(self: &Arc<Self>) -> impl Fn(&mut ServiceConfig) + Clone + Send + 'static {
        let gateway = web::Data::from(Arc::clone(self));
        move |config: &mut ServiceConfig| {
            let actor = web::Data::new(GatewayActor::new(gateway.clone()).start());
            tasks::detached_here("attendance", gateway.watchdog.attend(watchdog::WORKER));
            let gateway = gateway.clone();
            // actix-web boxes the future of a service once. It would box that of a handler twice, and look up the
            // handler's arguments for each request.
            config.default_service(fn_service(move |request: ServiceRequest| {
                let (gateway, actor) = (gateway.clone(), actor.clone());
                async move {
                    let (request, mut payload) = request.into_parts();
                    let payload = web::Payload::from_request(&request, &mut payload).await?;
                    let answer = handler::handle(request.clone(), payload, gateway, actor).await;
                    Ok::<_, actix_web::Error>(ServiceResponse::new(request, answer))
                }
            }));
        }
    }
}

/// Starts to follow the APIService objects and the servers behind them.
fn follow_servers(aggregation: &Arc<Aggregation>) -> Task {
    let aggregation = Arc::clone(aggregation);
    tasks::service("aggregated servers", async move || Arc::clone(&aggregation).follow().await)
}

/// Starts the search for unreadable objects among those that were stored before this server started.
fn examine(registry: &Arc<Registry>) -> Task {
    let registry = Arc::clone(registry);
    tasks::owned("unreadable objects", async move { registry.tables.examine_stored().await })
}

/// Returns the seats of reads and writes. With priority and fairness, the levels divide the sum of both.
fn seats(config: &Config) -> Seats {
    let (reads, writes) = (config.max_requests_inflight, config.max_mutating_requests_inflight);
    match config.enable_priority_and_fairness {
        true => Seats::new(reads + writes, reads + writes),
        false => Seats::new(reads, writes),
    }
}

/// Starts to follow the tables of FlowSchemas and priority levels. `None` if priority and fairness is off.
fn share(boot: &Boot, registry: &Registry, following: &mut Vec<Task>) -> Result<Option<Arc<Fairness>>, StartError> {
    if !boot.config.enable_priority_and_fairness {
        return Ok(None);
    }
    let table = |resource| {
        let served = registry.tables.resources.of_resource(fairness::GROUP, resource);
        served.map(|served| registry.tables.table(&served)).ok_or(StartError::NoPriorities(resource))
    };
    let [schemas, levels] = fairness::RESOURCES.map(table);
    let tables = [schemas?, levels?];
    let total = boot.config.max_requests_inflight + boot.config.max_mutating_requests_inflight;
    let fairness = Arc::new(Fairness::new(total));
    let followed = Arc::clone(&fairness);
    following.push(tasks::service("priority levels", async move || fairness::follow(&tables, &followed).await));
    Ok(Some(fairness))
}

/// Starts to follow the tables of roles and bindings.
fn follow_roles(registry: &Registry) -> Result<Task, StartError> {
    let table = |resource| {
        let served = registry.tables.resources.of_resource(rbac::GROUP, resource);
        served.map(|served| registry.tables.table(&served)).ok_or(StartError::NoRoles(resource))
    };
    let [cluster_roles, roles, cluster_role_bindings, role_bindings] = rbac::RESOURCES.map(table);
    let tables = [cluster_roles?, roles?, cluster_role_bindings?, role_bindings?];
    let rbac = Arc::clone(&registry.tables.authorizer.rbac);
    Ok(tasks::service("roles", async move || rbac::follow(&tables, &rbac).await))
}

/// Starts to follow the policies or webhooks of a plugin.
fn follow_outside(registry: &Arc<Registry>, plugin: DynamicPlugin) -> Task {
    let registry = Arc::clone(registry);
    tasks::service(plugin.plugin().name, async move || registry.admission.follow(plugin).await)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
