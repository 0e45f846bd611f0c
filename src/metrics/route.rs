//! The route of a request, and the labels that follow from it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::served::Served;

/// The verb of a request, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Reads a collection.
    List,
    /// Follows changes.
    Watch,
    /// Creates an object.
    Post,
    /// Replaces an object.
    Put,
    /// Changes an object by a patch.
    Patch,
    /// Changes an object by server-side apply.
    Apply,
    /// Deletes an object or a collection.
    Delete,
    /// Connects to something behind an object.
    Connect,
}

impl Verb {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Apply => "APPLY",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// Returns whether the size of the answer is measured.
    pub(super) const fn reads(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// The scope of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// One object.
    Resource,
    /// A namespace.
    Namespace,
    /// The whole cluster.
    Cluster,
}

impl Scope {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Namespace => "namespace",
            Self::Cluster => "cluster",
        }
    }
}

/// Whether a request is a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DryRun {
    /// It is not.
    No,
    /// It is one, in all stages.
    All,
    /// The value of `dryRun` is invalid.
    Invalid,
}

impl DryRun {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::No => "",
            Self::All => "All",
            Self::Invalid => "invalid",
        }
    }
}

/// The route of a request, from which its labels follow.
#[derive(Debug, Clone)]
pub enum Route {
    /// Objects of a resource.
    Resource {
        /// The resource.
        served: Arc<Served>,
        /// Index of the subresource among those of the resource.
        subresource: Option<u8>,
        /// The verb.
        verb: Verb,
        /// The scope.
        scope: Scope,
        /// Whether it is a dry run.
        dry_run: DryRun,
    },
    /// A document, under the name that metrics have for it.
    Document(&'static str),
}

/// A combination of labels: the identity of the resource or document, and the rest in bits. A built-in resource is
/// identified by its address. Nothing else can get this address, since the handles keep the resource alive. A custom
/// resource is replaced with every change of its definition. It is identified by a hash of its names, which is larger
/// than any address.
pub(super) type SeriesKey = (u64, u64);

/// Returns the identity of a resource.
fn identity(served: &Arc<Served>) -> u64 {
    match &served.custom {
        None => Arc::as_ptr(served) as u64,
        Some(_) => {
            let mut hasher = DefaultHasher::new();
            let of = &served.resource;
            (&of.group, &of.version, &of.name).hash(&mut hasher);
            hasher.finish() | 1 << 63
        }
    }
}

impl Route {
    pub(super) fn key(&self, code: u16) -> SeriesKey {
        match self {
            Self::Resource { served, subresource, verb, scope, dry_run } => {
                let subresource = match (&served.custom, subresource) {
                    (_, None) => 0,
                    (None, Some(at)) => u64::from(*at) + 1,
                    // A change of the definition may add and remove subresources.
                    (Some(_), Some(at)) => u64::from(self.subresource_at(*at) == "scale") + 1,
                };
                let bits = subresource << 32 | (*verb as u64) << 24 | (*scope as u64) << 20 | (*dry_run as u64) << 16;
                (identity(served), bits | u64::from(code))
            }
            Self::Document(name) => (name.as_ptr() as u64, u64::from(code)),
        }
    }

    pub(super) fn is_custom(&self) -> bool {
        matches!(self, Self::Resource { served, .. } if served.custom.is_some())
    }

    fn subresource_at(&self, at: u8) -> &str {
        match self {
            Self::Resource { served, .. } => {
                served.resource.subresources.get(usize::from(at)).map_or("", |subresource| &subresource.name)
            }
            Self::Document(_) => "",
        }
    }

    /// Returns the labels other than the code and the dry run, by name.
    pub(super) fn labels(&self) -> [(&'static str, &str); 7] {
        match self {
            Self::Resource { served, subresource, verb, scope, .. } => {
                let subresources = &served.resource.subresources;
                let subresource = subresource.and_then(|at| subresources.get(usize::from(at)));
                [
                    ("component", "apiserver"),
                    ("group", served.group()),
                    ("resource", &served.resource.name),
                    ("scope", scope.name()),
                    ("subresource", subresource.map_or("", |subresource| &subresource.name)),
                    ("verb", verb.name()),
                    ("version", &served.resource.version),
                ]
            }
            Self::Document(name) => {
                let component = if matches!(*name, "api" | "apis") { "apiserver" } else { "" };
                let empty = |label| (label, "");
                let (subresource, verb) = (("subresource", *name), ("verb", "GET"));
                [
                    ("component", component),
                    empty("group"),
                    empty("resource"),
                    empty("scope"),
                    subresource,
                    verb,
                    empty("version"),
                ]
            }
        }
    }

    /// Returns the verb, and the resource with its group and subresource, as in `apps/deployments/scale`.
    pub fn named(&self) -> (&'static str, String) {
        let labels = self.labels();
        let part = |name| labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| *value);
        (self.verb().name(), slash_joined(["group", "resource", "subresource"].map(part)))
    }

    /// Returns whether the request is long-running: its client decides its duration.
    pub const fn lasts(&self) -> bool {
        matches!(self.verb(), Verb::Watch | Verb::Connect)
    }

    pub(super) const fn verb(&self) -> Verb {
        match self {
            Self::Resource { verb, .. } => *verb,
            Self::Document(_) => Verb::Get,
        }
    }

    pub(super) const fn dry_run(&self) -> DryRun {
        match self {
            Self::Resource { dry_run, .. } => *dry_run,
            Self::Document(_) => DryRun::No,
        }
    }
}

/// Joins the parts of the name of a resource by slashes, without empty ones.
pub fn slash_joined(parts: [&str; 3]) -> String {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}
