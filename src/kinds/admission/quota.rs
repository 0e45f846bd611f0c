//! ResourceQuotas: what an object uses of a namespace's budget, and whether there is room (ResourceQuota).

use std::collections::{BTreeMap, BTreeSet};

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use crate::kinds::pod::pod_resources::quality_of_service;
use crate::kinds::pod::quantities::of_containers;
use crate::kinds::resources::amount;

/// Amounts by the names that quotas have for them.
pub type Usage = BTreeMap<String, Quantity>;

/// Resources of the core group that quotas count under their plain name, too.
const PLAIN: [&str; 7] =
    ["configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services"];
/// What containers must state where a quota limits it.
const STATED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// What a new object uses.
pub fn usage(group: &str, resource: &str, object: &Value) -> Usage {
    let mut usage = Usage::new();
    let one = amount(&"1".into());
    let counted = if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") };
    usage.insert(counted, one);
    if group.is_empty() && PLAIN.contains(&resource) {
        usage.insert(resource.to_owned(), one);
    }
    match (group, resource) {
        ("", "pods") => of_pod(object, &mut usage),
        ("", "persistentvolumeclaims") => of_claim(object, one, &mut usage),
        ("", "services") => of_service(object, one, &mut usage),
        _ => {}
    }
    usage
}

fn of_pod(pod: &Value, usage: &mut Usage) {
    let Some(spec) = pod.map_at(&["spec"]) else { return };
    for which in ["requests", "limits"] {
        for (name, amount) in of_containers(spec, which).iter() {
            usage.insert(format!("{which}.{name}"), *amount);
            if which == "requests" {
                usage.insert(name.to_owned(), *amount);
            }
        }
    }
}

fn of_claim(claim: &Value, one: Quantity, usage: &mut Usage) {
    let size = amount(claim.at(&["spec", "resources", "requests", "storage"]));
    usage.insert("requests.storage".into(), size);
    let class = claim.str_at(&["spec", "storageClassName"]);
    if !class.is_empty() {
        usage.insert(format!("{class}.storageclass.storage.k8s.io/requests.storage"), size);
        usage.insert(format!("{class}.storageclass.storage.k8s.io/persistentvolumeclaims"), one);
    }
}

fn of_service(service: &Value, one: Quantity, usage: &mut Usage) {
    let kind = service.str_at(&["spec", "type"]);
    let balanced = kind == "LoadBalancer";
    if balanced {
        usage.insert("services.loadbalancers".into(), one);
    }
    let without = balanced && service.at(&["spec", "allocateLoadBalancerNodePorts"]).as_bool() == Some(false);
    if matches!(kind, "NodePort" | "LoadBalancer") && !without {
        let ports = service.list_at(&["spec", "ports"]).len().to_string();
        usage.insert("services.nodeports".into(), amount(&ports.as_str().into()));
    }
}

/// Leaves what an object uses more than it did `before`.
pub fn growth(usage: &mut Usage, before: &Usage) {
    usage.retain(|name, now| {
        *now = before.get(name).map_or(*now, |before| now.minus(before));
        now.sign() > 0
    });
}

