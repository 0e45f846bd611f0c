//! The rules of each kind: defaults, preparation, validation. Each kind has a file with small pure functions and a
//! static [`Strategy`] that names them; rules that many kinds share are in [`crate::rules`].
//!
//! Types, merge rules and encodings are not here: they follow from the catalogue.

pub mod admission;
mod admission_binding;
mod admission_expressions;
mod admission_policy;
mod admission_rules;
mod api_service;
pub mod capabilities;
pub mod certificate;
mod configmap;
mod controller_revision;
pub mod conversion;
mod cron_job;
mod csi;
pub mod custom_resource_definition;
mod daemon_set;
mod deployment;
mod device;
mod device_class;
mod endpoint_slice;
mod endpoints;
mod event;
pub mod expiry;
mod flow_schema;
pub mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod lease;
mod limit_range;
pub mod namespace;
mod network_policy;
mod node;
mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
mod pod_disruption_budget;
mod pod_template;
pub mod priority_class;
mod priority_level;
mod rbac;
mod replica_set;
mod replication_controller;
mod resource_claim;
mod resource_quota;
mod resource_slice;
mod runtime_class;
mod secret;
mod service;
mod service_account;
mod service_addresses;
pub mod service_allocation;
mod service_change;
mod service_cidr;
mod stateful_set;
mod storage_class;
mod templates;
mod volume_source;
mod webhook;

use crate::rules::Strategy;

/// Returns the strategy of a resource; resources without rules of their own get [`Strategy::DEFAULT`].
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
        ("", "pods") => &pod::STRATEGY,
        ("", "podtemplates") => &pod_template::STRATEGY,
        ("", "replicationcontrollers") => &replication_controller::STRATEGY,
        ("", "resourcequotas") => &resource_quota::STRATEGY,
        ("", "secrets") => &secret::STRATEGY,
        ("", "serviceaccounts") => &service_account::STRATEGY,
        ("", "services") => &service::STRATEGY,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => &admission_policy::MUTATING,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings") => &admission_binding::MUTATING,
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => &webhook::MUTATING,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => &admission_policy::VALIDATING,
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => &admission_binding::VALIDATING,
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => &webhook::VALIDATING,
        ("apiextensions.k8s.io", "customresourcedefinitions") => &custom_resource_definition::STRATEGY,
        ("apiregistration.k8s.io", "apiservices") => &api_service::STRATEGY,
        ("apps", "controllerrevisions") => &controller_revision::STRATEGY,
        ("apps", "daemonsets") => &daemon_set::STRATEGY,
        ("apps", "deployments") => &deployment::STRATEGY,
        ("apps", "replicasets") => &replica_set::STRATEGY,
        ("apps", "statefulsets") => &stateful_set::STRATEGY,
        ("authentication.k8s.io", "token") => &service_account::TOKEN_REQUEST,
        ("autoscaling", "horizontalpodautoscalers") => &horizontal_pod_autoscaler::STRATEGY,
        ("batch", "cronjobs") => &cron_job::STRATEGY,
        ("batch", "jobs") => &job::STRATEGY,
        ("certificates.k8s.io", "certificatesigningrequests") => &certificate::STRATEGY,
        ("coordination.k8s.io", "leases") => &lease::STRATEGY,
        ("discovery.k8s.io", "endpointslices") => &endpoint_slice::STRATEGY,
        ("events.k8s.io", "events") => &event::STRATEGY_V1,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &flow_schema::STRATEGY,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => &priority_level::STRATEGY,
        ("networking.k8s.io", "ingressclasses") => &ingress::CLASS_STRATEGY,
        ("networking.k8s.io", "ingresses") => &ingress::STRATEGY,
        ("networking.k8s.io", "ipaddresses") => &service_cidr::ADDRESS_STRATEGY,
        ("networking.k8s.io", "networkpolicies") => &network_policy::STRATEGY,
        ("networking.k8s.io", "servicecidrs") => &service_cidr::STRATEGY,
        ("node.k8s.io", "runtimeclasses") => &runtime_class::STRATEGY,
        ("policy", "poddisruptionbudgets") => &pod_disruption_budget::STRATEGY,
        ("rbac.authorization.k8s.io", "clusterrolebindings") => &rbac::CLUSTER_ROLE_BINDING,
        ("rbac.authorization.k8s.io", "clusterroles") => &rbac::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io", "rolebindings") => &rbac::ROLE_BINDING,
        ("rbac.authorization.k8s.io", "roles") => &rbac::ROLE,
        ("resource.k8s.io", "deviceclasses") => &device_class::STRATEGY,
        ("resource.k8s.io", "resourceclaims") => &resource_claim::STRATEGY,
        ("resource.k8s.io", "resourceclaimtemplates") => &resource_claim::TEMPLATE,
        ("resource.k8s.io", "resourceslices") => &resource_slice::STRATEGY,
        ("scheduling.k8s.io", "priorityclasses") => &priority_class::STRATEGY,
        ("storage.k8s.io", "csidrivers") => &csi::DRIVER,
        ("storage.k8s.io", "csinodes") => &csi::NODE,
        ("storage.k8s.io", "csistoragecapacities") => &storage_class::CAPACITY,
        ("storage.k8s.io", "storageclasses") => &storage_class::STRATEGY,
        ("storage.k8s.io", "volumeattachments") => &csi::ATTACHMENT,
        ("storage.k8s.io", "volumeattributesclasses") => &storage_class::ATTRIBUTES,
        _ => &Strategy::DEFAULT,
    }
}

#[cfg(test)]
mod workload_tests;
