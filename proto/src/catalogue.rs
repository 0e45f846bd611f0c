//! The built-in kinds of Kubernetes 1.36: static tables made from the text in `proto/catalogue`.
//!
//! Lookups are binary searches over sorted tables; nothing is allocated.

use crate::schema::{Kind, Resource, Type};

mod tables {
    //! The generated tables.
    use std::borrow::Cow::Borrowed as B;

    use super::{Group, Version};
    use crate::schema::{
        AnyKind, Column, Field, Kind, List, Map, Part, Patch, Presence, Ref, Resource, Shape, Subresource, Text,
        Topology, Type, Union, Wire,
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

/// The served groups in discovery's order, the core group first.
pub fn groups() -> &'static [Group] {
    &tables::GROUPS
}

/// The group of this name, if it is served.
pub fn group(name: &str) -> Option<&'static Group> {
    tables::GROUPS.iter().find(|group| group.name == name)
}

/// All served resources in discovery's order; one that is served in two versions comes twice.
pub fn resources() -> impl Iterator<Item = &'static Resource> {
    groups().iter().flat_map(|group| group.versions).flat_map(|version| version.resources)
}

/// The resource with this plural name.
pub fn resource(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    let key = (group, version, plural);
    let found = tables::RESOURCES.binary_search_by(|of| (&*of.group, &*of.version, &*of.name).cmp(&key));
    found.ok().map(|index| tables::RESOURCES[index])
}

/// All kinds by group, version and name: those of resources, their lists, and bodies that are never stored.
///
/// Options (`DeleteOptions` and its like) and `WatchEvent` are kinds of every group version; they are listed under
/// `v1` and `meta.k8s.io/v1` only.
pub fn kinds() -> &'static [Kind] {
    &tables::KINDS
}

/// The kind of this name (see [`kinds`]).
pub fn kind(group: &str, version: &str, name: &str) -> Option<&'static Kind> {
    let key = (group, version, name);
    let found = tables::KINDS.binary_search_by(|of| (&*of.group, &*of.version, &*of.name).cmp(&key));
    found.ok().map(|index| &tables::KINDS[index])
}

/// All types by the name that OpenAPI gives them, including those that it does not publish.
pub fn types() -> &'static [&'static Type] {
    &tables::TYPES
}

/// The type that OpenAPI publishes under this name: `io.k8s.api.core.v1.PodSpec`.
pub fn type_by_openapi(name: &str) -> Option<&'static Type> {
    tables::TYPES.binary_search_by(|of| (*of.openapi).cmp(name)).ok().map(|index| tables::TYPES[index])
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
