//! The printers of built-in resources.

use std::borrow::Cow;

use flotilla_proto::schema::Column;

use super::table::Printer;
use super::{
    access, admission, autoscalers, config, devices, events, flow, jobs, networking, nodes, pods, services, storage,
    workloads,
};

/// The printer of kinds that show only name and time of creation.
const PLAIN: Printer = Printer { null_when_empty: true, ..Printer::of(config::name_and_creation) };

const POD: Printer = Printer { completion: pods::completion, reads: pods::READS, ..Printer::of(pods::pod) };

const FLOW_SCHEMA: Printer = Printer { order: Some(flow::by_precedence), ..Printer::of(flow::flow_schema) };

const API_SERVICE: Printer = Printer { repeats_columns: true, ..Printer::of(admission::api_service) };

static SCALE: Printer = Printer::of(workloads::scale);

/// Group, resource and printer, sorted.
static PRINTERS: &[(&str, &str, Printer)] = &[
    ("", "componentstatuses", Printer::of(nodes::component_status)),
    ("", "configmaps", Printer::of(config::config_map)),
    ("", "endpoints", Printer::of(services::endpoints)),
    ("", "events", Printer::of(events::event)),
    ("", "limitranges", PLAIN),
    ("", "namespaces", Printer::of(config::namespace)),
    ("", "nodes", Printer::of(nodes::node)),
    ("", "persistentvolumeclaims", Printer::of(storage::claim)),
    ("", "persistentvolumes", Printer::of(storage::volume)),
    ("", "pods", POD),
    ("", "podtemplates", Printer::of(pods::pod_template)),
    ("", "replicationcontrollers", Printer::of(workloads::replication_controller)),
    ("", "resourcequotas", Printer::of(config::resource_quota)),
    ("", "secrets", Printer::of(config::secret)),
    ("", "serviceaccounts", Printer::of(config::name_and_age)),
    ("", "services", Printer::of(services::service)),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", Printer::of(admission::mutating_policy)),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", Printer::of(admission::policy_binding)),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", Printer::of(admission::webhooks)),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", Printer::of(admission::validating_policy)),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", Printer::of(admission::policy_binding)),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", Printer::of(admission::webhooks)),
    ("apiextensions.k8s.io", "customresourcedefinitions", PLAIN),
    ("apiregistration.k8s.io", "apiservices", API_SERVICE),
    ("apps", "controllerrevisions", Printer::of(workloads::controller_revision)),
    ("apps", "daemonsets", Printer::of(workloads::daemon_set)),
    ("apps", "deployments", Printer::of(workloads::deployment)),
    ("apps", "replicasets", Printer::of(workloads::replica_set)),
    ("apps", "statefulsets", Printer::of(workloads::stateful_set)),
    ("autoscaling", "horizontalpodautoscalers", Printer::of(autoscalers::autoscaler)),
    ("batch", "cronjobs", Printer::of(jobs::cron_job)),
    ("batch", "jobs", Printer::of(jobs::job)),
    ("certificates.k8s.io", "certificatesigningrequests", Printer::of(access::certificate_request)),
    ("coordination.k8s.io", "leases", Printer::of(config::lease)),
    ("discovery.k8s.io", "endpointslices", Printer::of(services::endpoint_slice)),
    ("events.k8s.io", "events", Printer::of(events::event)),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", FLOW_SCHEMA),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", Printer::of(flow::priority_level)),
    ("networking.k8s.io", "ingressclasses", Printer::of(networking::ingress_class)),
    ("networking.k8s.io", "ingresses", Printer::of(networking::ingress)),
    ("networking.k8s.io", "ipaddresses", Printer::of(networking::ip_address)),
    ("networking.k8s.io", "networkpolicies", Printer::of(networking::network_policy)),
    ("networking.k8s.io", "servicecidrs", Printer::of(networking::service_cidr)),
    ("node.k8s.io", "runtimeclasses", Printer::of(nodes::runtime_class)),
    ("policy", "poddisruptionbudgets", Printer::of(workloads::disruption_budget)),
    ("rbac.authorization.k8s.io", "clusterrolebindings", Printer::of(access::binding)),
    ("rbac.authorization.k8s.io", "clusterroles", PLAIN),
    ("rbac.authorization.k8s.io", "rolebindings", Printer::of(access::binding)),
    ("rbac.authorization.k8s.io", "roles", PLAIN),
    ("resource.k8s.io", "deviceclasses", Printer::of(config::name_and_age)),
    ("resource.k8s.io", "resourceclaims", Printer::of(devices::claim)),
    ("resource.k8s.io", "resourceclaimtemplates", Printer::of(config::name_and_age)),
    ("resource.k8s.io", "resourceslices", Printer::of(devices::slice)),
    ("scheduling.k8s.io", "priorityclasses", Printer::of(nodes::priority_class)),
    ("storage.k8s.io", "csidrivers", Printer::of(storage::csi_driver)),
    ("storage.k8s.io", "csinodes", Printer::of(storage::csi_node)),
    ("storage.k8s.io", "csistoragecapacities", PLAIN),
    ("storage.k8s.io", "storageclasses", Printer::of(storage::storage_class)),
    ("storage.k8s.io", "volumeattachments", Printer::of(storage::attachment)),
    ("storage.k8s.io", "volumeattributesclasses", Printer::of(storage::attributes_class)),
];

