//! LimitRanges: default resources of containers that state none, and the bounds that each pod and claim must keep
//! (plugin LimitRanger).

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use crate::kinds::core::pod::resources::quantities::{Amounts, of_containers};

/// The annotation of a pod that lists the resources which the plugin added.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const LISTS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];
/// Amounts up to this are compared in thousandths, larger ones in units.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// Gives the containers of a new pod the defaults of a range.
pub fn set_default_resources(pod: &mut Value, range: &Value) {
    let (requests, limits) = (defaults(range, "defaultRequest"), defaults(range, "default"));
    let mut applied = Vec::new();
    let Some(spec) = pod.get_mut("spec") else { return };
    for (list, kind) in LISTS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container.str_at(&["name"]).to_owned();
            for (which, defaults, what) in [("requests", &requests, "request"), ("limits", &limits, "limit")] {
                let set = fill(container, which, defaults);
                if !set.is_empty() {
                    applied.push(format!("{} {what} for {kind} {name}", set.join(", ")));
                }
            }
        }
    }
    if !applied.is_empty() {
        pod.set_at(&["metadata", "annotations", ANNOTATION], format!("LimitRanger plugin set: {}", applied.join("; ")));
    }
}

/// Returns the defaults of a range for containers, sorted by name; if several limits name one resource, the last one
/// counts.
fn defaults(range: &Value, which: &str) -> Map {
    let mut all = Map::new();
    for limit in limits_of(range, "Container") {
        for (name, amount) in limit.map_at(&[which]).into_iter().flat_map(Map::iter) {
            all.insert(name, amount.clone());
        }
    }
    all.sort();
    all
}

fn limits_of<'r>(range: &'r Value, kind: &str) -> impl Iterator<Item = &'r Value> {
    range.list_at(&["spec", "limits"]).iter().filter(move |limit| limit.str_at(&["type"]) == kind)
}

/// Adds the defaults that a container does not state; returns the names of the added resources.
fn fill(container: &mut Value, which: &str, defaults: &Map) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults.iter() {
        if container.at(&["resources", which, name]).is_null() {
            container.set_at(&["resources", which, name], amount.clone());
            set.push(name.to_owned());
        }
    }
    if !set.is_empty()
        && let Some(resources) = container.get_mut("resources")
    {
        if let Some(list) = resources.get_mut(which).and_then(Value::as_object_mut) {
            list.sort();
        }
        if let Some(resources) = resources.as_object_mut() {
            resources.sort();
        }
    }
    set
}

/// Checks a new pod against a range. `Err` lists everything that is wrong.
pub fn check_pod_limits(pod: &Value, range: &Value) -> Result<(), String> {
    let mut wrong = Vec::new();
    for limit in range.list_at(&["spec", "limits"]) {
        match limit.str_at(&["type"]) {
            "Container" => {
                for (list, _) in LISTS {
                    for container in pod.list_at(&["spec", list]) {
                        let amounts = |which: &str| {
                            let mut amounts = Amounts::default();
                            amounts.add_list(container.map_at(&["resources", which]));
                            amounts
                        };
                        check(limit, &amounts("requests"), Some(&amounts("limits")), &mut wrong);
                    }
                }
            }
            "Pod" => check(limit, &of_pod(pod, "requests"), Some(&of_pod(pod, "limits")), &mut wrong),
            _ => {}
        }
    }
    joined(&wrong)
}

/// Checks a claim against a range. `Err` lists everything that is wrong.
pub fn check_claim_limits(claim: &Value, range: &Value) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut requests = Amounts::default();
    requests.add_list(claim.map_at(&["spec", "resources", "requests"]));
    for limit in limits_of(range, "PersistentVolumeClaim") {
        check(limit, &requests, None, &mut wrong);
    }
    joined(&wrong)
}

