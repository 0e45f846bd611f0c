//! Validation of the resource requests and limits of containers and pods.

use std::collections::HashSet;

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use super::quantities;
use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::{Options, Surroundings, for_each_container};
use crate::rules::{names, resources};

type NameCheck = fn(&Path<'_>, &str, &mut Errors);

/// Checks the resources of a container; `claims` are the names of the pod's resource claims.
pub fn validate_container(needs: &Value, claims: &[&str], path: &Path<'_>, options: &Options, errors: &mut Errors) {
    if needs.as_object().is_some_and(|needs| !needs.is_empty()) {
        validate(needs, resources::check_container_name, claims, path, options, errors);
    }
}

/// Checks the overhead of a pod.
pub fn validate_overhead(overhead: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let mut found = PresentResources::default();
    limits(overhead.as_object(), resources::check_container_name, &path.child("limits"), options, &mut found, errors);
    found.check(path, errors);
}

/// Whether a list of resources has huge pages, and CPU or memory, without which huge pages are refused.
#[derive(Default)]
struct PresentResources {
    compute: bool,
    huge_pages: bool,
}

impl PresentResources {
    fn note(&mut self, name: &str) {
        self.compute |= matches!(name, "cpu" | "memory");
        self.huge_pages |= resources::is_huge_pages(name);
    }

    fn check(&self, path: &Path<'_>, errors: &mut Errors) {
        if self.huge_pages && !self.compute {
            errors.forbidden(path, "HugePages require cpu or memory");
        }
    }
}

fn validate(needs: &Value, name: NameCheck, claims: &[&str], path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let mut found = PresentResources::default();
    let limit_list = needs.map_at(&["limits"]);
    limits(limit_list, name, &path.child("limits"), options, &mut found, errors);
    let requests = needs.map_at(&["requests"]);
    let lists = (requests, limit_list);
    self::requests(lists, name, path, options, &mut found, errors);
    found.check(path, errors);
    claim_names(needs.list_at(&["claims"]), claims, &path.child("claims"), errors);
}

fn limits(
    list: Option<&Map>,
    check_name: NameCheck,
    path: &Path<'_>,
    options: &Options,
    found: &mut PresentResources,
    errors: &mut Errors,
) {
    for (name, value) in list.into_iter().flat_map(Map::iter) {
        let path = path.key(name);
        check_name(&path, name, errors);
        resources::check_amount(&path, name, value, errors);
        whole_pages(name, value, &path, options, errors);
        found.note(name);
    }
}

fn requests(
    (requests, limits): (Option<&Map>, Option<&Map>),
    check_name: NameCheck,
    path: &Path<'_>,
    options: &Options,
    found: &mut PresentResources,
    errors: &mut Errors,
) {
    let list = path.child("requests");
    for (name, value) in requests.into_iter().flat_map(Map::iter) {
        let item = list.key(name);
        check_name(&item, name, errors);
        resources::check_amount(&item, name, value, errors);
        match limits.and_then(|limits| limits.get(name)) {
            Some(limit) if limit == value => {}
            Some(limit) => {
                let (amount, most) = (resources::amount(value), resources::amount(limit));
                if amount != most && !resources::may_overcommit(name) {
                    errors.invalid(&list, value, format!("must be equal to {name} limit of {most}"));
                } else if amount > most {
                    errors.invalid(&list, value, format!("must be less than or equal to {name} limit of {most}"));
                }
            }
            None if !resources::may_overcommit(name) => {
                errors.required(&path.child("limits"), "Limit must be set for non overcommitable resources");
            }
            None => {}
        }
        whole_pages(name, value, &item, options, errors);
        found.note(name);
    }
}

/// Returns whether an amount of huge pages is a multiple of the page size in the name.
fn is_even(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    size.is_some_and(|size| size.sign() > 0 && size.is_whole() && amount.value() % size.value() == 0)
}

fn whole_pages(name: &str, value: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    if !options.uneven_huge_pages && resources::is_huge_pages(name) {
        let amount = resources::amount(value);
        if !is_even(name, &amount) {
            errors.invalid(path, value, format!("{amount} is not positive integer multiple of {name}"));
        }
    }
}

/// Returns whether the stored object has amounts of huge pages that are not multiples of the page size.
pub fn has_uneven_huge_pages(spec: &Value) -> bool {
    let uneven = |list: Option<&Map>| {
        let mut entries = list.into_iter().flat_map(Map::iter);
        entries.any(|(name, value)| resources::is_huge_pages(name) && !is_even(name, &resources::amount(value)))
    };
    let mut found = uneven(spec.map_at(&["overhead"]));
    for_each_container(spec, &Path::root("spec"), |container, _| {
        found |= uneven(container.map_at(&["resources", "limits"]));
        found |= uneven(container.map_at(&["resources", "requests"]));
    });
    found
}

fn claim_names(claims: &[Value], of_pod: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: HashSet<String> = HashSet::new();
    let known_names: HashSet<&str> = of_pod.iter().copied().collect();
    for (n, claim) in claims.iter().enumerate() {
        if errors.is_full() {
            return;
        }
        let path = path.index(n);
        let (name, request) = (claim.str_at(&["name"]), claim.str_at(&["request"]));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        if seen.contains(name) {
            errors.duplicate(&path, &name.into());
        } else {
            claim_request(name, request, &path, &mut seen, errors);
        }
        if !known_names.contains(name) {
            let mut known = of_pod.to_vec();
            known.sort_unstable();
            let known = if known.is_empty() { " which is empty".into() } else { format!(": {}", known.join(", ")) };
            let why = format!("must be one of the names in pod.spec.resourceClaims{known}");
            errors.push(crate::field::ErrorKind::NotFound, &path, crate::field::quote(name), why);
        }
    }
}

fn claim_request(name: &str, request: &str, path: &Path<'_>, seen: &mut HashSet<String>, errors: &mut Errors) {
    let mut key = name.to_owned();
    if !request.is_empty() {
        names::check(&path.child("request"), request, names::dns1123_label, errors);
        key = format!("{name}/{request}");
    }
    if seen.contains(&key) {
        errors.duplicate(path, &key.as_str().into());
    } else if request.is_empty() {
        let parts = seen.iter().filter(|known| known.split_once('/').is_some_and(|(other, _)| other == name));
        parts.for_each(|_| errors.duplicate(path, &name.into()));
    }
    seen.insert(key);
}

fn check_pod_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let before = errors.0.len();
    resources::check_name(path, name, errors);
    if errors.0.len() == before && !quantities::is_for_pods(name) {
        errors.not_supported(path, name, &["cpu", "hugepages-", "memory"]);
    }
}

