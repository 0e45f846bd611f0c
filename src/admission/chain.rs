//! The admission plugins of Kubernetes 1.36 in their order, and the selection of those that concern a resource.

use super::plugin::{DecidesBy, Mutating, Plugin, PluginStep, Presence, ResourcePart, Validating};
use super::plugins::{
    always_deny, always_pull_images, certificate_approval, certificate_signing, certificate_subject_restriction,
    default_ingress_class, default_storage_class, default_toleration_seconds, deny_service_external_ips,
    event_rate_limit, extended_resource_toleration, image_policy_webhook, limit_pod_hard_anti_affinity_topology,
    limit_ranger, namespace_auto_provision, namespace_exists, namespace_lifecycle, node_declared_feature_validator,
    node_restriction, owner_references_permission_enforcement, persistent_volume_claim_resize, pod_node_selector,
    pod_resize_validator, pod_security, pod_toleration_restriction, pod_topology_labels, priority, resource_quota,
    runtime_class, service_account, storage_object_in_use_protection, taint_nodes_by_condition,
};
use super::{Admission, Operation, mutating, validating, webhooks};
use crate::rules::plugins::{ByOperation, Concerned, PluginSet, Steps};
use crate::served::Served;
use crate::tables::Target;

/// All plugins, in the order in which they run.
pub static CHAIN: [Plugin; 41] = [
    Plugin::idle("AlwaysAdmit"),
    namespace_auto_provision::PLUGIN,
    namespace_lifecycle::PLUGIN,
    namespace_exists::PLUGIN,
    limit_pod_hard_anti_affinity_topology::PLUGIN,
    limit_ranger::PLUGIN,
    service_account::PLUGIN,
    node_restriction::PLUGIN,
    taint_nodes_by_condition::PLUGIN,
    always_pull_images::PLUGIN,
    image_policy_webhook::PLUGIN,
    pod_security::PLUGIN,
    pod_node_selector::PLUGIN,
    priority::PLUGIN,
    default_toleration_seconds::PLUGIN,
    pod_toleration_restriction::PLUGIN,
    event_rate_limit::PLUGIN,
    extended_resource_toleration::PLUGIN,
    default_storage_class::PLUGIN,
    storage_object_in_use_protection::PLUGIN,
    Plugin::idle("PodGroupProtection"),
    owner_references_permission_enforcement::PLUGIN,
    persistent_volume_claim_resize::PLUGIN,
    runtime_class::PLUGIN,
    certificate_approval::PLUGIN,
    certificate_signing::PLUGIN,
    Plugin::idle("ClusterTrustBundleAttest"),
    certificate_subject_restriction::PLUGIN,
    default_ingress_class::PLUGIN,
    deny_service_external_ips::PLUGIN,
    pod_topology_labels::PLUGIN,
    Plugin::idle("PodGroupWorkloadExists"),
    node_declared_feature_validator::PLUGIN,
    Plugin::idle("JobValidation"),
    pod_resize_validator::PLUGIN,
    mutating::PLUGIN,
    webhooks::MUTATING,
    validating::PLUGIN,
    webhooks::VALIDATING,
    resource_quota::PLUGIN,
    always_deny::PLUGIN,
];

const _: () = assert!(CHAIN.len() <= PluginSet::ROOM);

/// Returns the presence of the plugin of this name. Returns `None` if Kubernetes has no plugin of this name.
pub fn find(name: &str) -> Option<Presence> {
    CHAIN.iter().find(|plugin| plugin.name == name).map(|plugin| plugin.presence)
}

/// The plugins that the configuration enabled and disabled.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    enabled: Vec<String>,
    disabled: Vec<String>,
}

impl Switches {
    /// Returns the default plugins with `enabled` added and `disabled` removed.
    pub fn new(enabled: &[String], disabled: &[String]) -> Self {
        Self { enabled: enabled.to_vec(), disabled: disabled.to_vec() }
    }

    /// Returns whether a plugin is on.
    pub fn is_on(&self, plugin: &Plugin) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| name == plugin.name);
        match plugin.presence {
            Presence::On => !is_in(&self.disabled),
            Presence::Off => is_in(&self.enabled) && !is_in(&self.disabled),
            Presence::Always => true,
        }
    }

    /// Returns the plugins that concern a resource.
    fn concerned(&self, served: &Served) -> Concerned {
        let steps = |subresource: &str| self.by_operation(ResourcePart { served, subresource });
        let parts = served.resource.subresources.iter().map(|part| (part.name.clone(), steps(&part.name)));
        Concerned { own: steps(""), parts: parts.collect() }
    }

    fn by_operation(&self, part: ResourcePart<'_>) -> ByOperation {
        let mut all = ByOperation::default();
        for operation in [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect] {
            let steps = &mut all[operation as usize];
            for (position, plugin) in CHAIN.iter().enumerate().filter(|(_, plugin)| self.is_on(plugin)) {
                // Plugins that ask outside have an index of their own, which changes.
                let mutating = plugin.mutating.and_then(|PluginStep { decides_by, run }| match run {
                    Mutating::First(_) => Some((decides_by, &mut steps.first)),
                    Mutating::Within(_) => Some((decides_by, &mut steps.mutating)),
                    Mutating::Outside(_) => None,
                });
                if let Some((decides_by, set)) = mutating
                    && let Some(by) = decides_by(part, operation)
                {
                    set.insert(position);
                    decide(steps, position, by);
                }
                let validating = plugin.validating.and_then(|PluginStep { decides_by, run }| match run {
                    Validating::Within(_) | Validating::Asking(_) => Some((decides_by, &mut steps.validating)),
                    Validating::Last(_) => Some((decides_by, &mut steps.last)),
                    Validating::Outside(_) => None,
                });
                if let Some((decides_by, set)) = validating
                    && let Some(by) = decides_by(part, operation)
                {
                    set.insert(position);
                    decide(steps, position, by);
                }
            }
        }
        all
    }
}

/// Notes the basis of a step's decision.
const fn decide(steps: &mut Steps, position: usize, by: DecidesBy) {
    match by {
        DecidesBy::Object => {}
        DecidesBy::Outside => steps.by_outside = true,
        DecidesBy::Tables => steps.by_tables = true,
        DecidesBy::TablesFor(_) => steps.by_tables_for_some.insert(position),
    }
}

impl Admission {
    /// Returns the steps of the plugins within the server that concern an operation. The first call for a resource
    /// selects them by the switches that are set then.
    pub(super) fn steps<'a>(&self, target: Target<'a>, operation: Operation) -> &'a Steps {
        let concerned = target.served.plugins.get_or_init(|| self.plugins.concerned(target.served));
        concerned.of(target.subresource).map_or(Steps::NONE, |steps| &steps[operation as usize])
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
