//! Resources of a pod as a whole (KEP-2837): their defaults, and the quality-of-service class that follows from them.

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use super::quantities::{self, Amounts};
use crate::rules::defaulting::{object, object_or_new};
use crate::rules::resources;

/// Sets the default requests, and limits of huge pages, of a pod that states resources of its own.
pub fn set_defaults(spec: &mut Map) {
    let Some(own) = spec.get("resources").and_then(Value::as_object) else { return };
    let has = |key: &str| own.get(key).and_then(Value::as_object).is_some_and(|list| !list.is_empty());
    if !has("limits") && !has("requests") {
        return;
    }
    limit_huge_pages(spec);
    request_from_containers_and_limits(spec);
}

fn limit_huge_pages(spec: &mut Map) {
    let total = quantities::of_containers(spec, "limits");
    let Some(own) = object(spec, "resources") else { return };
    let added: Vec<(String, String)> = total
        .iter()
        .filter(|(name, _)| resources::is_huge_pages(name) && !has(own, "requests", name))
        .map(|(name, amount)| (name.to_owned(), amount.to_string()))
        .collect();
    add_missing(own, "limits", added);
}

fn request_from_containers_and_limits(spec: &mut Map) {
    let total = quantities::of_containers(spec, "requests");
    let Some(own) = object(spec, "resources") else { return };
    let Some(limits) = own.get("limits").and_then(Value::as_object).filter(|list| !list.is_empty()) else {
        return;
    };
    let of_limits: Vec<(String, String)> = limits
        .iter()
        .filter(|(name, _)| quantities::is_for_pods(name))
        .map(|(name, value)| (name.to_owned(), value.as_str().unwrap_or("").to_owned()))
        .collect();
    let of_containers = total
        .iter()
        .filter(|(name, _)| quantities::is_for_pods(name) && resources::may_overcommit(name))
        .map(|(name, amount)| (name.to_owned(), amount.to_string()))
        .collect();
    add_missing(own, "requests", of_containers);
    add_missing(own, "requests", of_limits);
}

fn has(resources: &Map, list: &str, name: &str) -> bool {
    resources.get(list).and_then(Value::as_object).is_some_and(|list| list.contains_key(name))
}

fn add_missing(resources: &mut Map, list: &str, amounts: Vec<(String, String)>) {
    let missing: Vec<_> = amounts.into_iter().filter(|(name, _)| !has(resources, list, name)).collect();
    if missing.is_empty() {
        return;
    }
    if let Some(list) = object_or_new(resources, list) {
        for (name, amount) in missing {
            list.insert(name, amount);
        }
        list.sort();
    }
}

/// Returns the quality-of-service class of a pod, computed from its requests and limits of CPU and memory.
pub fn quality_of_service(pod: &Value) -> &'static str {
    let mut requests = Amounts::default();
    let mut limits = Amounts::default();
    let mut guaranteed = true;
    let mut count = |resources: &Value| {
        add_compute(&mut requests, resources.map_at(&["requests"]));
        let limited = add_compute(&mut limits, resources.map_at(&["limits"]));
        limited == 2
    };
    let whole = pod.at(&["spec", "resources"]);
    if whole.is_null() {
        for list in ["containers", "initContainers"] {
            for container in pod.list_at(&["spec", list]) {
                guaranteed &= count(container.at(&["resources"]));
            }
        }
    } else {
        let complete = count(whole);
        guaranteed = complete || whole.map_at(&["limits"]).is_none_or(Map::is_empty);
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let equal = requests.iter().all(|(name, amount)| limits.get(name) == Some(amount));
    if guaranteed && equal && requests.len() == limits.len() { "Guaranteed" } else { "Burstable" }
}

/// Adds the positive amounts of CPU and memory to `total`. Returns how many of the two there are in the list.
fn add_compute(total: &mut Amounts, list: Option<&Map>) -> usize {
    let Some(list) = list else { return 0 };
    let mut found = 0;
    for name in ["cpu", "memory"] {
        let amount = list.get(name).map_or(Quantity::from_int(0), resources::amount);
        if amount.sign() > 0 {
            total.add(name, amount);
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn quality_follows_from_requests_and_limits() {
        let pod = |resources: Value| value!({"spec": {"containers": [{"resources": resources}]}});
        assert_eq!(quality_of_service(&pod(value!({}))), "BestEffort");
        assert_eq!(quality_of_service(&pod(value!({"requests": {"cpu": "1"}}))), "Burstable");
        let full = value!({"cpu": "1", "memory": "1Gi"});
        let same = value!({"limits": (full.clone()), "requests": full});
        assert_eq!(quality_of_service(&pod(same.clone())), "Guaranteed");
        assert_eq!(quality_of_service(&value!({"spec": {"resources": same, "containers": [{}]}})), "Guaranteed");
    }

    #[test]
    fn pod_requests_come_from_containers_then_limits() {
        let mut spec = value!({
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            "containers": [{"resources": {"requests": {"cpu": "500m"}}}]
        });
        set_defaults(spec.as_object_mut().unwrap());
        assert_eq!(spec.at(&["resources", "requests"]), &value!({"cpu": "500m", "memory": "1Gi"}));
    }
}
