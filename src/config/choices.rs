//! The values of options that take one of a few words.

use serde::{Deserialize, Serialize};

/// An authorizer, which decides what users may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum AuthorizationMode {
    /// Everybody may do everything.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// Nobody may do anything, except members of system:masters.
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// Nodes may do what concerns them.
    #[value(name = "Node")]
    Node,
    /// The policies of a file decide.
    #[value(name = "ABAC")]
    #[serde(rename = "ABAC")]
    Abac,
    /// Users may do what roles and bindings allow.
    #[value(name = "RBAC")]
    #[serde(rename = "RBAC")]
    Rbac,
    /// A webhook decides.
    #[value(name = "Webhook")]
    Webhook,
}

/// Whether a server keeps the endpoints of the Service `kubernetes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointReconciler {
    /// This server keeps them: the addresses of the servers that run.
    Lease,
    /// The same, by an older name.
    MasterCount,
    /// Something else keeps them.
    None,
}

/// The clients that can see the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConsoleAccess {
    /// None.
    Off,
    /// Those on this machine.
    Loopback,
    /// All that reach the API.
    Network,
}

/// A version of TLS, as Go calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum TlsVersion {
    /// Taken as TLS 1.2, the oldest version that the server speaks.
    #[value(name = "VersionTLS10")]
    VersionTLS10,
    /// Taken as TLS 1.2, too.
    #[value(name = "VersionTLS11")]
    VersionTLS11,
    /// TLS 1.2.
    #[value(name = "VersionTLS12")]
    VersionTLS12,
    /// TLS 1.3.
    #[value(name = "VersionTLS13")]
    VersionTLS13,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// One JSON object on each line.
    Json,
}
