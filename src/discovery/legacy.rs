//! Unaggregated discovery: one document per group version, one per group, and lists of them.

use flotilla_proto::schema::{Resource, Subresource};
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::Served;

/// Returns the document of `/api`: the versions of the core group, and the address of this server.
pub(super) fn api_versions(versions: &[&Served], server_address: &str) -> Value {
    let versions: Vec<Value> = versions.iter().map(|of| Value::from(&*of.version)).collect();
    value!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    })
}

/// Returns the document of `/apis`: all named groups.
pub(super) fn group_list(groups: &[Vec<&Served>]) -> Value {
    let groups: Vec<Value> = groups.iter().map(|versions| group(versions)).collect();
    value!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the document of `/apis/GROUP`.
pub(super) fn api_group(versions: &[&Served]) -> Value {
    let mut document = value!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Value::Object(document), Value::Object(group)) = (&mut document, group(versions)) {
        for (key, value) in group {
            document.insert(key, value);
        }
    }
    document
}

fn group(versions: &[&Served]) -> Value {
    let listed: Vec<Value> = versions.iter().map(|of| group_version(of)).collect();
    let (name, preferred) = versions.first().map_or(("", Value::Null), |of| (&*of.group, group_version(of)));
    value!({"name": name, "versions": listed, "preferredVersion": preferred})
}

fn group_version(of: &Served) -> Value {
    value!({"groupVersion": (group_version_name(of)), "version": (&*of.version)})
}

fn group_version_name(of: &Served) -> String {
    if of.group.is_empty() { of.version.to_string() } else { format!("{}/{}", of.group, of.version) }
}

/// Returns the document of `/api/VERSION` or `/apis/GROUP/VERSION`: resources and subresources. That of the core group
/// has no `apiVersion`.
pub(super) fn resource_list(of: &Served) -> Value {
    let mut document = value!({"kind": "APIResourceList"});
    if !of.group.is_empty() {
        document.set_at(&["apiVersion"], "v1");
    }
    document.set_at(&["groupVersion"], group_version_name(of));
    let entries = of.resources.iter().flat_map(|listed| {
        let parts = listed.subresources.iter().map(|part| subresource(of, listed, part));
        std::iter::once(resource(listed)).chain(parts)
    });
    document.set_at(&["resources"], entries.collect::<Vec<_>>());
    document
}

fn resource(of: &Resource) -> Value {
    let mut entry = value!({
        "name": (&*of.name),
        "singularName": (&*of.singular),
        "namespaced": (of.namespaced),
        "kind": (&*of.kind.name),
        "verbs": (texts(&of.verbs))
    });
    for (key, list) in [("shortNames", &of.short_names), ("categories", &of.categories)] {
        if !list.is_empty() {
            entry.set_at(&[key], texts(list));
        }
    }
    if !of.storage_hash.is_empty() {
        entry.set_at(&["storageVersionHash"], &*of.storage_hash);
    }
    entry
}

fn subresource(served: &Served, of: &Resource, part: &Subresource) -> Value {
    let (group, version, kind) = &part.response_kind;
    let mut entry = value!({
        "name": (format!("{}/{}", of.name, part.name)),
        "singularName": "",
        "namespaced": (of.namespaced)
    });
    if (group, version) != (&served.group, &served.version) {
        entry.set_at(&["group"], &**group);
        entry.set_at(&["version"], &**version);
    }
    entry.set_at(&["kind"], &**kind);
    entry.set_at(&["verbs"], texts(&part.verbs));
    entry
}

/// Returns a list of strings.
pub(super) fn texts(list: &[flotilla_proto::schema::Text]) -> Value {
    Value::Array(list.iter().map(|text| Value::from(&**text)).collect())
}
