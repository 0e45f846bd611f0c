//! [`Config`]: one typed configuration from defaults, a file, the environment and flags; later ones win.
//!
//! It is the only list of options: flags, help, keys of the file (TOML) and environment variables all follow from it.
//! The flag `--data-dir` is the key `data-dir` in a file and `FLOTILLA_DATA_DIR` in the environment.
//!
//! The options of some parts are structs of their own, which are read separately. In a struct with flattened parts,
//! serde cannot refuse unknown keys of a file, and cannot say which key of a part is wrong.

mod admission;
mod audit;
mod authorization;
mod choices;
mod cidr;
mod derived;
mod directories;
mod front_proxy;
mod load;
mod members;
mod openid;
mod reported_version;
mod requests;
mod shards;
mod span;
mod tls;
mod tokens;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::enablement::Enablement;
use crate::limits;

pub use admission::AdmissionOptions;
pub use audit::{AuditFormat, AuditMode, AuditOptions, AuditVersion, BatchOptions};
pub use authorization::AuthorizationOptions;
pub use choices::{AuthorizationMode, ConsoleAccess, EndpointReconciler, LogFormat, TlsVersion};
pub use cidr::{Cidr, CidrError, PortRange, ServiceRanges};
pub use directories::{default_data_dir, usual_kubeconfig};
pub use front_proxy::FrontProxyOptions;
pub use load::{ConfigError, load, unrecognized_variables};
pub use members::{InitialCluster, InitialClusterError, default_name, is_member_address, is_member_name};
pub use openid::OpenIdOptions;
pub use reported_version::{ReportedVersion, ReportedVersionError};
pub use requests::RequestOptions;
pub use shards::{Shards, ShardsError};
pub use span::{Span, SpanError};
pub use tls::{NamedKey, TlsOptions};
pub use tokens::TokenOptions;

/// Types of node addresses, in the default order in which the server tries to connect to kubelets.
pub const ADDRESS_TYPES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// Issuer of service account tokens unless configured.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

/// Returns the options of the part `A` with their defaults.
fn defaults<A: clap::Args>() -> A {
    let matches = A::augment_args(clap::Command::new("")).get_matches_from([""]);
    A::from_arg_matches(&matches).expect("every option has a default or may be missing")
}