/// Resources whose `/status` has no table.
const WITHOUT_STATUS: [(&str, &str); 3] = [
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("resource.k8s.io", "resourceclaims"),
];

/// Returns the printer of a built-in resource, for objects of any version. Returns `None` if the resource has no table;
/// the server then answers with 406.
pub fn printer(group: &str, resource: &str) -> Option<&'static Printer> {
    let at = PRINTERS.binary_search_by(|(g, r, _)| (*g, *r).cmp(&(group, resource))).ok()?;
    Some(&PRINTERS[at].2)
}

/// Returns the printer of a subresource: that of the resource, except for `scale`. Returns `None` if the subresource
/// has no table.
pub fn subresource_printer(group: &str, resource: &str, subresource: &str) -> Option<&'static Printer> {
    match subresource {
        "status" if !WITHOUT_STATUS.contains(&(group, resource)) => printer(group, resource),
        "scale" => Some(&SCALE),
        _ => None,
    }
}

/// The columns of a `Scale`, which belongs to no resource of its own.
pub static SCALE_COLUMNS: &[Column] = &[
    column("Name", "string", "Name of the scaled object."),
    column("Desired", "integer", "Replicas asked for."),
    column("Available", "integer", "Replicas observed."),
    column("Age", "string", "Time since the object was created."),
];

/// The columns of the Scale of any custom resource.
pub static CUSTOM_SCALE_COLUMNS: &[Column] = &[
    formatted("Name", "string", "name", "Name of the scaled object."),
    column("Desired", "integer", "Replicas asked for."),
    column("Available", "integer", "Replicas observed."),
    column("Age", "date", "When the object was created."),
];

const fn column(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    formatted(name, kind, "", description)
}

const fn formatted(name: &'static str, kind: &'static str, format: &'static str, description: &'static str) -> Column {
    Column {
        name: Cow::Borrowed(name),
        kind: Cow::Borrowed(kind),
        format: Cow::Borrowed(format),
        priority: 0,
        description: Cow::Borrowed(description),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printers_are_sorted_and_found() {
        assert!(PRINTERS.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        for (group, resource, _) in PRINTERS {
            assert!(printer(group, resource).is_some());
        }
        assert!(printer("authorization.k8s.io", "subjectaccessreviews").is_none());
        assert!(subresource_printer("apps", "deployments", "status").is_some());
        assert!(subresource_printer("", "pods", "ephemeralcontainers").is_none());
        assert!(subresource_printer("apiregistration.k8s.io", "apiservices", "status").is_none());
    }
}
