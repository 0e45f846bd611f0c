//! Starts a server from its configuration, and stops it.
//!
//! The order matters. First the files that flags name are read, because a wrong configuration must change nothing. Then
//! the store opens and locks the data directory; before that nothing in the directory may change, except the
//! certificate authority of members, which the store needs and which several processes may create at once. Then the
//! address is bound, because certificates and kubeconfig contain it.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use actix_web::web::ServiceConfig;
use flotilla_cluster::{Initial, KeyWrapping, Membership, OpenError, Options, Store, TableId, TableOptions};

use crate::access::configured::{Authentication, Authorizers};
use crate::access::nodes::{Nodes, StoreRelations};
use crate::access::rbac::Rule;
use crate::access::tokens::{Issuer, KeyError, KeySet, ServiceAccountTokens, SpareKey, StoreObjects};
use crate::access::{
    Anonymous, AuthenticationMethods, Authenticator, Authorizer, BootstrapTokens, TokenFile, connection,
};
use crate::admission::Configuration;
use crate::audit;
use crate::bootstrap::{self, SeedError};
use crate::config::{Config, ConfigError, InitialCluster};
use crate::drain::Drain;
use crate::embedded::TextError;
use crate::flag_files::FlagFiles;
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::{PeerPki, Pki, PkiError, PkiOptions};
use crate::prometheus::Meter;
use crate::status::ApiError;
use crate::tasks;
use crate::transport::{self, Connections};
use crate::version;
use crate::watchdog::{self, Watchdog};

