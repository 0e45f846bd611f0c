//! Lists of resources: which names pods can use, and arithmetic on whole lists.

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use crate::rules::resources::{amount, is_huge_pages};

/// Returns whether a pod as a whole can request a resource.
pub fn is_for_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// Amounts by name, in order of first mention.
#[derive(Debug, Clone, Default)]
pub struct Amounts(Vec<(String, Quantity)>);

impl Amounts {
    /// Returns the amounts with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), amount))
    }

    /// Returns the amount of a resource. Returns `None` if the list does not have it.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, amount)| amount)
    }

    /// Returns whether there are no amounts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of resources.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn merge(&mut self, name: &str, amount: Quantity, join: impl Fn(Quantity, Quantity) -> Quantity) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = join(known.clone(), amount),
            None => self.0.push((name.to_owned(), amount)),
        }
    }

    /// Adds an amount to that of the same name.
    pub fn add(&mut self, name: &str, amount: Quantity) {
        self.merge(name, amount, |known, more| known.plus(&more));
    }

    /// Adds a list of resources.
    pub fn add_list(&mut self, list: Option<&Map>) {
        for (name, value) in list.into_iter().flat_map(Map::iter) {
            self.add(name, amount(value));
        }
    }

    /// Adds all amounts of another list.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(name, amount)| self.add(name, amount.clone()));
    }

    /// Replaces the amount of a resource.
    pub fn set(&mut self, name: &str, amount: Quantity) {
        self.merge(name, amount, |_, other| other);
    }

    /// Replaces each amount by the larger one of both lists.
    pub fn raise(&mut self, other: &Self) {
        let larger = |known: Quantity, other: Quantity| if other > known { other } else { known };
        other.iter().for_each(|(name, amount)| self.merge(name, amount.clone(), larger));
    }
}

/// Returns the `requests` or `limits` (`which`) that the containers of a pod need together, from their specs.
pub fn of_containers(spec: &Map, which: &str) -> Amounts {
    together(spec, |container| {
        let mut own = Amounts::default();
        own.add_list(container.map_at(&["resources", which]));
        own
    })
}

/// Returns the `requests` or `limits` (`which`) of a pod, from its spec.
pub fn of_pod(pod: &Value, which: &str) -> Amounts {
    let total = pod.map_at(&["spec"]).map_or_else(Amounts::default, |spec| of_containers(spec, which));
    with_own(pod, total, which)
}

/// Returns the `requests` or `limits` (`which`) of a pod whose containers need `total` together. Amounts that the pod
/// itself states replace those of its containers, and its overhead is added.
pub fn with_own(pod: &Value, mut total: Amounts, which: &str) -> Amounts {
    for (name, value) in pod.map_at(&["spec", "resources", which]).into_iter().flat_map(Map::iter) {
        if is_for_pods(name) {
            total.set(name, amount(value));
        }
    }
    for (name, value) in pod.map_at(&["spec", "overhead"]).into_iter().flat_map(Map::iter) {
        if which == "requests" || total.get(name).is_some_and(|limit| limit.sign() != 0) {
            total.add(name, amount(value));
        }
    }
    total
}

/// Returns the amounts that the containers of a pod need together, where `of` returns those of one container. Each is
/// the largest of these sums: all containers and sidecars; each init container and the sidecars that start before it.
pub fn together(spec: &Map, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let list = |key: &str| spec.get(key).and_then(Value::as_array).unwrap_or(&[]);
    let mut total = Amounts::default();
    for container in list("containers") {
        total.add_all(&of(container));
    }
    let (mut sidecars, mut peak) = (Amounts::default(), Amounts::default());
    for container in list("initContainers") {
        let mut own = of(container);
        if is_sidecar(container) {
            total.add_all(&own);
            sidecars.add_all(&own);
            peak.raise(&sidecars);
        } else {
            own.add_all(&sidecars);
            peak.raise(&own);
        }
    }
    total.raise(&peak);
    total
}

/// Returns whether an init container is a sidecar, which runs beside the ordinary containers.
pub fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn init_containers_count_by_peak() {
        let spec = value!({
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"resources": {"requests": {"cpu": "3"}}}
            ]
        });
        let total = of_containers(spec.as_object().unwrap(), "requests");
        assert_eq!(total.get("cpu").map(ToString::to_string).as_deref(), Some("3100m"));
    }
}
