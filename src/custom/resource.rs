//! Describes a version of a custom resource for discovery and routing.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::schema::{Resource, Subresource, Text};
use ring::digest::{SHA256, digest};

use super::definition::{Definition, Version};

const VERBS: &[Text] = &[
    Cow::Borrowed("delete"),
    Cow::Borrowed("deletecollection"),
    Cow::Borrowed("get"),
    Cow::Borrowed("list"),
    Cow::Borrowed("patch"),
    Cow::Borrowed("create"),
    Cow::Borrowed("update"),
    Cow::Borrowed("watch"),
];
/// The verbs that discovery shows while a definition is being deleted.
pub const LAST_VERBS: &[Text] = &[
    Cow::Borrowed("delete"),
    Cow::Borrowed("deletecollection"),
    Cow::Borrowed("get"),
    Cow::Borrowed("list"),
    Cow::Borrowed("watch"),
];
const PART_VERBS: &[Text] = &[Cow::Borrowed("get"), Cow::Borrowed("patch"), Cow::Borrowed("update")];
/// Length of the storage version hash, in bytes.
const STORAGE_HASH_BYTES: usize = 8;

/// Returns the resource in this version, in the form that the catalogue has for built-in resources.
pub fn resource(of: &Definition, version: &Version) -> Resource {
    let own = (of.group.clone(), version.name.clone(), of.kind.clone());
    let scale = ("autoscaling".into(), "v1".into(), "Scale".into());
    let parts = [("status", version.status, own), ("scale", version.scale.is_some(), scale)];
    let parts = parts.into_iter().filter(|(_, has, _)| *has).map(|(name, _, response_kind)| Subresource {
        name: name.into(),
        response_kind,
        verbs: PART_VERBS.into(),
        tables: true,
    });
    Resource {
        group: of.group.clone(),
        version: version.name.clone(),
        name: of.plural.clone(),
        singular: of.singular.clone(),
        kind: version.kind.clone(),
        list_kind: of.list_kind.clone(),
        namespaced: of.namespaced,
        verbs: VERBS.into(),
        short_names: of.short_names.clone().into(),
        categories: of.categories.clone().into(),
        storage_hash: storage_hash(of).into(),
        subresources: parts.collect::<Vec<_>>().into(),
        columns: version.table.columns.clone().into(),
    }
}

/// Returns the storage version hash, which changes with the version in which objects are stored. Returns an empty text
/// if that version is not served.
fn storage_hash(of: &Definition) -> String {
    if !of.stored().served {
        return String::new();
    }
    let stored = format!("{}/{}/{}", of.group, of.stored().name, of.kind);
    STANDARD.encode(&digest(&SHA256, stored.as_bytes()).as_ref()[..STORAGE_HASH_BYTES])
}
