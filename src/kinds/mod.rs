//! What is a kind's own: defaults, what may change, which values are valid. Small pure functions, a file a kind.
//!
//! Everything that follows from the catalogue (types, merge rules, encoding) is not here.

pub mod addresses;
mod configmap;
mod endpoints;
mod event;
pub mod key_pair;
pub mod labels;
mod limit_range;
pub mod metadata;
pub mod names;
pub mod namespace;
mod node;
pub mod node_selector;
mod persistent_volume;
pub mod persistent_volume_claim;
mod resource_quota;
pub mod resources;
mod secret;
mod service;
mod service_account;
mod service_addresses;
pub mod service_allocation;
mod service_change;
mod strategy;
mod volume_source;

pub use strategy::{Dependents, Generation, GraceSeconds, NameRule, Strategy};

/// The strategy of a resource; resources without rules of their own get [`Strategy::DEFAULT`].
pub fn strategy(group: &str, resource: &str) -> &'static Strategy {
    match (group, resource) {
        ("", "configmaps") => &configmap::STRATEGY,
        ("", "endpoints") => &endpoints::STRATEGY,
        ("", "events") => &event::STRATEGY,
        ("", "limitranges") => &limit_range::STRATEGY,
        ("", "namespaces") => &namespace::STRATEGY,
        ("", "nodes") => &node::STRATEGY,
        ("", "persistentvolumeclaims") => &persistent_volume_claim::STRATEGY,
        ("", "persistentvolumes") => &persistent_volume::STRATEGY,
        ("", "resourcequotas") => &resource_quota::STRATEGY,
        ("", "secrets") => &secret::STRATEGY,
        ("", "serviceaccounts") => &service_account::STRATEGY,
        ("", "services") => &service::STRATEGY,
        ("events.k8s.io", "events") => &event::STRATEGY_V1,
        _ => &Strategy::DEFAULT,
    }
}
