//! What all requests share, and how the HTTP server reaches it.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::web::{self, ServiceConfig};
use tokio::sync::Semaphore;

use super::flow::Flow;
use super::handler;
use super::members::Turns;
use crate::access::tokens::Issuer;
use crate::access::{Authenticator, Authorizer};
use crate::boot::{Boot, Drain};
use crate::bootstrap::{self, BootstrapInput, FrontProxy, SeedError};
use crate::controllers::{self, Controllers, Settings};
use crate::discovery::health::{Health, Part};
use crate::discovery::{self, Documents};
use crate::limits;
use crate::metrics::Page;
use crate::openapi::OpenApi;
use crate::registry::{Registry, now};
use crate::status::ApiError;

/// What all requests share.
#[derive(Debug)]
pub struct Gateway {
    /// Objects.
    pub registry: Arc<Registry>,
    /// Finds users.
    pub authenticator: Arc<Authenticator>,
    /// Decides what they may do.
    pub authorizer: Authorizer,
    /// Issues tokens of service accounts.
    pub issuer: Issuer,
    /// Where the server is reached.
    pub address: SocketAddr,
    /// Discovery documents.
    pub documents: Documents,
    /// OpenAPI documents.
    pub openapi: OpenApi,
    /// What `/healthz` and its like tell.
    pub health: Health,
    /// How many requests are in progress, and may be.
    pub flow: Flow,
    /// Changes of the cluster that are made through this server.
    pub(super) turns: Turns,
    /// How many more backups may be taken at the same time.
    pub(super) backups: Arc<Semaphore>,
    /// Tells open requests that the server is going down.
    pub drain: Drain,
    /// Controllers that belong to the API, unless others run them.
    pub controllers: Option<Controllers>,
}

impl Gateway {
    /// Makes what requests need: the objects that must exist, and the documents about what is served.
    ///
    /// # Errors
    /// When an object that must exist cannot be written.
    pub async fn start(boot: &Boot) -> Result<Arc<Self>, StartError> {
        let mut registry = Registry::new(boot.store.clone(), boot.config.service_node_port_range);
        registry.accounts_are_made = boot.config.embedded_controllers;
        let registry = Arc::new(registry);
        begin(&registry, &bootstrap_input(boot)).await?;
        let controllers = boot.config.embedded_controllers.then(|| {
            let root_ca = boot.pki.authority_pem().to_owned();
            let settings = Settings { issuer: boot.issuer.clone(), root_ca };
            controllers::start(&registry, &settings, &boot.drain)
        });
        let health = health(boot, controllers.as_ref());
        let address = format!("{}:{}", boot.config.advertised(), boot.address.port());
        Ok(Arc::new(Self {
            registry,
            authenticator: Arc::clone(&boot.authenticator),
            authorizer: boot.authorizer.clone(),
            issuer: boot.issuer.clone(),
            address: SocketAddr::new(boot.config.advertised(), boot.address.port()),
            documents: Documents::build(&discovery::built_in()?, &address),
            openapi: OpenApi::default(),
            health,
            flow: Flow::new(boot.config.max_requests_inflight, boot.config.max_mutating_requests_inflight),
            turns: Turns::default(),
            backups: Arc::new(Semaphore::new(limits::BACKUPS)),
            drain: boot.drain.clone(),
            controllers,
        }))
    }

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.flow.is_idle()
    }

    /// What was measured, in the text form of Prometheus.
    pub fn metrics(&self) -> String {
        self.registry.metrics.render(&self.registry, |page| {
            let help = "Most requests in progress at a time since the last look.";
            let mut samples = page.gauge("apiserver_current_inflight_requests", help);
            let [read_only, mutating] = self.flow.take_peaks();
            samples.sample(&[("request_kind", "mutating")], mutating as f64);
            samples.sample(&[("request_kind", "readOnly")], read_only as f64);
        })
    }

    /// What the checks of health tell, in the same form.
    pub fn health_metrics(&self) -> String {
        let mut page = Page::default();
        let mut samples = page.gauge("kubernetes_healthcheck", "Whether a check of health passes: 1 or 0.");
        for (endpoint, check, passes) in self.health.results() {
            samples.sample(&[("name", check), ("type", endpoint)], if passes { 1.0 } else { 0.0 });
        }
        page.0
    }

    /// A function that routes every request of an HTTP server here.
    pub fn routes(self: &Arc<Self>) -> impl Fn(&mut ServiceConfig) + Clone + Send + 'static {
        let gateway = web::Data::from(Arc::clone(self));
        move |config: &mut ServiceConfig| {
            config.app_data(gateway.clone()).default_service(web::to(handler::handle));
        }
    }
}

/// Has the objects that must exist made: by this replica if it leads, else by the one that does.
async fn begin(registry: &Registry, input: &BootstrapInput) -> Result<(), StartError> {
    let mut leads = registry.leadership();
    loop {
        if *leads.borrow_and_update() {
            bootstrap::seed(registry, input).await?;
            return registry.repair_addresses().await.map_err(StartError::Addresses);
        }
        if bootstrap::is_seeded(registry, input)? {
            return Ok(());
        }
        // The objects come with changes of many tables; this is the one time when looking again is simpler.
        let _ = tokio::time::timeout(limits::SEED_CHECK_INTERVAL, leads.changed()).await;
    }
}

/// What each check of health follows, once the objects that must exist are there.
fn health(boot: &Boot, controllers: Option<&Controllers>) -> Health {
    let mut health = Health::default();
    let (store, drain) = (boot.store.clone(), boot.drain.clone());
    health.follow(Part::Storage, move || store.is_available());
    health.follow(Part::Staying, move || !drain.is_announced());
    health.done(Part::Bootstrap);
    // None but the built-in ones are served.
    health.done(Part::CustomResources);
    match controllers.map(Controllers::broken) {
        Some(broken) => health.follow(Part::Controllers, move || !broken.any()),
        None => health.done(Part::Controllers),
    }
    health
}

/// Why the server cannot begin to answer.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An object that must exist cannot be written.
    #[error("cannot write the objects that every cluster has")]
    Seed(#[from] SeedError),
    /// The addresses of services cannot be put in order.
    #[error("cannot put the addresses of services in order")]
    Addresses(#[source] ApiError),
    /// The embedded tables of discovery do not parse.
    #[error(transparent)]
    Discovery(#[from] bootstrap::TextError),
}

/// What of the configuration shows in the objects that must exist.
fn bootstrap_input(boot: &Boot) -> BootstrapInput {
    BootstrapInput {
        service_cidrs: boot.config.service_cluster_ip_range.iter().map(|range| range.to_string()).collect(),
        addresses: vec![boot.config.advertised()],
        port: boot.address.port(),
        client_ca: Some(boot.pki.client_authorities_pem()),
        front_proxy: Some(FrontProxy {
            ca: boot.pki.proxy_authority_pem().to_owned(),
            allowed_names: vec!["front-proxy".into()],
            username_headers: vec!["X-Remote-User".into()],
            uid_headers: Vec::new(),
            group_headers: vec!["X-Remote-Group".into()],
            extra_prefixes: vec!["X-Remote-Extra-".into()],
        }),
        now: now().to_string(),
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
