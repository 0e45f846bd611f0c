//! One rule of a role.

use compact_str::CompactString;
use flotilla_proto::value::{Map, Value};

use crate::access::attributes::{Attributes, ResourceAttributes};

/// The wildcard in lists of verbs, groups, resources and paths.
const ALL: &str = "*";

/// A `PolicyRule`: verbs, and the resources or paths to which they apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Verbs.
    pub verbs: Words,
    /// API groups of the resources.
    pub groups: Words,
    /// Resources, as `pods`, `pods/log`, `*/scale` or `*`.
    pub resources: Words,
    /// Names of objects to which the rule is restricted; empty for all.
    pub names: Words,
    /// Paths that are not resources; a `*` at the end matches any rest.
    pub urls: Words,
}

type Words = Box<[CompactString]>;

impl Rule {
    /// Reads the rules of a role.
    pub fn list(role: &Value) -> Vec<Self> {
        role.list_at(&["rules"]).iter().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let words = |field| rule.list_at(&[field]).iter().filter_map(Value::as_str).map(CompactString::from).collect();
        Self {
            verbs: words("verbs"),
            groups: words("apiGroups"),
            resources: words("resources"),
            names: words("resourceNames"),
            urls: words("nonResourceURLs"),
        }
    }

    /// Returns the rule as a tree, without empty members.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (field, words) in [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ] {
            if !words.is_empty() {
                map.insert(field, words.iter().map(|word| word.as_str().into()).collect::<Vec<Value>>());
            }
        }
        map.into()
    }

    /// Returns whether the rule allows a request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        match attributes {
            Attributes::Resource(of) => {
                has(&self.verbs, of.verb)
                    && has(&self.groups, of.group)
                    && self.resources.iter().any(|own| covers(own, of))
                    && (self.names.is_empty() || self.names.iter().any(|name| name == of.name))
            }
            Attributes::Path { verb, path } => {
                has(&self.verbs, verb) && self.urls.iter().any(|own| leads_to(own, path))
            }
        }
    }
}

fn has(words: &[CompactString], wanted: &str) -> bool {
    words.iter().any(|own| own == wanted || own == ALL)
}

/// Returns whether a resource of a rule matches that of a request.
fn covers(own: &str, of: &ResourceAttributes<'_>) -> bool {
    if own == ALL {
        return true;
    }
    if of.subresource.is_empty() {
        return own == of.resource;
    }
    let below = |resource: &str| own.strip_prefix(resource).and_then(|rest| rest.strip_prefix('/'));
    below(of.resource) == Some(of.subresource) || below(ALL) == Some(of.subresource)
}

/// Returns whether the path `own` of a rule matches `path`: the two are equal, or `own` ends with `*` and `path` begins
/// with the text before it.
pub(super) fn leads_to(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn rule(rule: Value) -> Rule {
        Rule::list(&value!({"rules": [rule]})).remove(0)
    }

    fn asked<'a>(verb: &'a str, group: &'a str, resource: &'a str, name: &'a str) -> Attributes<'a> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes::Resource(ResourceAttributes {
            verb,
            group,
            resource,
            subresource,
            name,
            ..ResourceAttributes::default()
        })
    }

    #[test]
    fn verb_group_resource_and_name_must_match() {
        let some = rule(value!({"verbs": ["get"], "apiGroups": ["", "apps"], "resources": ["pods", "pods/log"]}));
        assert!(some.allows(&asked("get", "", "pods", "a")) && some.allows(&asked("get", "apps", "pods/log", "")));
        for other in [
            asked("list", "", "pods", ""),
            asked("get", "batch", "pods", ""),
            asked("get", "", "pods/exec", ""),
            asked("get", "", "po", ""),
        ] {
            assert!(!some.allows(&other), "{other:?}");
        }
        let scales = rule(value!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}));
        assert!(scales.allows(&asked("patch", "apps", "deployments/scale", "d")));
        assert!(!scales.allows(&asked("patch", "apps", "deployments", "d")));
        let named = rule(value!({"verbs": ["get"], "apiGroups": [""], "resources": ["*"], "resourceNames": ["a"]}));
        assert!(named.allows(&asked("get", "", "pods", "a")) && !named.allows(&asked("get", "", "pods", "")));
        assert!(!named.allows(&Attributes::Path { verb: "get", path: "/a" }));
    }

    #[test]
    fn a_star_at_the_end_matches_any_path_below() {
        let paths = rule(value!({"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]}));
        let may = |verb, path| paths.allows(&Attributes::Path { verb, path });
        assert!(may("get", "/metrics") && may("get", "/debug/") && may("get", "/debug/pprof/heap"));
        assert!(!may("post", "/metrics") && !may("get", "/metrics/slis") && !may("get", "/debug"));
        assert_eq!(paths.to_value(), value!({"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]}));
    }
}