/// Checks the resources of a pod as a whole, and that those of its containers do not exceed them.
pub fn validate_pod(spec: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let needs = spec.at(&["resources"]);
    if needs.is_null() {
        return;
    }
    let path = path.child("resources");
    if around.os == Some("windows") {
        return errors.forbidden(&path, "may not be set for a windows pod");
    }
    if !needs.at(&["claims"]).is_null() {
        errors.forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level");
    }
    validate(needs, check_pod_name, &around.claims, &path, around.options, errors);
    fits_containers(spec, needs, &path, errors);
}

fn fits_containers(spec: &Value, needs: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(spec) = spec.as_object() else { return };
    let requests = path.child("requests");
    for (name, total) in quantities::of_containers(spec, "requests").iter() {
        let own = needs.at(&["requests", name]);
        if !own.is_null() && *total > resources::amount(own) {
            let why = format!("must be greater than or equal to aggregate container requests of {total}");
            errors.invalid(&requests.key(name), own, why);
        }
    }
    for (name, total) in quantities::of_containers(spec, "limits").iter() {
        let own = needs.at(&["limits", name]);
        if resources::is_huge_pages(name) && !own.is_null() && *total > resources::amount(own) {
            let why = format!("must be greater than or equal to aggregate container limits of {total}");
            errors.invalid(&path.child("limits").key(name), own, why);
        }
    }
    let containers = path.child("containers");
    for (n, container) in spec.get("containers").and_then(Value::as_array).into_iter().flatten().enumerate() {
        for (name, limit) in container.map_at(&["resources", "limits"]).into_iter().flat_map(Map::iter) {
            let own = needs.at(&["limits", name]);
            let most = resources::amount(own);
            if !own.is_null() && resources::amount(limit) > most {
                let why = format!("must be less than or equal to pod limits of {most}");
                errors.invalid(&containers.index(n).key(name).child("limits"), limit, why);
            }
        }
    }
}
