//! The documents of OpenAPI v3, and the content of each.

use std::collections::BTreeMap;

use flotilla_proto::catalogue;
use flotilla_proto::schema::Text;
use flotilla_proto::value::Value;

use super::custom::Custom;
use super::operations::{Answered, PathItem};
use super::paths::Paths;
use super::schemas::{self, GroupVersion};
use super::{custom, roots, v2};
use crate::enablement::Enablement;

/// The subject of a v3 document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DocumentId {
    /// `.well-known/openid-configuration`.
    IssuerConfiguration,
    /// `api`.
    Core,
    /// `apis`.
    Groups,
    /// `apis/GROUP`.
    Group(Text),
    /// `api/VERSION` and `apis/GROUP/VERSION`.
    Version(Text, Text),
    /// `openid/v1/jwks`.
    IssuerKeys,
    /// `version`.
    ServerVersion,
}

impl DocumentId {
    /// Returns the path of the document below `/openapi/v3/`.
    pub fn path(&self) -> String {
        match self {
            Self::IssuerConfiguration => ".well-known/openid-configuration".into(),
            Self::Core => "api".into(),
            Self::Groups => "apis".into(),
            Self::Group(group) => format!("apis/{group}"),
            Self::Version(group, version) if group.is_empty() => format!("api/{version}"),
            Self::Version(group, version) => format!("apis/{group}/{version}"),
            Self::IssuerKeys => "openid/v1/jwks".into(),
            Self::ServerVersion => "version".into(),
        }
    }

    /// Returns the subjects of all documents about enabled built-in kinds and about the server itself.
    pub fn built_in(enablement: &Enablement) -> Vec<Self> {
        let mut all = vec![Self::IssuerConfiguration, Self::Core, Self::Groups, Self::IssuerKeys, Self::ServerVersion];
        for group in catalogue::groups() {
            let mut versions = group.versions.iter().filter(|of| enablement.serves_any(group.name, of.name)).peekable();
            if !group.name.is_empty() && versions.peek().is_some() {
                all.push(Self::Group(group.name.into()));
            }
            all.extend(versions.map(|version| Self::Version(group.name.into(), version.name.into())));
        }
        all
    }
}

/// Paths and schemas of one document, or of all of them.
#[derive(Debug)]
pub(super) struct Content {
    /// Whether the document is about custom resources.
    pub custom: bool,
    /// Items by path.
    pub items: BTreeMap<String, PathItem>,
    /// Schemas by name, as v3 writes them.
    pub schemas: BTreeMap<String, Value>,
}

impl Content {
    /// Returns the content of a document. `custom` are the custom resources of its group version.
    pub fn new(id: &DocumentId, custom: &[&Custom], enablement: &Enablement) -> Self {
        let items: Vec<PathItem> = match id {
            DocumentId::IssuerConfiguration => vec![roots::issuer_configuration()],
            DocumentId::Core => vec![roots::core()],
            DocumentId::Groups => vec![roots::groups()],
            DocumentId::Group(group) => vec![roots::group(group)],
            DocumentId::IssuerKeys => vec![roots::issuer_keys()],
            DocumentId::ServerVersion => vec![roots::server_version()],
            DocumentId::Version(group, version) => version_items(group, version, custom, enablement),
        };
        let options = match id {
            DocumentId::Version(..) if !custom.is_empty() => custom_options(),
            DocumentId::Version(group, version) => options_of(group, version),
            _ => options_of("", "v1"),
        };
        let mut own = BTreeMap::new();
        for resource in custom {
            own.extend(custom::schemas(resource));
        }
        let mut names: Vec<String> = own.keys().cloned().collect();
        names.extend(items.iter().flat_map(names_in));
        Self {
            custom: !custom.is_empty(),
            schemas: schemas::closure(names, &own, &options),
            items: items.into_iter().map(|item| (item.path.clone(), item)).collect(),
        }
    }
}

fn version_items(group: &str, version: &str, custom: &[&Custom], enablement: &Enablement) -> Vec<PathItem> {
    if !custom.is_empty() {
        return custom.iter().flat_map(|of| Paths::new(&of.resource, true).items()).collect();
    }
    let mut items = vec![roots::version(group, version)];
    let version = catalogue::group(group).and_then(|of| of.versions.iter().find(|of| of.name == version));
    let resources = version.iter().flat_map(|of| of.resources);
    let resources = resources.filter(|of| enablement.serves(group, &of.version, &of.name));
    items.extend(resources.flat_map(|of| Paths::new(of, false).items()));
    items
}

/// Returns the names of the schemas that an item's operations refer to.
fn names_in(item: &PathItem) -> Vec<String> {
    let mut names = Vec::new();
    for operation in &item.operations {
        names.extend(operation.body.iter().map(|body| body.of.clone()));
        if let Answered::Object(name) = &operation.answer {
            names.push(name.clone());
        }
    }
    names
}

/// Returns the group versions in which a document lists `DeleteOptions` and `WatchEvent`: its own and the core group's.
fn options_of(group: &str, version: &str) -> Vec<GroupVersion> {
    let mut all: Vec<GroupVersion> = vec![("".into(), "v1".into())];
    if !group.is_empty() {
        all.push((group.to_owned().into(), version.to_owned().into()));
    }
    all
}

/// Returns the group versions in which documents of custom resources list `DeleteOptions` and `WatchEvent`: all except
/// those that only servers use.
fn custom_options() -> Vec<GroupVersion> {
    const SERVERS: [&str; 4] =
        ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];
    v2::options().into_iter().filter(|(group, _)| !SERVERS.contains(&&**group)).collect()
}
