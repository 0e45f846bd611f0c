//! [`Config`]: one typed configuration from defaults, a file, the environment and flags; later ones win.
//!
//! It is the only list of options: flags, help, keys of the file (TOML) and environment variables all follow from it.
//! The flag `--data-dir` is the key `data-dir` in a file and `FLOTILLA_DATA_DIR` in the environment.

mod choices;
mod cidr;
mod load;
mod members;
mod reported_version;
mod shards;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::enablement::Enablement;
use crate::limits;

pub use choices::{AuthorizationMode, ConsoleAccess, EndpointReconciler, TlsVersion};
pub use cidr::{Cidr, CidrError, PortRange, ServiceRanges};
pub use load::{ConfigError, load, unrecognized_variables};
pub use members::{InitialCluster, InitialClusterError, default_name, is_member_address, is_member_name};
pub use reported_version::{ReportedVersion, ReportedVersionError};
pub use shards::{Shards, ShardsError};

/// Types of node addresses, in the default order in which the server tries to connect to kubelets.
pub const ADDRESS_TYPES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// How the server is to run.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Directory of everything that the server keeps: objects, certificates, the administrator's kubeconfig.
    ///
    /// Made when it does not exist. One server uses it at a time.
    #[arg(long, value_name = "DIR", default_value_os_t = default_data_dir())]
    pub data_dir: PathBuf,

    /// Directory of certificates and keys, by default `pki` in the data directory.
    ///
    /// Members of a cluster need the same authorities and the same key of service accounts: mount one directory for
    /// all, or give each a copy of `peer-ca`, `ca` and `front-proxy-ca` (each .crt and .key) and `sa.key`. What is
    /// missing is made by whoever starts first; any number may start at once. What is a member's own stays in its data
    /// directory.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pki_dir: Option<PathBuf>,

    /// Name of this member, different from that of every other; by default the name of the machine.
    ///
    /// Letters, digits, dashes, dots and underscores, 63 at most.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Address and port where this member listens for the others, always with TLS. Needs --initial-cluster.
    ///
    /// Only members can connect: both sides must show a certificate of the authority `peer-ca` with their own name in
    /// it.
    #[arg(long, value_name = "ADDR:PORT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_listen: Option<SocketAddr>,

    /// The members that form the cluster, this one among them, and where each listens for the others.
    ///
    /// As `a=10.0.0.1:7443,b=10.0.0.2:7443,c=c.example:7443`, the same for every member: the cluster is founded once
    /// all of them are there. Without it the server is alone, and opens no port for others.
    ///
    /// As `dns=peers.example:7443`, a host name that has the addresses of all, like that of a headless Service: it is
    /// resolved again and again until --initial-cluster-size members have answered that see each other.
    #[arg(long, value_name = "NAME=ADDR:PORT,...")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cluster: Option<InitialCluster>,

    /// How many members form the cluster, with --initial-cluster dns=HOST:PORT. The same for every member.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cluster_size: Option<usize>,

    /// Where the others reach this member, with --initial-cluster dns=HOST:PORT.
    ///
    /// It must stay this member's own: a host name is best, since it is resolved for every connection, so that the
    /// address behind it may change.
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_advertise: Option<String>,

    /// Address and port to serve on, always with TLS. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 6443)))]
    pub listen: SocketAddr,

    /// Address under which others reach the server: in the kubeconfig, the certificate and the Service `kubernetes`.
    ///
    /// Without it the address of --listen, or the loopback address when that is unspecified.
    #[arg(long, value_name = "ADDR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise_address: Option<IpAddr>,

    /// Built-in APIs to switch on or off, as in `batch/v1=false,apps/v1/deployments=false`; `api/all`, `api/ga`,
    /// `api/beta` and `api/alpha` stand for the versions of that kind.
    ///
    /// As kube-apiserver has it; only the versions that Kubernetes serves by default are here.
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

    /// Addresses of which Services get theirs: one range, or one of each IP family, the first being the default.
    #[arg(long, value_name = "CIDR[,CIDR]", default_value_t = ServiceRanges::default())]
    pub service_cluster_ip_range: ServiceRanges,

    /// Ports of which Services get node ports, first and last included.
    #[arg(long, value_name = "FIRST-LAST", default_value_t = PortRange::NODE_PORTS)]
    pub service_node_port_range: PortRange,

    /// Reach Services of webhooks and aggregated servers at their endpoints rather than at their cluster address.
    ///
    /// For servers on machines where cluster addresses lead nowhere.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_aggregator_routing: bool,

    /// Kinds of addresses of nodes, in the order in which their kubelets are tried.
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', default_values_t = ADDRESS_TYPES.map(String::from))]
    pub kubelet_preferred_address_types: Vec<String>,

    /// PEM file with the certificate that kubelets are shown.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_client_certificate: Option<PathBuf>,

    /// PEM file with the key of --kubelet-client-certificate.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_client_key: Option<PathBuf>,

    /// PEM file with authorities of the certificates of kubelets. Without it these are not checked.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_certificate_authority: Option<PathBuf>,

    /// PEM file with the certificate that aggregated API servers are shown. Made when not given.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_client_cert_file: Option<PathBuf>,

    /// PEM file with the key of --proxy-client-cert-file.
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_client_key_file: Option<PathBuf>,

    /// Run the controllers that belong to the API: namespaces, garbage collection, service accounts, and such.
    ///
    /// Turn off when a kube-controller-manager does it.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub embedded_controllers: bool,

    /// The clients that can see the console at `/console`.
    ///
    /// The console shows the state of this member and is read-only. A user must be allowed to get the path;
    /// `flotilla console` issues a link for a browser.
    #[arg(long, value_name = "CLIENTS", value_enum, default_value_t = ConsoleAccess::Loopback)]
    pub console: ConsoleAccess,

    /// Threads that serve HTTP; 0 is one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub workers: usize,

    /// Requests that only read and may be in progress at a time; more are answered with 429.
    ///
    /// Watches, other long-running requests, and members of system:masters are not held by it.
    #[arg(long, value_name = "N", default_value_t = limits::READ_ONLY_REQUESTS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub max_requests_inflight: usize,

    /// Requests that may change something and may be in progress at a time; more are answered with 429.
    ///
    /// Long-running requests and members of system:masters are not held by it.
    #[arg(long, value_name = "N", default_value_t = limits::MUTATING_REQUESTS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub max_mutating_requests_inflight: usize,

    /// Seconds of history that is kept for watches and older snapshots.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub history_seconds: u64,

    /// Seconds that a stopping server goes on serving, while /readyz fails and clients are sent elsewhere.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub shutdown_delay_seconds: u64,

    /// How many shards resources have, as in `pods=8,apps/deployments=2`; one for every other.
    ///
    /// A shard has a part of the objects, and the shards of a resource take writes independently of each other. `large`
    /// stands for 8 of each of pods, events, nodes, leases and endpoint slices. Custom resources are named as in
    /// example.com/widgets. This says what a new cluster begins with; `flotilla cluster shards` changes it later.
    #[arg(long, value_name = "RESOURCE=N,...", default_value_t = Shards::default())]
    pub shards: Shards,

    /// Groups that replicate the resources of --shards; 0 is as many as the largest of them has shards.
    ///
    /// Every group has a log of its own. Resources without shards are replicated by one more group. This says what a
    /// new cluster begins with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub groups: u8,

    /// Seconds that a stopping server gives to open requests; watches end at once.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub shutdown_grace_seconds: u64,

    /// PEM file with the certificate to serve with, followed by its intermediates. Made when not given.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert_file: Option<PathBuf>,

    /// PEM file with the key of --tls-cert-file.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Directory of the certificate to serve with and its key, `apiserver.crt` and `apiserver.key`, where none is
    /// given.
    ///
    /// Made when missing; without this directory among what the server keeps.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<PathBuf>,

    /// Oldest version of TLS to accept; never older than 1.2.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = TlsVersion::VersionTLS12)]
    pub tls_min_version: TlsVersion,

    /// Cipher suites of TLS 1.2 to offer, by their names; without it all that are safe.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub tls_cipher_suites: Vec<String>,

    /// Serve HTTP/1.1 only.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub disable_http2_serving: bool,

    /// Further name or address for the certificate that the server makes for itself; may be repeated.
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub tls_san: Vec<String>,

    /// PEM file with authorities whose client certificates are accepted, besides the server's own.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca_file: Option<PathBuf>,

    /// Answer requests without credentials, as the user system:anonymous.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub anonymous_auth: bool,

    /// Who decides what users may do; whatever one of them allows is allowed.
    #[arg(long, value_name = "MODE,...", value_enum, value_delimiter = ',',
          default_values_t = [AuthorizationMode::Node, AuthorizationMode::Rbac])]
    pub authorization_mode: Vec<AuthorizationMode>,

    /// Accept tokens of Secrets of the type bootstrap.kubernetes.io/token in kube-system.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_bootstrap_token_auth: bool,

    /// PEM file with authorities of the certificates of proxies, which tell in headers who asks.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requestheader_client_ca_file: Option<PathBuf>,

    /// Common names that the certificates of proxies may have; any, without it.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_allowed_names: Vec<String>,

    /// Headers in which proxies tell the user's name; the first one with a value counts.
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_username_headers: Vec<String>,

    /// Headers in which proxies tell the user's UID; the first one with a value counts.
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_uid_headers: Vec<String>,

    /// Headers in which proxies tell the user's groups.
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_group_headers: Vec<String>,

    /// What headers begin with in which proxies tell further facts of the user.
    #[arg(long, value_name = "PREFIX,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_extra_headers_prefix: Vec<String>,

    /// Admission plugins to use besides those that are on by default: AlwaysPullImages, DenyServiceExternalIPs,
    /// ExtendedResourceToleration, LimitPodHardAntiAffinityTopology, NodeRestriction,
    /// OwnerReferencesPermissionEnforcement, PodNodeSelector.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub enable_admission_plugins: Vec<String>,

    /// Admission plugins to leave out although they are on by default.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub disable_admission_plugins: Vec<String>,

    /// File with configurations of admission plugins (AdmissionConfiguration of apiserver.config.k8s.io).
    ///
    /// What counts of it is as whom webhooks are asked: the kubeconfigs of MutatingAdmissionWebhook and
    /// ValidatingAdmissionWebhook. The server does not start with what it cannot do.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_control_config_file: Option<PathBuf>,

    /// Whether this server keeps the endpoints of the Service `kubernetes`: lease or master-count, or none.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = EndpointReconciler::Lease)]
    pub endpoint_reconciler_type: EndpointReconciler,

    /// Do not wait until writes are on the disk. What was acknowledged is lost when the machine fails.
    ///
    /// For servers of tests and the like, whose data may be lost at any time.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub unsafe_no_fsync: bool,

    /// Stop, as after SIGTERM, when the process that has started the server ends, however that ends.
    ///
    /// For servers of tests, which are to leave nothing behind when the tests are killed.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub end_with_parent: bool,

    /// PEM file with the private key (EC P-256 or RSA) that signs service account tokens. Made when not given.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// PEM file with further keys (public or private) that service account tokens may be signed with; may be repeated.
    #[arg(long, value_name = "FILE")]
    #[serde(default)]
    pub service_account_key_file: Vec<PathBuf>,

    /// Issuer that service account tokens name; may be repeated: the first one issues, all are accepted.
    #[arg(long, value_name = "URL", default_values_t = [String::from(DEFAULT_ISSUER)])]
    pub service_account_issuer: Vec<String>,

    /// Where the discovery document of the issuer says that its keys are, instead of at this server.
    #[arg(long, value_name = "URL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_jwks_uri: Option<String>,

    /// Audience that tokens must be meant for; may be repeated. Without it the issuers.
    #[arg(long, value_name = "AUDIENCE")]
    #[serde(default)]
    pub api_audiences: Vec<String>,

    /// CSV file with static tokens: token,user,uid[,"group,group"].
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_auth_file: Option<PathBuf>,

    /// What is logged: error, warn, info, debug or trace, also for parts as in `info,flotilla::watch=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info,actix_server=warn,openraft=error")]
    pub log_level: String,

    /// How it is logged, on standard error.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// Issuer of service account tokens unless configured.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

