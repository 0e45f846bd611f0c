//! Bootstrap objects: the objects that exist from the first start, their content, and how a later start reconciles
//! them.
//!
//! [`objects`] lists them in an order in which each can be created. They have only the fields that a client would send;
//! the registry adds the rest (UID, times, generation, managed fields, defaults). The content follows Kubernetes 1.36:
//! RBAC defaults ("Using RBAC Authorization", default roles), API priority and fairness defaults (KEP-1040), and the
//! Service `kubernetes`.

mod api_services;
mod cluster;
mod flow;
mod renewal;
mod roles;
mod seeding;
mod trust;

use flotilla_proto::value::Value;

use crate::embedded::TextError;

use crate::enablement::Enablement;
pub use api_services::local_api_service;

pub use cluster::{LEGACY_TOKEN_TRACKING, endpoints, published};
pub use flow::{GROUP as FLOW_GROUP, dangling};
pub use renewal::{ReconcileRule, ReconcileTrigger, Renewal, claims_upkeep};
pub use roles::node_role;
pub use seeding::{SeedError, ensure, renew, seed, was_seeded};

/// The manager under which most of these objects are written.
pub const MANAGER: &str = "kube-apiserver";
/// The manager that creates flow schemas and priority levels.
pub const FLOW_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
/// The manager that applies the status of flow schemas.
pub const FLOW_STATUS_MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The manager that applies the status of service CIDRs.
pub const SERVICE_CIDR_STATUS_MANAGER: &str = "kubernetes-service-cidr-controller";
/// The manager that applies the rules of aggregated cluster roles.
pub const AGGREGATION_MANAGER: &str = "clusterrole-aggregation-controller";

/// The configuration that these objects depend on.
#[derive(Debug, Clone)]
pub struct BootstrapInput {
    /// Ranges of service addresses, the primary family's first, as `10.96.0.0/16`.
    pub service_cidrs: Vec<String>,
    /// The port on which servers listen.
    pub port: u16,
    /// PEM bundle that verifies client certificates.
    pub client_ca: Option<String>,
    /// How a front proxy is recognised. `None` without one.
    pub front_proxy: Option<FrontProxy>,
    /// Which built-in APIs are served to clients.
    pub enablement: Enablement,
    /// The present time, RFC 3339 in whole seconds and UTC.
    pub now: String,
}

/// How requests of a front proxy are recognised (Kubernetes documentation, "Authenticating proxy").
#[derive(Debug, Clone, Default)]
pub struct FrontProxy {
    /// PEM bundle that verifies the proxy's certificate.
    pub ca: String,
    /// Common names that its certificate may have; any when empty.
    pub allowed_names: Vec<String>,
    /// Headers that hold the user's name.
    pub username_headers: Vec<String>,
    /// Headers that hold the user's UID.
    pub uid_headers: Vec<String>,
    /// Headers that hold groups.
    pub group_headers: Vec<String>,
    /// Prefixes of headers that hold extra attributes.
    pub extra_prefixes: Vec<String>,
}

/// An object that exists from the start.
#[derive(Debug, Clone)]
pub struct BootstrapObject {
    /// API group.
    pub group: &'static str,
    /// Version in which the object is written here.
    pub version: &'static str,
    /// Plural resource name.
    pub resource: &'static str,
    /// The object as it is sent to create it.
    pub object: Value,
    /// Manager of the creation; its operation is `Update`.
    pub manager: &'static str,
    /// The fields that a second manager applies right after creation. `None` if there are none.
    pub applied: Option<Applied>,
    /// How an existing object is reconciled.
    pub rule: ReconcileRule,
    /// When it is reconciled.
    pub trigger: ReconcileTrigger,
}

/// A server-side apply that follows the creation of a [`BootstrapObject`].
#[derive(Debug, Clone)]
pub struct Applied {
    /// Field manager; its operation is `Apply`.
    pub manager: &'static str,
    /// `status`, or empty for the object itself.
    pub subresource: &'static str,
    /// Top-level fields that it applies, as an object of those fields.
    pub fields: Value,
}

impl BootstrapObject {
    fn new(group: &'static str, resource: &'static str, object: Value, rule: ReconcileRule) -> Self {
        let trigger = ReconcileTrigger::AtStart;
        Self { group, version: "v1", resource, object, manager: MANAGER, applied: None, rule, trigger }
    }

    /// Returns the same object with another trigger.
    fn reconciled(self, trigger: ReconcileTrigger) -> Self {
        Self { trigger, ..self }
    }
}

/// Returns all bootstrap objects, in an order in which each can be created.
///
/// # Errors
/// If the embedded tables do not parse, which the tests of this module exclude.
pub fn objects(input: &BootstrapInput) -> Result<Vec<BootstrapObject>, TextError> {
    let mut objects = Vec::with_capacity(256);
    objects.extend(cluster::namespaces());
    objects.extend(flow::objects(&input.now)?);
    objects.extend(cluster::service_cidr(input));
    objects.extend(cluster::priority_classes());
    objects.extend(cluster::config_maps(input));
    objects.extend(roles::objects()?);
    objects.extend(api_services::objects(input)?);
    objects.extend(cluster::kubernetes_service(input));
    // The server itself needs the objects of the core group, and the last object, which records that seeding was
    // complete.
    let is_needed = |of: &BootstrapObject| of.group.is_empty() || of.resource == seeding::LAST;
    objects.retain(|of| is_needed(of) || input.enablement.serves(of.group, of.version, of.resource));
    Ok(objects)
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