/// Checks an object against a quota, a `new` one also for what it must state; what the quota's `used` becomes, or
/// nothing if it is not concerned. `Err` says why there is no room.
pub fn charge(
    quota: &Value,
    resource: &str,
    object: &Value,
    new: bool,
    usage: &Usage,
) -> Result<Option<Usage>, String> {
    let Some(hard) = quota.map_at(&["status", "hard"]) else { return Ok(None) };
    let requested: Usage =
        usage.iter().filter(|(name, _)| hard.get(name).is_some()).map(|(name, more)| (name.clone(), *more)).collect();
    let limited = |name: &&str| hard.get(name).is_some();
    let stated = new && resource == "pods" && STATED.iter().any(limited);
    if (requested.is_empty() && !stated) || !scopes_match(quota, object) {
        return Ok(None);
    }
    let name = quota.str_at(&["metadata", "name"]);
    if stated {
        must_state(object, &STATED.iter().copied().filter(limited).collect::<Vec<_>>())
            .map_err(|why| format!("failed quota: {name}: {why}"))?;
    }
    let used = quota.map_at(&["status", "used"]);
    let of = |list: Option<&Map>, name: &str| list.and_then(|list| list.get(name)).map(amount);
    let unknown: Vec<&str> = requested.keys().map(String::as_str).filter(|name| of(used, name).is_none()).collect();
    if !unknown.is_empty() {
        return Err(format!("status unknown for quota: {name}, resources: {}", unknown.join(",")));
    }
    let mut after = Usage::new();
    let (mut asked, mut had, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for (name, more) in &requested {
        let (Some(before), Some(most)) = (of(used, name), of(Some(hard), name)) else { continue };
        let sum = before.plus(more);
        if sum > most {
            asked.push(format!("{name}={more}"));
            had.push(format!("{name}={before}"));
            limits.push(format!("{name}={most}"));
        }
        after.insert(name.clone(), sum);
    }
    if asked.is_empty() {
        return Ok(Some(after));
    }
    let (asked, had, limits) = (asked.join(","), had.join(","), limits.join(","));
    Err(format!("exceeded quota: {name}, requested: {asked}, used: {had}, limited: {limits}"))
}

/// Every container must state what is limited.
fn must_state(pod: &Value, limited: &[&str]) -> Result<(), String> {
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in ["containers", "initContainers"].iter().flat_map(|list| pod.list_at(&["spec", list])) {
        for name in limited {
            let (which, resource) = name.split_once('.').unwrap_or(("requests", name));
            if container.at(&["resources", which, resource]).is_null() {
                missing.entry(name).or_default().insert(container.str_at(&["name"]));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let each = missing
        .iter()
        .map(|(name, containers)| format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(",")));
    Err(format!("must specify {}", each.collect::<Vec<_>>().join("; ")))
}

/// Whether a quota is about an object: all its scopes must be.
fn scopes_match(quota: &Value, object: &Value) -> bool {
    let scopes = quota.list_at(&["spec", "scopes"]).iter().filter_map(Value::as_str);
    let plain = scopes.into_iter().all(|scope| scope_matches(scope, "Exists", &[], object));
    plain
        && quota.list_at(&["spec", "scopeSelector", "matchExpressions"]).iter().all(|expression| {
            let (scope, operator) = (expression.str_at(&["scopeName"]), expression.str_at(&["operator"]));
            scope_matches(scope, operator, expression.list_at(&["values"]), object)
        })
}

fn scope_matches(scope: &str, operator: &str, values: &[Value], pod: &Value) -> bool {
    let ends = pod.int_at(&["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0);
    let best_effort = || quality_of_service(pod) == "BestEffort";
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => {
            let class = pod.str_at(&["spec", "priorityClassName"]);
            let listed = values.iter().any(|value| value.as_str() == Some(class));
            match operator {
                "In" => listed,
                "NotIn" => !listed,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn crosses_namespaces(pod: &Value) -> bool {
    let foreign =
        |term: &Value| !term.list_at(&["namespaces"]).is_empty() || !term.at(&["namespaceSelector"]).is_null();
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let of = |list: &str| pod.list_at(&["spec", "affinity", kind, list]);
        of("requiredDuringSchedulingIgnoredDuringExecution").iter().any(foreign)
            || of("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|weighted| foreign(weighted.at(&["podAffinityTerm"])))
    })
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn quota() -> Value {
        value!({"metadata": {"name": "q"}, "spec": {}, "status": {
            "hard": {"pods": "2", "requests.cpu": "300m"}, "used": {"pods": "0", "requests.cpu": "200m"}
        }})
    }

    fn pod(cpu: &str) -> Value {
        value!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    #[test]
    fn room_and_none() {
        let charged = |pod: &Value| charge(&quota(), "pods", pod, true, &usage("", "pods", pod));
        let after = charged(&pod("100m")).unwrap().unwrap();
        assert_eq!(after["requests.cpu"].to_string(), "300m");
        assert_eq!(after["pods"].to_string(), "1");
        assert_eq!(
            charged(&pod("150m")).unwrap_err(),
            "exceeded quota: q, requested: requests.cpu=150m, used: requests.cpu=200m, limited: requests.cpu=300m"
        );
        let silent = value!({"spec": {"containers": [{"name": "c", "resources": {}}]}});
        assert_eq!(charged(&silent).unwrap_err(), "failed quota: q: must specify requests.cpu for: c");
    }

    #[test]
    fn only_growth_is_charged_again() {
        let service = |kind: &str| value!({"spec": {"type": kind, "ports": [{"port": 80}]}});
        let of = |kind: &str| usage("", "services", &service(kind));
        let mut more = of("NodePort");
        growth(&mut more, &of("ClusterIP"));
        assert_eq!(more.keys().collect::<Vec<_>>(), ["services.nodeports"]);
        let mut less = of("ClusterIP");
        growth(&mut less, &of("NodePort"));
        assert!(less.is_empty());
    }

    #[test]
    fn scopes_choose_pods() {
        let mut quota = quota();
        quota.set_at(&["spec", "scopes"], value!(["BestEffort"]));
        let pod = pod("100m");
        assert_eq!(charge(&quota, "pods", &pod, true, &usage("", "pods", &pod)), Ok(None));
    }
}