fn joined(wrong: &[String]) -> Result<(), String> {
    match wrong {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Returns the amounts that a pod needs as a whole: resources that the pod itself states take precedence over the sum
/// of its containers.
fn of_pod(pod: &Value, which: &str) -> Amounts {
    let mut amounts = pod.map_at(&["spec"]).map(|spec| of_containers(spec, which)).unwrap_or_default();
    if let Some(own) = pod.map_at(&["spec", "resources", which]) {
        let mut all = Amounts::default();
        all.add_list(Some(own));
        for (name, amount) in amounts.iter().filter(|(name, _)| own.get(name).is_none()) {
            all.add(name, amount.clone());
        }
        amounts = all;
    }
    amounts
}

/// Converts a request, a limit and the enforced bound to integers of one unit: thousandths if all are small, else
/// units.
fn comparable(amounts: [Option<&Quantity>; 2], enforced: &Quantity) -> ([i64; 2], i64) {
    let value = |amount: Option<&Quantity>| amount.map_or(0, Quantity::value);
    let small = amounts.iter().all(|amount| value(*amount) <= MILLI_MAX) && enforced.value() <= MILLI_MAX;
    if small {
        return (amounts.map(|amount| amount.map_or(0, Quantity::milli_value)), enforced.milli_value());
    }
    (amounts.map(value), enforced.value())
}

/// A rule: takes the kind of limit, the resource, its request and limit, and the bound. Returns the message if they
/// break the bound, else `None`.
type BoundCheck = fn(&str, &str, [Option<&Quantity>; 2], &Quantity) -> Option<String>;

/// Checks requests and limits against one item of a LimitRange; claims have no limits, so only their requests are
/// checked.
fn check(limit: &Value, requests: &Amounts, limits: Option<&Amounts>, wrong: &mut Vec<String>) {
    let kind = limit.str_at(&["type"]);
    let mut each = |which: &str, rule: BoundCheck| {
        let mut bounds: Vec<(&str, &Value)> = limit.map_at(&[which]).into_iter().flat_map(Map::iter).collect();
        bounds.sort_unstable_by_key(|(name, _)| *name);
        for (name, bound) in bounds {
            let Ok(bound) = Quantity::parse(bound.as_str().unwrap_or("")) else { continue };
            let have = [requests.get(name), limits.and_then(|limits| limits.get(name))];
            wrong.extend(rule(kind, name, have, &bound));
        }
    };
    each("min", minimum);
    match limits {
        Some(_) => {
            each("max", maximum);
            each("maxLimitRequestRatio", ratio);
        }
        None => each("max", maximum_request),
    }
}

fn minimum(kind: &str, name: &str, [request, limit]: [Option<&Quantity>; 2], bound: &Quantity) -> Option<String> {
    let ([requested, limited], least) = comparable([request, limit], bound);
    let rule = format!("minimum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{rule}.  No request is specified")),
        (Some(request), _) if requested < least => Some(format!("{rule}, but request is {request}")),
        (_, Some(limit)) if limited < least => Some(format!("{rule}, but limit is {limit}")),
        _ => None,
    }
}

fn maximum(kind: &str, name: &str, [request, limit]: [Option<&Quantity>; 2], bound: &Quantity) -> Option<String> {
    let ([requested, limited], most) = comparable([request, limit], bound);
    let rule = format!("maximum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (_, None) => Some(format!("{rule}.  No limit is specified")),
        (_, Some(limit)) if limited > most => Some(format!("{rule}, but limit is {limit}")),
        (Some(request), _) if requested > most => Some(format!("{rule}, but request is {request}")),
        _ => None,
    }
}

fn maximum_request(kind: &str, name: &str, have: [Option<&Quantity>; 2], bound: &Quantity) -> Option<String> {
    let ([requested, _], most) = comparable(have, bound);
    let rule = format!("maximum {name} usage per {kind} is {bound}");
    match have[0] {
        None => Some(format!("{rule}.  No request is specified")),
        Some(request) if requested > most => Some(format!("{rule}, but request is {request}")),
        Some(_) => None,
    }
}

fn ratio(kind: &str, name: &str, have: [Option<&Quantity>; 2], bound: &Quantity) -> Option<String> {
    let ([requested, limited], _) = comparable(have, bound);
    let rule = format!("{name} max limit to request ratio per {kind} is {bound}");
    if requested == 0 {
        return Some(format!("{rule}, but no request is specified or request is 0"));
    }
    if limited == 0 {
        return Some(format!("{rule}, but no limit is specified or limit is 0"));
    }
    let provided = limited as f64 / requested as f64;
    let most = bound.milli_value() as f64 / 1000.0;
    (provided > most).then(|| format!("{rule}, but provided ratio is {provided:.6}"))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn range() -> Value {
        value!({"spec": {"limits": [{
            "type": "Container", "default": {"memory": "256Mi", "cpu": "500m"}, "defaultRequest": {"cpu": "100m"},
            "min": {"cpu": "50m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "10"}
        }]}})
    }

    #[test]
    fn containers_without_resources_get_the_defaults() {
        let mut pod = value!({"metadata": {}, "spec": {"containers": [
            {"name": "a", "resources": {}}, {"name": "b", "resources": {"limits": {"memory": "1Mi"}}}
        ]}});
        set_default_resources(&mut pod, &range());
        let expected = value!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m"}});
        assert_eq!(pod.list_at(&["spec", "containers"])[0].at(&["resources"]), &expected);
        assert_eq!(
            pod.str_at(&["metadata", "annotations", ANNOTATION]),
            "LimitRanger plugin set: cpu request for container a; cpu, memory limit for container a; \
             cpu request for container b; cpu limit for container b"
        );
    }

    #[test]
    fn bounds_of_containers() {
        let refusal = |resources: Value| {
            let pod = value!({"spec": {"containers": [{"name": "a", "resources": resources}]}});
            check_pod_limits(&pod, &range()).unwrap_err()
        };
        assert_eq!(
            refusal(value!({"requests": {"cpu": "10m"}, "limits": {"cpu": "500m"}})),
            "[minimum cpu usage per Container is 50m, but request is 10m, cpu max limit to request ratio per Container \
             is 10, but provided ratio is 50.000000]"
        );
        assert_eq!(
            refusal(value!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})),
            "maximum cpu usage per Container is 1, but limit is 2"
        );
    }

    #[test]
    fn bounds_of_claims() {
        let range = value!({"spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}]}});
        let claim = value!({"spec": {"resources": {"requests": {"storage": "100Mi"}}}});
        assert_eq!(
            check_claim_limits(&claim, &range).unwrap_err(),
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 100Mi"
        );
    }
}
