//! Parses URL paths (Kubernetes API concepts, "Resource URIs").

use std::borrow::Cow;

use compact_str::CompactString;

/// Subresources that lead to something behind an object.
const CONNECTS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// The kinds of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// Objects: a collection, one object, or a part of one.
    Resource(ResourcePath),
    /// Anything else: discovery, health, metrics, documents, unknown paths.
    Other,
    /// `/api/v1/watch` without a resource.
    WatchOfNothing,
}

/// A path below `/api/VERSION` or `/apis/GROUP/VERSION`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePath {
    /// API group; empty for the core group.
    pub group: CompactString,
    /// API version.
    pub version: CompactString,
    /// Whether the path begins with the deprecated `watch/`.
    pub watch: bool,
    /// Namespace. `None` when the path has none, or an empty one.
    pub namespace: Option<CompactString>,
    /// Resource, as it stands in the path.
    pub resource: CompactString,
    /// Name of the object.
    pub name: Option<CompactString>,
    /// Subresource.
    pub subresource: Option<CompactString>,
    /// The rest of the path after the subresource, with slashes: the path of a proxy request.
    pub rest: Option<CompactString>,
}

impl ResourcePath {
    /// Returns whether the path leads to something behind an object, such as a container, for as long as the client
    /// wants.
    pub fn connects(&self) -> bool {
        self.subresource.as_deref().is_some_and(|name| CONNECTS.contains(&name))
    }
}

/// Reads a decoded path. A path without a slash at its start, as in `CONNECT` and `OPTIONS *`, names no object.
pub fn parse(path: &str) -> PathKind {
    let Some(rest) = path.strip_prefix('/') else { return PathKind::Other };
    let mut segments = rest.split('/').peekable();
    let (group, version) = match (segments.next(), segments.next(), segments.peek().copied()) {
        (Some("api"), Some(version), Some(next)) if !version.is_empty() && !next.is_empty() => ("", version),
        (Some("apis"), Some(group), Some(version)) if !group.is_empty() && !version.is_empty() => {
            segments.next();
            if segments.peek().is_none_or(|next| next.is_empty()) {
                return PathKind::Other;
            }
            (group, version)
        }
        (Some("api"), Some(version), Some(""))
            if !version.is_empty() && path.trim_end_matches('/').matches('/').count() > 1 =>
        {
            // An empty segment in the middle is a resource with an empty name.
            return if segments.clone().nth(1).is_some() {
                PathKind::Resource(ResourcePath { version: version.into(), ..ResourcePath::default() })
            } else {
                PathKind::Other
            };
        }
        _ => return PathKind::Other,
    };
    let mut of = ResourcePath { group: group.into(), version: version.into(), ..ResourcePath::default() };
    let mut first = segments.next();
    if first == Some("watch") {
        of.watch = true;
        first = segments.next();
        if first.is_none_or(str::is_empty) {
            return PathKind::WatchOfNothing;
        }
    }
    let Some(first) = first else { return PathKind::Other };
    if first == "namespaces" {
        namespaced(&mut of, segments)
    } else {
        objects(&mut of, first, segments)
    }
    PathKind::Resource(of)
}

/// Parses the path after `namespaces`: the namespaces themselves, or objects in one.
fn namespaced<'a>(of: &mut ResourcePath, mut segments: impl Iterator<Item = &'a str>) {
    let namespace = segments.next().filter(|name| !name.is_empty());
    match (namespace, segments.next()) {
        (None, None | Some("")) => of.resource = "namespaces".into(),
        (namespace, Some(resource)) if !resource.is_empty() && !matches!(resource, "status" | "finalize") => {
            of.namespace = namespace.map(Into::into);
            objects(of, resource, segments);
        }
        (name, subresource) => {
            of.resource = "namespaces".into();
            of.name = name.map(Into::into);
            // Subresources of a namespace are authorized in that namespace, though it is cluster-scoped.
            of.subresource = subresource.filter(|s| !s.is_empty()).map(Into::into);
            let rest: Vec<&str> = segments.collect();
            of.rest = rest_of(&rest);
        }
    }
}

