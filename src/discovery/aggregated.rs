//! Aggregated discovery: all groups, versions and resources in one document (KEP-3352).

use flotilla_proto::schema::{Resource, Text};
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::Served;
use super::legacy::texts;

/// Returns the `APIGroupDiscoveryList` of these groups, each a list of versions.
pub(super) fn list(groups: &[Vec<&Served>]) -> Value {
    let items: Vec<Value> = groups.iter().map(|versions| group(versions)).collect();
    value!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn group(versions: &[&Served]) -> Value {
    let mut metadata = Value::object();
    if let Some(first) = versions.first().filter(|first| !first.group.is_empty()) {
        metadata.set_at(&["name"], &*first.group);
    }
    let versions: Vec<Value> = versions.iter().map(|of| version(of)).collect();
    value!({"metadata": metadata, "versions": versions})
}

fn version(of: &Served) -> Value {
    let mut entry = value!({"version": (&*of.version)});
    if let Some(reported) = of.reported.as_ref().filter(|reported| !reported.is_empty()) {
        entry.set_at(&["resources"], (**reported).clone());
    }
    if !of.resources.is_empty() {
        entry.set_at(&["resources"], of.resources.iter().map(|listed| resource(of, listed)).collect::<Vec<_>>());
    }
    entry.set_at(&["freshness"], if of.stale { "Stale" } else { "Current" });
    entry
}

fn resource(served: &Served, of: &Resource) -> Value {
    let mut entry = value!({
        "resource": (&*of.name),
        "responseKind": (response_kind(served, &(served.group.clone(), served.version.clone(), of.kind.name.clone()))),
        "scope": (if of.namespaced { "Namespaced" } else { "Cluster" }),
        "singularResource": (&*of.singular),
        "verbs": (texts(&of.verbs))
    });
    for (key, list) in [("shortNames", &of.short_names), ("categories", &of.categories)] {
        if !list.is_empty() {
            entry.set_at(&[key], texts(list));
        }
    }
    if !of.subresources.is_empty() {
        let parts = of.subresources.iter().map(|part| {
            value!({
                "subresource": (&*part.name),
                "responseKind": (response_kind(served, &part.response_kind)),
                "verbs": (texts(&part.verbs))
            })
        });
        entry.set_at(&["subresources"], parts.collect::<Vec<_>>());
    }
    entry
}

/// Returns the `responseKind` of a resource. Built-in resources leave group and version empty if they are those of the
/// list that contains the resource.
fn response_kind(served: &Served, (group, version, kind): &(Text, Text, Text)) -> Value {
    let own = !served.custom && (group, version) == (&served.group, &served.version);
    let (group, version) = if own { ("", "") } else { (&**group, &**version) };
    value!({"group": group, "version": version, "kind": (&**kind)})
}
