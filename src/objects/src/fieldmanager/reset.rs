//! Lists the fields that an endpoint does not write. A request through it therefore does not become their owner.

/// Paths of fields, each with everything below it.
type FieldPaths = &'static [&'static [&'static str]];

const STATUS: FieldPaths = &[&["status"]];
const SPEC: FieldPaths = &[&["spec"]];
const SPEC_AND_METADATA: FieldPaths = &[&["spec"], &["metadata"]];

/// Returns the fields that writes of a custom resource, or of a subresource of it, leave as they are. `status` says
/// whether the resource has that subresource.
pub fn custom_reset_fields(status: bool, subresource: &str) -> FieldPaths {
    match subresource {
        "" if status => STATUS,
        "status" => SPEC_AND_METADATA,
        _ => &[],
    }
}

/// Returns the fields that writes of a built-in resource, or of a subresource of it, leave as they are.
pub fn reset_fields(group: &str, resource: &str, subresource: &str) -> FieldPaths {
    match (subresource, group, resource) {
        ("" | "finalize", _, _) if resets_status(group, resource) => STATUS,
        ("", "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status"]],
        ("status", "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status", "conditions"]],
        ("approval", "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status", "certificate"]],
        ("status", "certificates.k8s.io", "podcertificaterequests") => SPEC,
        ("status", "apps", "deployments") => &[&["spec"], &["metadata", "labels"]],
        ("status", "", "pods") => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        (
            "status",
            "admissionregistration.k8s.io"
            | "apiregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "internal.apiserver.k8s.io"
            | "resource.k8s.io"
            | "scheduling.k8s.io"
            | "storage.k8s.io"
            | "storagemigration.k8s.io",
            _,
        )
        | ("status", "networking.k8s.io", "servicecidrs") => SPEC_AND_METADATA,
        ("status", _, _) if resets_status(group, resource) => SPEC,
        _ => &[],
    }
}

/// Returns whether writes of the object itself leave the status as it is.
fn resets_status(group: &str, resource: &str) -> bool {
    match group {
        "" => matches!(
            resource,
            "namespaces"
                | "nodes"
                | "persistentvolumeclaims"
                | "persistentvolumes"
                | "pods"
                | "replicationcontrollers"
                | "resourcequotas"
                | "services"
        ),
        "apps" => matches!(resource, "daemonsets" | "deployments" | "replicasets" | "statefulsets"),
        "admissionregistration.k8s.io" => resource == "validatingadmissionpolicies",
        "apiextensions.k8s.io" => resource == "customresourcedefinitions",
        "apiregistration.k8s.io" => resource == "apiservices",
        "autoscaling" => resource == "horizontalpodautoscalers",
        "batch" => matches!(resource, "cronjobs" | "jobs"),
        "flowcontrol.apiserver.k8s.io" => matches!(resource, "flowschemas" | "prioritylevelconfigurations"),
        "internal.apiserver.k8s.io" => resource == "storageversions",
        "networking.k8s.io" => matches!(resource, "ingresses" | "servicecidrs"),
        "policy" => resource == "poddisruptionbudgets",
        "resource.k8s.io" => matches!(resource, "devicetaintrules" | "resourceclaims" | "resourcepoolstatusrequests"),
        "scheduling.k8s.io" => resource == "podgroups",
        "storage.k8s.io" => resource == "volumeattachments",
        "storagemigration.k8s.io" => resource == "storageversionmigrations",
        _ => false,
    }
}
