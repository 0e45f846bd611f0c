//! The usage of one object: the amounts that quotas count.

use std::collections::BTreeMap;

use flotilla_proto::quantity::Quantity;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::Usage;
use super::names::{IMPLICIT_CLASS, OF_DEVICE_CLASS, OF_STORAGE_CLASS, PLAIN};
use crate::kinds::core::pod::resources::quantities::{Amounts, is_sidecar, together, with_own};
use crate::rules::resources::{amount, is_extended, is_huge_pages};

/// The number of devices that a request for all matching devices is charged for.
const DEVICES_MAX: i64 = 32;
/// The annotation that stated the class of a claim before the field existed.
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Returns the usage of an object.
pub(super) fn of(group: &str, resource: &str, object: &Value, now: Timestamp) -> Usage {
    let mut usage = Usage::new();
    let counted = if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") };
    usage.insert(counted, Quantity::from_int(1));
    if (group, resource) == ("", "pods") && is_over(object, now) {
        return usage;
    }
    if group.is_empty() && PLAIN.contains(&resource) {
        usage.insert(resource.to_owned(), Quantity::from_int(1));
    }
    match (group, resource) {
        ("", "pods") => of_pod(object, &mut usage),
        ("", "persistentvolumeclaims") => of_claim(object, &mut usage),
        ("", "services") => of_service(object, &mut usage),
        ("resource.k8s.io", "resourceclaims") => of_devices(object, &mut usage),
        _ => {}
    }
    usage
}

/// Returns whether a pod has no usage any more: it has ended, or the grace period of its deletion is over.
fn is_over(pod: &Value, now: Timestamp) -> bool {
    let ended = matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded");
    ended || ends_at("", "pods", pod).is_some_and(|end| end.seconds < now.seconds)
}

/// Returns the time at which the usage of an object ends without any further write: for a deleted pod, the end of its
/// grace period. `None` for all other objects.
pub fn ends_at(group: &str, resource: &str, object: &Value) -> Option<Timestamp> {
    if (group, resource) != ("", "pods") {
        return None;
    }
    let deleted = Timestamp::parse(object.str_at(&["metadata", "deletionTimestamp"])).ok()?;
    let grace = object.int_at(&["metadata", "deletionGracePeriodSeconds"])?;
    Some(Timestamp { seconds: deleted.seconds.saturating_add(grace), ..deleted })
}

fn of_pod(pod: &Value, usage: &mut Usage) {
    let (requests, limits) = (of_whole_pod(pod, "requests"), of_whole_pod(pod, "limits"));
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(requested) = requests.get(name) {
            usage.insert(name.to_owned(), requested.clone());
            usage.insert(format!("requests.{name}"), requested.clone());
        }
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, requested) in requests.iter() {
        if is_huge_pages(name) {
            usage.insert(name.to_owned(), requested.clone());
        }
        if is_huge_pages(name) || is_extended(name) || name.starts_with(IMPLICIT_CLASS) {
            usage.insert(format!("requests.{name}"), requested.clone());
        }
    }
}

/// Returns the requests or limits of a pod: those that the pod itself states, else the sum over its containers, plus
/// its overhead.
fn of_whole_pod(pod: &Value, which: &str) -> Amounts {
    let Some(spec) = pod.map_at(&["spec"]) else { return Amounts::default() };
    let is_infeasible = pod.list_at(&["status", "conditions"]).iter().any(|condition| {
        condition.str_at(&["type"]) == "PodResizePending" && condition.str_at(&["reason"]) == "Infeasible"
    });
    with_own(pod, together(spec, |container| of_container(pod, container, which, is_infeasible)), which)
}