/// The reason why the server did not start, or ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The data directory is in use, damaged, or of a newer format, or cannot be used at all.
    #[error("cannot open the store in {directory}")]
    Store {
        /// The data directory.
        directory: String,
        /// The cause.
        source: OpenError,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Certificates or keys are missing or invalid.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// A file that a flag names is missing or invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The keys of service account tokens are missing or invalid.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The signals of the operating system cannot be received.
    #[error("cannot receive signals")]
    Signals(#[source] io::Error),
    /// The end of the parent cannot be noticed.
    #[error("--end-with-parent is not possible")]
    Parent(#[source] io::Error),
    /// The state that requests need cannot be created.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The HTTP server failed.
    #[error("the HTTP server failed")]
    Http(#[source] io::Error),
}

impl BootError {
    /// Returns whether flags or configuration are wrong.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Config(_))
    }
}

/// The reason why the server cannot begin to answer requests.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An object that must exist cannot be written.
    #[error("cannot write the objects that every cluster has")]
    Seed(#[from] SeedError),
    /// The claims of service addresses cannot be repaired.
    #[error("cannot repair the allocations of service addresses")]
    Addresses(#[source] ApiError),
    /// The watchdog's thread cannot be started.
    #[error("cannot watch the threads")]
    Watchdog(#[source] io::Error),
    /// The thread that writes the audit log cannot be started.
    #[error("cannot write the audit log")]
    Audit(#[source] io::Error),
    /// A resource that authorization needs is not served.
    #[error("the resource {0} is not served, and authorization needs it")]
    NoRoles(&'static str),
    /// A resource that priority and fairness needs is not served.
    #[error("the resource {0} is not served, and priority and fairness needs it")]
    NoPriorities(&'static str),
    /// The embedded tables of discovery do not parse.
    #[error(transparent)]
    Discovery(#[from] TextError),
}

/// Everything that serving requests needs.
pub struct Boot {
    /// The configuration.
    pub config: Arc<Config>,
    /// The store of all objects.
    pub store: Store,
    /// The socket for requests; it is listening.
    pub listener: TcpListener,
    /// The address of [`Boot::listener`].
    pub address: SocketAddr,
    /// Certificates and keys.
    pub pki: Arc<Pki>,
    /// The certificate that other members see. `None` outside a cluster.
    pub peers: Option<Arc<PeerPki>>,
    /// Authenticates requests.
    pub authenticator: Arc<Authenticator>,
    /// Issues tokens of service accounts.
    pub issuer: Issuer,
    /// Authorizes requests.
    pub authorizer: Authorizer,
    /// The configuration of authentication, which may change.
    pub authentication: Authentication,
    /// The configuration of the authorizers, which may change.
    pub authorizers: Authorizers,
    /// Sends requests to other servers.
    pub outbound: Outbound,
    /// The configuration of admission plugins.
    pub admission: Arc<Configuration>,
    /// The policy, the log and the webhook of auditing.
    pub audit: Option<audit::Prepared>,
    /// The meter of all metrics. Webhooks count in it before the server is complete.
    pub meter: Arc<Meter>,
    /// Tells when to stop.
    pub drain: Drain,
    /// Detects threads that are stuck.
    pub watchdog: Watchdog,
}

impl Boot {
    /// Opens the store, listens, creates missing certificates, and writes the administrator's kubeconfig.
    ///
    /// # Errors
    /// See [`BootError`]. If the data directory is in use, damaged, or of a newer format, nothing in it changes, except
    /// that the certificate authority of members may have been created.
    pub async fn open(config: Config, drain: Drain) -> Result<Self, BootError> {
        let meter = Arc::default();
        let files = FlagFiles::read(&config, &meter)?;
        let spare = if files.signing.is_none() { SpareKey::prepare(&config.pki_dir()) } else { SpareKey::default() };
        let peers = config.initial_cluster.is_some().then(|| PeerPki::open(&config.pki_dir(), &config.member_name()));
        let peers = peers.transpose()?;
        let watchdog = Watchdog::default();
        let mut options = store_options(&config, peers.as_ref())?;
        if let Some(keys) = &files.storage_keys {
            match keys.encrypting() {
                Some(by) => tracing::info!(by, "stored data is encrypted"),
                None => tracing::info!("stored data is not encrypted: the provider identity comes first"),
            }
        }
        options.key_wrapping = files.storage_keys.map(|keys| Arc::new(keys) as Arc<dyn KeyWrapping>);
        options.background_task = Some(Arc::new(watchdog.attendant(watchdog::STORE)));
        let store = Store::open(options)
            .await
            .map_err(|source| BootError::Store { directory: config.data_dir.display().to_string(), source })?;
        let listener = listen(config.listen).map_err(|source| BootError::Listen { address: config.listen, source })?;
        let address = listener.local_addr().map_err(|source| BootError::Listen { address: config.listen, source })?;
        let pki = Arc::new(Pki::open(PkiOptions::from_config(&config, address.ip()))?);
        pki.write_admin_kubeconfig(&config.admin_kubeconfig(), &server_url(&config, address))?;
        let signing = match files.signing {
            Some(key) => key,
            None => spare.open(&config.pki_dir())?,
        };
        let keys = KeySet::new(&signing, files.keys);
        Ok(Self {
            authenticator: Arc::new(authenticator(&config, &store, keys, files.tokens).with(AuthenticationMethods {
                anonymous: anonymous(&config, &files.authentication, files.authorizers.are_open()),
                bootstrap: config.enable_bootstrap_token_auth.then(|| BootstrapTokens::new(&store)),
                proxy: files.proxy,
                issuers: Arc::clone(&files.authentication.issuers),
                webhook: files.token_webhook,
            })),
            issuer: Issuer::new(signing, config.tokens.service_account_issuer.first().cloned().unwrap_or_default())
                .with(&config.tokens),
            authorizer: Authorizer::new(nodes(&store)?, files.chain),
            authentication: files.authentication,
            authorizers: files.authorizers,
            outbound: files.outbound,
            admission: Arc::new(files.admission),
            audit: files.audit,
            config: Arc::new(config),
            store,
            listener,
            address,
            pki,
            peers: peers.map(Arc::new),
            meter,
            drain,
            watchdog,
        })
    }

    /// Returns the URL of the API, as the administrator's kubeconfig has it.
    pub fn server_url(&self) -> String {
        server_url(&self.config, self.address)
    }

    /// Prints the address and the kubeconfig to standard output.
    pub fn announce(&self) {
        let (url, kubeconfig) = (self.server_url(), self.config.admin_kubeconfig());
        tracing::info!(%url, kubeconfig = %kubeconfig.display(), version = version::GIT_VERSION, "serving");
        // Standard output may be closed; that must not stop a server.
        let _ = writeln!(
            io::stdout(),
            "flotilla {} serves {url}\nkubectl --kubeconfig {} get namespaces",
            version::GIT_VERSION,
            kubeconfig.display()
        );
    }

    /// Serves the services that `configure` registers until the drain begins, and then until `is_idle` returns true or
    /// the grace period ends. Connections without a request do not delay the end. Every connection uses TLS and has its
    /// [`crate::access::ConnectionIdentity`] in its data.
    ///
    /// # Errors
    /// TLS cannot be set up, or the server fails.
    pub async fn serve<F, I>(self, configure: F, is_idle: I) -> Result<(), BootError>
    where
        F: Fn(&mut ServiceConfig) + Clone + Send + 'static,
        I: Fn() -> bool + 'static,
    {
        let proxy = self.authenticator.proxy().cloned();
        let tls = self.pki.server_config(proxy.as_ref().map(|proxy| proxy.roots()), &self.config)?;
        let (pki, peers) = (Arc::clone(&self.pki), self.peers.clone());
        let (authorizer, issuers) = (self.authorizer.clone(), Arc::clone(self.authenticator.issuers()));
        let background = [
            tasks::service("certificates", async move || renew(&pki, peers.as_ref()).await),
            tasks::owned("authorizers", self.authorizers.follow(move |chain| authorizer.replace(chain))),
            tasks::owned("authentication", self.authentication.follow()),
            tasks::service("issuers", async move || issuers.follow().await),
        ];
        let drain = self.drain.clone();
        let identify = connection::identify(self.pki.client_roots(), proxy);
        let workers = self.config.worker_count();
        let connections = Connections::of(&self.listener).map_err(BootError::Http)?;
        let server = transport::start(self.listener, tls, workers, &connections, configure, identify);
        let server = server.map_err(BootError::Http)?;
        let (handle, grace) = (server.handle(), self.config.shutdown_grace());
        let store = self.store.clone();
        let stopping = tasks::owned("stopping", async move {
            drain.begun().await;
            store.step_down().await; // requests that come meanwhile are passed to the next leader
            transport::stop(&handle, &connections, is_idle, grace).await;
        });
        let served = server.await.map_err(BootError::Http);
        drop(stopping);
        drop(background);
        self.store.shutdown().await;
        served
    }
}

/// Returns the node authorizer. It decides by the relations of objects to nodes, and by the rules of the role of nodes.
fn nodes(store: &Store) -> Result<Nodes, BootError> {
    let rules = bootstrap::node_role().map_err(StartError::Discovery)?;
    Ok(Nodes::new(Box::new(StoreRelations::new(store)), Rule::list(&rules)))
}

fn authenticator(config: &Config, store: &Store, keys: KeySet, file: TokenFile) -> Authenticator {
    let objects = Arc::new(StoreObjects::new(store));
    let tokens = ServiceAccountTokens::new(keys, &config.tokens.service_account_issuer, config.audiences(), objects);
    Authenticator::new(file, tokens)
}

/// Returns which requests without credentials are allowed. Flags allow none in mode AlwaysAllow, as in the reference:
/// otherwise anyone who reaches the port could do everything.
fn anonymous(config: &Config, authentication: &Authentication, is_open: bool) -> Anonymous {
    if let Some(stated) = &authentication.anonymous {
        return stated.clone();
    }
    let is_wanted = config.anonymous_auth != Some(false);
    if is_wanted && is_open {
        tracing::warn!("requests without credentials are refused, since --authorization-mode has AlwaysAllow");
    }
    if is_wanted && !is_open { Anonymous::Everywhere } else { Anonymous::Nowhere }
}

fn store_options(config: &Config, peers: Option<&PeerPki>) -> Result<Options, PkiError> {
    // Every kubelet lists and watches the pods of its own node. With an index this does not read all pods.
    let pods = TableOptions { indexes: vec!["spec.nodeName".into()], ..TableOptions::default() };
    let mut tables = BTreeMap::from([(TableId::new("pods"), pods)]);
    for (resource, shards) in config.shards.iter() {
        tables.entry(TableId::new(resource)).or_insert_with(TableOptions::default).shards = Some(shards);
    }
    let groups = config.data_groups();
    let unsafe_no_fsync = config.unsafe_no_fsync;
    let options = Options {
        unsafe_no_fsync,
        history_age_max: config.history(),
        history_bytes_max: config.history_bytes,
        groups,
        tables,
        ..Options::new(&config.data_dir)
    };
    let (Some(peers), Some(cluster), Some(peer_listen)) = (peers, &config.initial_cluster, config.peer_listen) else {
        return Ok(options);
    };
    let name = config.member_name();
    let advertise = config.peer_advertise.clone().or_else(|| cluster.address_of(&name).map(str::to_owned));
    let initial = match cluster {
        InitialCluster::Members(members) => Initial::Members(members.clone()),
        InitialCluster::Dns(address) => {
            Initial::Found { address: address.clone(), size: config.initial_cluster_size.unwrap_or(1) }
        }
    };
    let advertise = advertise.unwrap_or_default();
    let serves = config.advertised().to_string();
    let membership = Membership { name, peer_listen, advertise, serves, initial, tls: peers.tls()? };
    Ok(Options { membership: Some(membership), ..options })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of the previous process may be in TIME_WAIT, and must not delay a restart.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(limits::BACKLOG_CONNECTIONS)?;
    Ok(socket.into())
}

fn server_url(config: &Config, address: SocketAddr) -> String {
    format!("https://{}", SocketAddr::new(config.advertised(), address.port()))
}

/// Renews certificates when they are due, for ever. Checks them at a fixed interval.
async fn renew(pki: &Arc<Pki>, peers: Option<&Arc<PeerPki>>) {
    loop {
        actix_web::rt::time::sleep(limits::RENEWAL_CHECK_INTERVAL).await;
        let (pki, peers) = (Arc::clone(pki), peers.cloned());
        let refresh = move || pki.refresh().and_then(|()| peers.map_or(Ok(()), |peers| peers.refresh()));
        match tasks::blocking(refresh).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "cannot renew certificates"),
            Err(error) => tracing::error!(%error, "the renewal of certificates failed"),
        }
    }
}

#[cfg(test)]
#[path = "boot_tests.rs"]
mod tests;