impl Config {
    /// Returns how long a stopping server goes on serving before it closes.
    pub const fn shutdown_delay(&self) -> Duration {
        Duration::from_secs(self.shutdown_delay_seconds)
    }

    /// Returns how long open requests may take before a stopping server ends.
    pub const fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_seconds)
    }

    /// Returns the number of groups that replicate the resources with shards.
    pub fn data_groups(&self) -> u8 {
        match self.groups {
            0 => u8::try_from(self.shards.largest()).unwrap_or(u8::MAX),
            given => given,
        }
    }

    /// Returns how long history is kept.
    pub const fn history(&self) -> Duration {
        Duration::from_secs(self.history_seconds)
    }

    /// Returns the number of threads that serve HTTP, at least one.
    pub fn worker_count(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }

    /// Returns the address under which others reach the server.
    pub fn advertised(&self) -> IpAddr {
        self.advertise_address.unwrap_or(match self.listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        })
    }

    /// Returns the audiences of the API itself.
    pub fn audiences(&self) -> &[String] {
        if self.api_audiences.is_empty() { &self.service_account_issuer } else { &self.api_audiences }
    }

    /// Returns the files with the serving certificate and its key; `None` if they are not configured.
    pub fn serving_files(&self) -> Option<(&Path, &Path)> {
        self.tls_cert_file.as_deref().zip(self.tls_private_key_file.as_deref())
    }

    /// Returns the files with the client certificate for kubelets and its key; `None` if they are not configured.
    pub fn kubelet_files(&self) -> Option<(&Path, &Path)> {
        self.kubelet_client_certificate.as_deref().zip(self.kubelet_client_key.as_deref())
    }

    /// Returns the files with the client certificate for aggregated API servers and its key; `None` if they are not
    /// configured.
    pub fn proxy_files(&self) -> Option<(&Path, &Path)> {
        self.proxy_client_cert_file.as_deref().zip(self.proxy_client_key_file.as_deref())
    }

    /// Returns the directory of the certificates and keys that members share.
    pub fn pki_dir(&self) -> PathBuf {
        self.pki_dir.clone().unwrap_or_else(|| self.own_pki_dir())
    }

    /// Returns the directory of the certificates and keys that are this server's own.
    pub fn own_pki_dir(&self) -> PathBuf {
        self.data_dir.join("pki")
    }

    /// Returns the name of this member.
    pub fn member_name(&self) -> String {
        self.name.clone().unwrap_or_else(default_name)
    }

    /// Returns the path of the administrator's kubeconfig.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.data_dir.join(ADMIN_KUBECONFIG)
    }
}

/// Returns the path of the administrator's kubeconfig for a server whose data directory comes from the environment or
/// is the default.
pub fn usual_kubeconfig() -> PathBuf {
    let given = std::env::var_os("FLOTILLA_DATA_DIR").map(PathBuf::from);
    given.unwrap_or_else(default_data_dir).join(ADMIN_KUBECONFIG)
}

/// Name of the administrator's kubeconfig in the data directory.
const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";

/// Returns `$XDG_DATA_HOME/flotilla`, or `~/.local/share/flotilla` (XDG Base Directory Specification), or a directory
/// below the working directory if neither is set.
pub fn default_data_dir() -> PathBuf {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_default()
        .join("flotilla")
}