/// Returns the requests or limits of a container: the larger of the spec and the status, since the container may be
/// about to be resized.
fn of_container(pod: &Value, container: &Value, which: &str, is_infeasible: bool) -> Amounts {
    let list = |list| {
        let mut amounts = Amounts::default();
        amounts.add_list(list);
        amounts
    };
    let stated = list(container.map_at(&["resources", which]));
    let is_first = pod.list_at(&["spec", "initContainers"]).iter().any(|first| std::ptr::eq(first, container));
    let statuses = if is_first { "initContainerStatuses" } else { "containerStatuses" };
    let mut statuses = pod.list_at(&["status", statuses]).iter();
    let name = container.str_at(&["name"]);
    let status = statuses.find(|status| status.str_at(&["name"]) == name);
    let status = status.filter(|status| !status.at(&["resources"]).is_null());
    let Some(status) = status.filter(|_| !is_first || is_sidecar(container)) else { return stated };
    let mut amounts = list(status.map_at(&["resources", which]));
    if which == "requests" {
        amounts.raise(&list(status.map_at(&["allocatedResources"])));
    }
    if !is_infeasible {
        amounts.raise(&stated);
    }
    amounts
}

fn of_claim(claim: &Value, usage: &mut Usage) {
    let class = match claim.map_at(&["metadata", "annotations"]).and_then(|all| all.get(STORAGE_CLASS)) {
        Some(class) => class.as_str().unwrap_or(""),
        None => claim.str_at(&["spec", "storageClassName"]),
    };
    if !class.is_empty() {
        usage.insert(format!("{class}{OF_STORAGE_CLASS}persistentvolumeclaims"), Quantity::from_int(1));
    }
    let requested = claim.at(&["spec", "resources", "requests", "storage"]);
    if requested.is_null() {
        return;
    }
    let allocated = amount(claim.at(&["status", "allocatedResources", "storage"]));
    let size = amount(requested);
    let size = whole(if allocated > size { allocated } else { size });
    if !class.is_empty() {
        usage.insert(format!("{class}{OF_STORAGE_CLASS}requests.storage"), size.clone());
    }
    usage.insert("requests.storage".into(), size);
}

/// Rounds up to whole bytes, which quotas count.
fn whole(size: Quantity) -> Quantity {
    if size.is_whole() { size } else { Quantity::from_int(size.value()) }
}

fn of_service(service: &Value, usage: &mut Usage) {
    let (mut balancers, mut ports) = (0, 0);
    let stated = service.list_at(&["spec", "ports"]);
    match service.str_at(&["spec", "type"]) {
        "NodePort" => ports = stated.len(),
        "LoadBalancer" => {
            balancers = 1;
            let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).as_bool() != Some(false);
            let has_port = |port: &&Value| port.int_at(&["nodePort"]).is_some_and(|port| port != 0);
            ports = if allocates { stated.len() } else { stated.iter().filter(has_port).count() };
        }
        _ => {}
    }
    usage.insert("services.loadbalancers".into(), Quantity::from_int(balancers));
    usage.insert("services.nodeports".into(), Quantity::from_int(i64::try_from(ports).unwrap_or(i64::MAX)));
}

/// Adds the number of devices that a claim may get, by class.
fn of_devices(claim: &Value, usage: &mut Usage) {
    let devices = |request: &Value| match request.str_at(&["allocationMode"]) {
        "ExactCount" => request.int_at(&["count"]).unwrap_or(0),
        "All" => DEVICES_MAX,
        _ => 0,
    };
    let mut total: BTreeMap<&str, i64> = BTreeMap::new();
    for request in claim.list_at(&["spec", "devices", "requests"]) {
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        // Only one of the alternatives is allocated.
        let exactly = request.get("exactly").into_iter().filter(|exactly| !exactly.is_null());
        for alternative in request.list_at(&["firstAvailable"]).iter().chain(exactly) {
            let class = most.entry(alternative.str_at(&["deviceClassName"])).or_default();
            *class = (*class).max(devices(alternative));
        }
        for (class, count) in most {
            *total.entry(class).or_default() += count;
        }
    }
    for (class, count) in total {
        usage.insert(format!("{class}{OF_DEVICE_CLASS}"), Quantity::from_int(count));
    }
}
