//! Settings that follow from one or more options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use super::{Config, default_name};

impl Config {
    /// Returns the time for which a stopping server goes on serving before it closes.
    pub const fn shutdown_delay(&self) -> Duration {
        Duration::from_secs(self.shutdown_delay_seconds)
    }

    /// Returns the time for which events live after their last write. `None` if they live for ever.
    pub fn event_ttl(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.event_ttl_seconds)).filter(|age| !age.is_zero())
    }

    /// Returns the time for which a stopping server waits for open requests before it ends.
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

    /// Returns the history window.
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
        if self.tokens.api_audiences.is_empty() {
            &self.tokens.service_account_issuer
        } else {
            &self.tokens.api_audiences
        }
    }

    /// Returns the files with the serving certificate and its key. `None` if they are not configured.
    pub fn serving_files(&self) -> Option<(&Path, &Path)> {
        self.tls.tls_cert_file.as_deref().zip(self.tls.tls_private_key_file.as_deref())
    }

    /// Returns the files with the client certificate for kubelets and its key. `None` if they are not configured.
    pub fn kubelet_files(&self) -> Option<(&Path, &Path)> {
        self.kubelet_client_certificate.as_deref().zip(self.kubelet_client_key.as_deref())
    }

    /// Returns the files with the client certificate for aggregated API servers and its key. `None` if they are not
    /// configured.
    pub fn proxy_files(&self) -> Option<(&Path, &Path)> {
        self.proxy_client_cert_file.as_deref().zip(self.proxy_client_key_file.as_deref())
    }

    /// Returns the name of this member.
    pub fn member_name(&self) -> String {
        self.name.clone().unwrap_or_else(default_name)
    }
}