fn objects<'a>(of: &mut ResourcePath, resource: &str, mut segments: impl Iterator<Item = &'a str>) {
    of.resource = resource.into();
    of.name = segments.next().filter(|s| !s.is_empty()).map(Into::into);
    of.subresource = segments.next().filter(|s| !s.is_empty()).map(Into::into);
    let rest: Vec<&str> = segments.collect();
    of.rest = rest_of(&rest);
}

fn rest_of(segments: &[&str]) -> Option<CompactString> {
    match segments {
        [] | [""] => None,
        [one] => Some((*one).into()),
        several => Some(several.join("/").into()),
    }
}

/// Decodes `%XX` of a whole path, before it is split, so that an escaped slash also splits. Replaces invalid UTF-8.
pub fn decode(path: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(path).decode_utf8_lossy()
}

/// Returns whether every `%` of an undecoded path begins an escape (RFC 3986, section 2.1).
pub fn is_escaped_well(path: &str) -> bool {
    let is_escape = |rest: &str| rest.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    path.split('%').skip(1).all(is_escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_have_two_digits() {
        for (path, well) in [("/a", true), ("/%41%2f", true), ("/%zz", false), ("/%4", false), ("/%", false)] {
            assert_eq!(is_escaped_well(path), well, "{path}");
        }
    }

    fn summary(path: &str) -> String {
        match parse(path) {
            PathKind::Resource(of) => format!(
                "{}/{} {}{} ns={} name={} sub={} rest={}",
                of.group,
                of.version,
                if of.watch { "watch " } else { "" },
                of.resource,
                of.namespace.as_deref().unwrap_or("-"),
                of.name.as_deref().unwrap_or("-"),
                of.subresource.as_deref().unwrap_or("-"),
                of.rest.as_deref().unwrap_or("-"),
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_parsed_as_in_kubernetes() {
        for (path, want) in [
            ("/api/v1/pods", "/v1 pods ns=- name=- sub=- rest=-"),
            ("/api/v1/namespaces/n/pods/p/log", "/v1 pods ns=n name=p sub=log rest=-"),
            ("/api/v1/namespaces/n/pods/p/proxy/a/b", "/v1 pods ns=n name=p sub=proxy rest=a/b"),
            ("/apis/apps/v1/namespaces/n/deployments/", "apps/v1 deployments ns=n name=- sub=- rest=-"),
            ("/api/v1/namespaces", "/v1 namespaces ns=- name=- sub=- rest=-"),
            ("/api/v1/namespaces/n/", "/v1 namespaces ns=- name=n sub=- rest=-"),
            ("/api/v1/namespaces/n/finalize", "/v1 namespaces ns=- name=n sub=finalize rest=-"),
            ("/api/v1/namespaces//secrets", "/v1 secrets ns=- name=- sub=- rest=-"),
            ("/api/v1/watch/namespaces/n/secrets/a", "/v1 watch secrets ns=n name=a sub=- rest=-"),
            ("/api/v1/watch/namespaces/n", "/v1 watch namespaces ns=- name=n sub=- rest=-"),
            ("/api/v1/namespaces/n/secrets/a b", "/v1 secrets ns=n name=a b sub=- rest=-"),
            ("/api/v1/watch", "WatchOfNothing"),
            ("/api/v1//namespaces/n", "/v1  ns=- name=- sub=- rest=-"),
            ("/api", "Other"),
            ("/api/", "Other"),
            ("/api/v1", "Other"),
            ("/api/v1/", "Other"),
            ("/apis/apps", "Other"),
            ("/apis/apps/v1", "Other"),
            ("/apis/apps/v1/", "Other"),
            ("/healthz", "Other"),
            ("/", "Other"),
            ("//api/v1", "Other"),
            ("", "Other"),
            ("*", "Other"),
            ("x:1", "Other"),
            ("\u{e9}", "Other"),
        ] {
            assert_eq!(summary(path), want, "{path}");
        }
    }
}
