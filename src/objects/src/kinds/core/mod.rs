//! The kinds of the core group, and those of `events.k8s.io` and `authentication.k8s.io`, which belong to its objects.

pub mod capabilities;
mod component_status;
pub mod configmap;
pub mod endpoints;
pub mod event;
mod limit_range;
pub mod namespace;
mod node;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub mod service;
mod service_account;
pub mod volume_source;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "componentstatuses" => &component_status::STRATEGY,
        "configmaps" => &configmap::STRATEGY,
        "endpoints" => &endpoints::STRATEGY,
        "events" => &event::STRATEGY,
        "limitranges" => &limit_range::STRATEGY,
        "namespaces" => &namespace::STRATEGY,
        "nodes" => &node::STRATEGY,
        "persistentvolumeclaims" => &persistent_volume_claim::STRATEGY,
        "persistentvolumes" => &persistent_volume::STRATEGY,
        "pods" => &pod::STRATEGY,
        "podtemplates" => &pod_template::STRATEGY,
        "replicationcontrollers" => &replication_controller::STRATEGY,
        "resourcequotas" => &resource_quota::STRATEGY,
        "secrets" => &secret::STRATEGY,
        "serviceaccounts" => &service_account::STRATEGY,
        "services" => &service::STRATEGY,
        _ => return None,
    })
}

/// Returns the strategy of a resource of `events.k8s.io`. `None` if the resource has no rules of its own.
pub(super) fn event_strategy(resource: &str) -> Option<&'static Strategy> {
    (resource == "events").then_some(&event::STRATEGY_V1)
}

/// Returns the strategy of a subresource of `authentication.k8s.io`. `None` if it has no rules of its own.
pub(super) fn token_strategy(subresource: &str) -> Option<&'static Strategy> {
    (subresource == "token").then_some(&service_account::TOKEN_REQUEST)
}
