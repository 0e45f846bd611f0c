//! The built-in kinds of Kubernetes 1.36: static tables made from the text in `proto/catalogue`.
//!
//! Lookups are binary searches over sorted tables; nothing is allocated.

use std::sync::LazyLock;

use crate::schema::{Kind, Resource, Type};

mod tables {
    //! The generated tables.
    use std::borrow::Cow::Borrowed as B;

    use super::{Group, Version};
    use crate::schema::{
        AnyKind, Column, Field, Kind, List, Map, Patch, Presence, Ref, Resource, Shape, Subresource, Text, Topology,
        Type, Union, Wire, WirePart,
    };

    include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));
}

/// A served API group.
#[derive(Debug)]
pub struct Group {
    /// Name; empty for the core group.
    pub name: &'static str,
    /// Versions, the preferred one first.
    pub versions: &'static [Version],
}

/// A served version of a [`Group`].
#[derive(Debug)]
pub struct Version {
    /// Name: `v1`.
    pub name: &'static str,
    /// Resources in discovery's order.
    pub resources: &'static [Resource],
}

/// Returns the served groups in discovery's order, the core group first.
pub fn groups() -> &'static [Group] {
    &tables::GROUPS
}

/// Returns the group of this name. Returns `None` if it is not served.
pub fn group(name: &str) -> Option<&'static Group> {
    tables::GROUPS.iter().find(|group| group.name == name)
}

/// Returns all served resources in discovery's order. One that is served in two versions comes twice.
pub fn resources() -> impl Iterator<Item = &'static Resource> {
    groups().iter().flat_map(|group| group.versions).flat_map(|version| version.resources)
}

/// Returns the resource with this plural name. Returns `None` if it is not served.
pub fn resource(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    let key = (group, version, plural);
    let found = tables::RESOURCES.binary_search_by(|of| (&*of.group, &*of.version, &*of.name).cmp(&key));
    found.ok().map(|index| tables::RESOURCES[index])
}

/// Returns all kinds by group, version and name: those of resources, of their lists, and of bodies that are never
/// stored.
///
/// Options (`DeleteOptions` and the like) and `WatchEvent` are kinds of every group version, but are listed only under
/// `v1` and `meta.k8s.io/v1`.
pub fn kinds() -> &'static [Kind] {
    &tables::KINDS
}

/// Returns the kind of this name (see [`kinds`]). Returns `None` if there is none.
pub fn kind(group: &str, version: &str, name: &str) -> Option<&'static Kind> {
    let key = (group, version, name);
    let found = tables::KINDS.binary_search_by(|of| (&*of.group, &*of.version, &*of.name).cmp(&key));
    found.ok().map(|index| &tables::KINDS[index])
}

/// Returns all types by their OpenAPI names, including those that OpenAPI does not publish.
pub fn types() -> &'static [&'static Type] {
    &tables::TYPES
}

/// Returns the type that OpenAPI publishes under this name, such as `io.k8s.api.core.v1.PodSpec`.
pub fn type_by_openapi(name: &str) -> Option<&'static Type> {
    tables::TYPES.binary_search_by(|of| (*of.openapi).cmp(name)).ok().map(|index| tables::TYPES[index])
}

/// Returns the type of JSON schemas, to which their free-form fields refer.
pub fn json_schema() -> Option<&'static Type> {
    static SCHEMA: LazyLock<Option<&Type>> =
        LazyLock::new(|| type_by_openapi("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"));
    *SCHEMA
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
