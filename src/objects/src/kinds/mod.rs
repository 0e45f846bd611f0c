//! The rules of each kind: defaults, preparation, validation. Each API group has a folder, and each kind a file with
//! small pure functions and a static [`Strategy`] that names them; rules that many kinds share are in [`crate::rules`].
//! The strategy also names the kind's printer, its conversions and its protection; `docs/decisions/strategies.md` names
//! the rules that are elsewhere.
//!
//! Types, merge rules and encodings are not here: they follow from the catalogue.

pub mod admission;
mod admissionregistration;
pub mod apiextensions;
mod apiregistration;
mod apiserverinternal;
mod apps;
mod autoscaling;
mod batch;
pub mod certificates;
mod coordination;
pub mod core;
mod discovery;
pub mod expiry;
mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
mod replicas;
pub mod resource;
pub mod scheduling;
mod storage;
mod templates;

use crate::rules::Strategy;

/// Returns the strategy of a resource. Resources without rules of their own have [`Strategy::DEFAULT`].
pub fn strategy(group: &str, resource: &str) -> &'static Strategy {
    let strategy = match group {
        "" => self::core::strategy(resource),
        "admissionregistration.k8s.io" => admissionregistration::strategy(resource),
        "apiextensions.k8s.io" => apiextensions::strategy(resource),
        "apiregistration.k8s.io" => apiregistration::strategy(resource),
        "apps" => apps::strategy(resource),
        "authentication.k8s.io" => self::core::token_strategy(resource),
        "autoscaling" => autoscaling::strategy(resource),
        "batch" => batch::strategy(resource),
        "certificates.k8s.io" => certificates::strategy(resource),
        "coordination.k8s.io" => coordination::strategy(resource),
        "discovery.k8s.io" => discovery::strategy(resource),
        "events.k8s.io" => self::core::event_strategy(resource),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::strategy(resource),
        "internal.apiserver.k8s.io" => apiserverinternal::strategy(resource),
        "networking.k8s.io" => networking::strategy(resource),
        "node.k8s.io" => node::strategy(resource),
        "policy" => policy::strategy(resource),
        "rbac.authorization.k8s.io" => rbac::strategy(resource),
        "resource.k8s.io" => self::resource::strategy(resource),
        "scheduling.k8s.io" => scheduling::strategy(resource),
        "storage.k8s.io" => storage::strategy(resource),
        _ => None,
    };
    strategy.unwrap_or(&Strategy::DEFAULT)
}

#[cfg(test)]
mod printing_tests;
#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod workload_tests;