/// The options of the server.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Directory of the server's data: objects, certificates, the administrator's kubeconfig.
    ///
    /// Created if missing. One server uses it at a time.
    #[arg(long, value_name = "DIR", default_value_os_t = default_data_dir())]
    pub data_dir: PathBuf,

    /// Directory of certificates and keys, by default `pki` in the data directory.
    ///
    /// Members of a cluster need the same authorities and the same key of service accounts: mount one directory for
    /// all, or give each a copy of `peer-ca`, `ca` and `front-proxy-ca` (each .crt and .key) and `sa.key`. The first
    /// member that starts makes the missing ones; any number may start at once. A member's own certificates stay in its
    /// data directory.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pki_dir: Option<PathBuf>,

    /// Name of this member, unique in the cluster; by default the name of the machine.
    ///
    /// Letters, digits, dashes, dots and underscores, 63 at most.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Address and port on which this member listens for the others, always with TLS. Needs --initial-cluster.
    ///
    /// Only members can connect: both sides must show a certificate of the authority `peer-ca` with their own name in
    /// it.
    #[arg(long, value_name = "ADDR:PORT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_listen: Option<SocketAddr>,

    /// The members that form the cluster, this one among them, with the address at which each listens for the others.
    ///
    /// As `a=10.0.0.1:7443,b=10.0.0.2:7443,c=c.example:7443`, the same for every member: the members found the cluster
    /// once all of them run. Without it the server is alone, and opens no port for others.
    ///
    /// As `dns=peers.example:7443`, a host name that resolves to the addresses of all, like that of a headless Service:
    /// the server resolves it repeatedly until --initial-cluster-size members have answered and see each other.
    #[arg(long, value_name = "NAME=ADDR:PORT,...")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cluster: Option<InitialCluster>,

    /// Number of members that form the cluster, with --initial-cluster dns=HOST:PORT. The same for every member.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cluster_size: Option<usize>,

    /// Address at which the others reach this member, with --initial-cluster dns=HOST:PORT.
    ///
    /// It must always belong to this member. A host name is best: it is resolved for every connection, and the address
    /// behind it may change.
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_advertise: Option<String>,

    /// Address and port to serve on, always with TLS. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 6443)))]
    pub listen: SocketAddr,

    /// Address under which others reach the server: in the kubeconfig, the certificate and the Service `kubernetes`.
    ///
    /// By default the address of --listen, or the loopback address if --listen has an unspecified address.
    #[arg(long, value_name = "ADDR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise_address: Option<IpAddr>,

    /// Built-in APIs to switch on or off, as in `batch/v1=false,apps/v1/deployments=false`; `api/all`, `api/ga`,
    /// `api/beta` and `api/alpha` stand for all versions of that stability.
    ///
    /// As in kube-apiserver: stable versions are on by default, all others off. Versions that kube-apiserver serves
    /// only with a feature gate are missing.
    #[arg(long, value_name = "API=BOOL,...", default_value_t = Enablement::default())]
    pub runtime_config: Enablement,

    /// Version that /version states in place of the server's own, as in `v1.36.3-mine`.
    ///
    /// For distributions that mark their servers. Clients compare it with theirs: it must begin with the release of
    /// Kubernetes.
    #[arg(long, value_name = "VERSION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_version: Option<ReportedVersion>,

    /// Let pods have privileged containers, and processes of the host.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub allow_privileged: bool,

    /// Range of the cluster IPs of Services: one, or one of each IP family, the first being the default.
    #[arg(long, value_name = "CIDR[,CIDR]", default_value_t = ServiceRanges::default())]
    pub service_cluster_ip_range: ServiceRanges,

    /// Range of the node ports of Services, first and last included.
    #[arg(long, value_name = "FIRST-LAST", default_value_t = PortRange::NODE_PORTS)]
    pub service_node_port_range: PortRange,

    /// Reach Services of webhooks and aggregated servers at their endpoints rather than at their cluster address.
    ///
    /// For servers on machines that do not route cluster addresses.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_aggregator_routing: bool,

    /// Types of node addresses, in the order in which the server tries to reach kubelets.
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', default_values_t = ADDRESS_TYPES.map(String::from))]
    pub kubelet_preferred_address_types: Vec<String>,

    /// PEM file with the client certificate for kubelets.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_client_certificate: Option<PathBuf>,

    /// PEM file with the key of --kubelet-client-certificate.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_client_key: Option<PathBuf>,

    /// PEM file with the authorities of kubelets' certificates. Without it the server does not check the certificates.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_certificate_authority: Option<PathBuf>,

    /// PEM file with the client certificate for aggregated API servers. By default the server makes one.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_client_cert_file: Option<PathBuf>,

    /// PEM file with the key of --proxy-client-cert-file.
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_client_key_file: Option<PathBuf>,

    /// Run the controllers that belong to the API: namespaces, garbage collection, service accounts and others.
    ///
    /// Turn off if a kube-controller-manager runs them.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub embedded_controllers: bool,

    /// The clients that can see the console at `/console`.
    ///
    /// The console shows the state of this member and is read-only. A user must be allowed to get the path;
    /// `flotilla console` issues a link for a browser.
    #[arg(long, value_name = "CLIENTS", value_enum, default_value_t = ConsoleAccess::Loopback)]
    pub console: ConsoleAccess,

    /// Number of threads that serve HTTP; 0 means one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub workers: usize,

    /// Let requests take the seats of their priority levels, as FlowSchemas say, or wait for seats.
    ///
    /// Otherwise reads and writes have one bound each, and no request waits.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_priority_and_fairness: bool,

    /// Largest number of reading requests in progress; the server answers further ones with 429.
    ///
    /// With priority and fairness, the levels divide the sum of this and --max-mutating-requests-inflight. Watches,
    /// other long-running requests, and members of system:masters are exempt.
    #[arg(long, value_name = "N", default_value_t = limits::READ_ONLY_REQUESTS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub max_requests_inflight: usize,

    /// Largest number of writing requests in progress; the server answers further ones with 429.
    ///
    /// Long-running requests and members of system:masters are exempt.
    #[arg(long, value_name = "N", default_value_t = limits::MUTATING_REQUESTS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub max_mutating_requests_inflight: usize,

    /// Seconds of history to keep for watches and older snapshots.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub history_seconds: u64,

    /// Bytes of memory that the history of one resource may take; beyond that, its oldest changes are dropped early.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub history_bytes: usize,

    /// Seconds for which an event lives after its last write; 0 for ever.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    pub event_ttl_seconds: u64,

    /// Seconds that a stopping server goes on serving, while /readyz fails and clients are sent elsewhere.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub shutdown_delay_seconds: u64,

    /// Number of shards of resources, as in `pods=8,apps/deployments=2`; every other resource has one.
    ///
    /// A shard has a part of the objects, and the shards of a resource take writes independently of each other. `large`
    /// stands for 8 of each of pods, events, nodes, leases and endpoint slices. Custom resources are named as in
    /// example.com/widgets. This applies to a new cluster; `flotilla cluster shards` changes it later.
    #[arg(long, value_name = "RESOURCE=N,...", default_value_t = Shards::default())]
    pub shards: Shards,

    /// Number of groups that replicate the resources of --shards; 0 means the largest number of shards there.
    ///
    /// Every group has a log of its own. Resources without shards are replicated by one more group. This applies to a
    /// new cluster.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub groups: u8,

    /// Seconds that a stopping server gives to open requests; watches end at once.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub shutdown_grace_seconds: u64,

    /// TLS.
    #[command(flatten)]
    #[serde(skip)]
    pub tls: TlsOptions,

    /// Requests and their answers.
    #[command(flatten)]
    #[serde(skip)]
    pub requests: RequestOptions,

    /// Tokens of service accounts.
    #[command(flatten)]
    #[serde(skip)]
    pub tokens: TokenOptions,

    /// File with the keys by which the log and the snapshots are encrypted on the disk (`EncryptionConfiguration` of
    /// `apiserver.config.k8s.io/v1`).
    ///
    /// Everything is encrypted if the first provider of any resource encrypts. A server that starts with another file
    /// encrypts the existing data with the keys of that file.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_provider_config: Option<PathBuf>,

    /// File that names the proxies through which nodes, Services and webhooks are reached
    /// (`EgressSelectorConfiguration` of `apiserver.k8s.io/v1beta1`).
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_selector_config_file: Option<PathBuf>,

    /// PEM file with authorities whose client certificates are accepted, besides the server's own.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca_file: Option<PathBuf>,

    /// Answer requests without credentials, as the user system:anonymous. True by default.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = clap::ArgAction::Set)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous_auth: Option<bool>,

    /// Options of authorization.
    #[command(flatten)]
    #[serde(skip)]
    pub authorization: AuthorizationOptions,

    /// File that says which tokens of OpenID Connect are accepted, and which requests need no credentials
    /// (AuthenticationConfiguration), in place of --oidc-*. It is read again when it changes.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_config: Option<PathBuf>,

    /// Kubeconfig of the webhook that finds the user of a token if nothing else knows the token.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_token_webhook_config_file: Option<PathBuf>,

    /// Version of the reviews that this webhook gets: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    pub authentication_token_webhook_version: String,

    /// Time for which answers of this webhook are kept.
    #[arg(long, value_name = "SPAN", default_value = "2m0s")]
    pub authentication_token_webhook_cache_ttl: Span,

    /// Accept tokens of Secrets of the type bootstrap.kubernetes.io/token in kube-system.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_bootstrap_token_auth: bool,

    /// Options of OpenID Connect: the provider whose tokens the server accepts.
    #[command(flatten)]
    #[serde(skip)]
    pub openid: OpenIdOptions,

    /// Options of authenticating proxies, which state the user of a request in headers.
    #[command(flatten)]
    #[serde(skip)]
    pub front_proxy: FrontProxyOptions,

    /// Options of admission plugins.
    #[command(flatten)]
    #[serde(skip)]
    pub admission: AdmissionOptions,

    /// Whether this server keeps the endpoints of the Service `kubernetes`: yes with lease or master-count, no with
    /// none.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = EndpointReconciler::Lease)]
    pub endpoint_reconciler_type: EndpointReconciler,

    /// Do not wait until writes are on the disk. Acknowledged writes are lost if the machine fails.
    ///
    /// For servers whose data may be lost at any time, as in tests.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub unsafe_no_fsync: bool,

    /// Stop, as after SIGTERM, when the process that has started the server ends in any way.
    ///
    /// For tests: a server of a test ends even if the test is killed.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub end_with_parent: bool,

    /// CSV file with static tokens: token,user,uid[,"group,group"].
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_auth_file: Option<PathBuf>,

    /// The options of auditing.
    #[command(flatten)]
    #[serde(skip)]
    pub audit: AuditOptions,

    /// Level of the log: error, warn, info, debug or trace, also for parts as in `info,flotilla::watch=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info,actix_server=warn,openraft=error")]
    pub log_level: String,

    /// Form of the log, which the server writes to standard error.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}
