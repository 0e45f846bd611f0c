//! Admission of pods: service account, priority, tolerations, runtime class, and labels copied from the node.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use super::super::create::suffix;
use super::{Request, nodes, pod_security};
use crate::kinds::admission;
use crate::status::{ApiError, ApiResult};

/// The service account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// Lists of containers whose resources a resize can change.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Admits a new pod. Plugins run in this order: LimitRanger, ServiceAccount, NodeRestriction, Priority,
/// DefaultTolerationSeconds, RuntimeClass, PodTopologyLabels.
pub(super) fn create(request: &Request<'_>, pod: &mut Value) -> ApiResult<()> {
    request.by("LimitRanger", || {
        request.limit_ranges()?.iter().for_each(|range| admission::set_default_resources(pod, range));
        Ok(())
    })?;
    request.by("ServiceAccount", || account(request, pod))?;
    nodes::restrict(request, Some(pod), None)?;
    request.by("Priority", || priority(request, pod))?;
    request.by("DefaultTolerationSeconds", || {
        admission::tolerate_lost_nodes(pod);
        Ok(())
    })?;
    request.by("RuntimeClass", || {
        let class = runtime_class(request, pod)?;
        admission::set_runtime_class(pod, class.as_ref()).map_err(|why| request.refuse(pod, &why))
    })?;
    request.by("PodTopologyLabels", || topology(request, pod))
}

/// Copies the topology labels of the node to a pod that is already bound to it.
fn topology(request: &Request<'_>, pod: &mut Value) -> ApiResult<()> {
    let node = pod.str_at(&["spec", "nodeName"]);
    if !node.is_empty()
        && let Some(node) = request.registry.look_up("", "nodes", "", node)?
    {
        admission::copy_topology_labels(pod, &node);
    }
    Ok(())
}

/// Admits an updated pod.
pub(super) fn update(request: &Request<'_>, pod: &mut Value, old: &Value) -> ApiResult<()> {
    if !request.target.subresource.is_empty() {
        return Ok(());
    }
    request.by("Priority", || {
        admission::keep_priority(pod, old);
        Ok(())
    })?;
    request.by("DefaultTolerationSeconds", || {
        admission::tolerate_lost_nodes(pod);
        Ok(())
    })
}

/// Refuses a finished pod that violates the pod security standard of its namespace. Checks limits and the overhead of
/// the runtime class on a create only, as both are fixed from then on.
pub(super) fn finished(request: &Request<'_>, pod: &Value, old: Option<&Value>) -> ApiResult<()> {
    if old.is_some() {
        return pod_security::pod(request, pod, old);
    }
    request.by("LimitRanger", || {
        let ranges = request.limit_ranges()?;
        let checked = ranges.iter().try_for_each(|range| admission::check_pod_limits(pod, range));
        checked.map_err(|why| request.refuse(pod, &why))
    })?;
    pod_security::pod(request, pod, None)?;
    request.by("RuntimeClass", || {
        let class = runtime_class(request, pod)?;
        admission::check_overhead(pod, class.as_ref()).map_err(|why| request.refuse(pod, &why))
    })
}

fn account(request: &Request<'_>, pod: &mut Value) -> ApiResult<()> {
    if admission::is_mirror_pod(pod) {
        return admission::check_mirror_pod(pod).map_err(|why| request.refuse(pod, &why));
    }
    let named = match pod.str_at(&["spec", "serviceAccountName"]) {
        "" => DEFAULT_ACCOUNT,
        name => name,
    };
    let (registry, namespace) = (request.registry, request.target.namespace);
    let mut account = registry.look_up("", "serviceaccounts", namespace, named)?;
    if account.is_none() && named == DEFAULT_ACCOUNT && !registry.accounts_are_made {
        account = Some(Value::object());
    }
    admission::set_service_account(pod, namespace, &suffix(), |_| account).map_err(|why| request.refuse(pod, &why))
}

fn priority(request: &Request<'_>, pod: &mut Value) -> ApiResult<()> {
    let (group, resource) = ("scheduling.k8s.io", "priorityclasses");
    let set = match pod.str_at(&["spec", "priorityClassName"]) {
        "" => {
            // Only the default class is needed.
            let is_default = "\"globalDefault\":true";
            let classes = request.registry.look_up_mentioning(group, resource, Scope::All, is_default)?;
            admission::set_priority(pod, None, classes.iter())
        }
        name => {
            let class = request.registry.look_up(group, resource, "", name)?;
            admission::set_priority(pod, class.as_ref(), std::iter::empty())
        }
    };
    set.map_err(|why| request.refuse(pod, &why))
}

fn runtime_class(request: &Request<'_>, pod: &Value) -> ApiResult<Option<Value>> {
    match pod.at(&["spec", "runtimeClassName"]).as_str() {
        Some("") => Err(ApiError::unknown("resource name may not be empty")),
        Some(name) => request.registry.look_up("node.k8s.io", "runtimeclasses", "", name),
        None => Ok(None),
    }
}

/// Refuses a resize when the pod's node does not declare that it supports it, so the node must be known (KEP-5328).
pub(super) fn resized(request: &Request<'_>, pod: &Value, old: &Value) -> ApiResult<()> {
    pod_security::pod(request, pod, Some(old))?;
    request.by("NodeDeclaredFeatureValidator", || node_of_resized(request, pod, old))
}

fn node_of_resized(request: &Request<'_>, pod: &Value, old: &Value) -> ApiResult<()> {
    let node = old.str_at(&["spec", "nodeName"]);
    let resources = |pod: &Value| -> Vec<Value> {
        LISTS.iter().flat_map(|list| pod.list_at(&["spec", list])).map(|c| c.at(&["resources"]).clone()).collect()
    };
    if node.is_empty() || resources(pod) == resources(old) || request.registry.look_up("", "nodes", "", node)?.is_some()
    {
        return Ok(());
    }
    Err(request.refuse(pod, &format!("node {} not found", crate::field::quote(node))))
}
