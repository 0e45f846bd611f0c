//! The rules of a FlowSchema: the users and the requests that it matches.

use compact_str::{CompactString, format_compact};
use flotilla_proto::value::Value;

use crate::access::{Attributes, ResourceAttributes, User};

/// The wildcard in lists, and in names of subjects.
const ALL: &str = "*";

/// One rule: users, and requests of these users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowRule {
    subjects: Box<[Subject]>,
    resources: Box<[ResourceRule]>,
    paths: Box<[PathRule]>,
}

impl FlowRule {
    /// Reads the rules of a FlowSchema.
    pub fn list(schema: &Value) -> Box<[Self]> {
        schema.list_at(&["spec", "rules"]).iter().map(Self::read).collect()
    }

    /// Returns the rule that matches every request of these groups' members.
    pub fn everything_of(groups: &[&str]) -> Self {
        let all = || Words::All;
        Self {
            subjects: groups.iter().map(|group| Subject::Group((*group).into())).collect(),
            resources: [ResourceRule {
                verbs: all(),
                groups: all(),
                resources: all(),
                namespaces: all(),
                cluster: true,
            }]
            .into(),
            paths: [PathRule { verbs: all(), paths: [ALL.into()].into() }].into(),
        }
    }

    fn read(rule: &Value) -> Self {
        Self {
            subjects: rule.list_at(&["subjects"]).iter().filter_map(Subject::read).collect(),
            resources: rule.list_at(&["resourceRules"]).iter().map(ResourceRule::read).collect(),
            paths: rule.list_at(&["nonResourceRules"]).iter().map(PathRule::read).collect(),
        }
    }

    /// Returns whether the rule matches a request of a user.
    pub fn is_for(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        self.subjects.iter().any(|subject| subject.is(user))
            && match attributes {
                Attributes::Resource(of) => self.resources.iter().any(|rule| rule.is_for(of)),
                Attributes::Path { verb, path } => self.paths.iter().any(|rule| rule.is_for(verb, path)),
            }
    }
}

/// Users that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Everybody,
    /// The user of this name, who may be a service account.
    User(CompactString),
    /// The users whose names begin like this: the service accounts of a namespace.
    Prefix(CompactString),
    Group(CompactString),
}

impl Subject {
    /// Reads a subject. `None` if it is of an unknown kind.
    fn read(subject: &Value) -> Option<Self> {
        Some(match subject.str_at(&["kind"]) {
            "User" => match subject.str_at(&["user", "name"]) {
                ALL => Self::Everybody,
                name => Self::User(name.into()),
            },
            "Group" => match subject.str_at(&["group", "name"]) {
                ALL => Self::Everybody,
                name => Self::Group(name.into()),
            },
            "ServiceAccount" => {
                let account = |field| subject.str_at(&["serviceAccount", field]);
                let all = format_compact!("system:serviceaccount:{}:", account("namespace"));
                match account("name") {
                    ALL => Self::Prefix(all),
                    name => Self::User(all + name),
                }
            }
            _ => return None,
        })
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::Everybody => true,
            Self::User(name) => *name == user.name,
            Self::Prefix(prefix) => user.name.starts_with(prefix.as_str()),
            Self::Group(group) => user.is_member(group),
        }
    }
}

/// A list of words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Words {
    All,
    These(Box<[CompactString]>),
}

impl Words {
    /// Reads a list. The wildcard alone means all words.
    fn read(rule: &Value, field: &str) -> Self {
        let words: Box<[_]> =
            rule.list_at(&[field]).iter().filter_map(Value::as_str).map(CompactString::from).collect();
        if *words == [ALL] { Self::All } else { Self::These(words) }
    }

    fn has(&self, is_it: impl Fn(&CompactString) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::These(words) => words.iter().any(is_it),
        }
    }
}

/// Requests that a rule matches, for objects.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResourceRule {
    verbs: Words,
    groups: Words,
    /// Resources, as in `pods` or `pods/log`.
    resources: Words,
    namespaces: Words,
    /// Whether it matches requests without a namespace.
    cluster: bool,
}

impl ResourceRule {
    fn read(rule: &Value) -> Self {
        Self {
            verbs: Words::read(rule, "verbs"),
            groups: Words::read(rule, "apiGroups"),
            resources: Words::read(rule, "resources"),
            namespaces: Words::read(rule, "namespaces"),
            cluster: rule.is_true_at(&["clusterScope"]),
        }
    }

    fn is_for(&self, of: &ResourceAttributes<'_>) -> bool {
        self.verbs.has(|verb| verb == of.verb)
            && self.resources.has(|resource| is_of(resource, of))
            && self.groups.has(|group| group == of.group)
            && match of.namespace {
                "" => self.cluster,
                namespace => self.namespaces.has(|own| own == namespace),
            }
    }
}

/// Returns whether a text names a resource, with its subresource if there is one.
fn is_of(resource: &str, of: &ResourceAttributes<'_>) -> bool {
    let Some(rest) = resource.strip_prefix(of.resource) else { return false };
    match of.subresource {
        "" => rest.is_empty(),
        subresource => rest.strip_prefix('/') == Some(subresource),
    }
}

/// Requests that a rule matches, for paths that are not those of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathRule {
    verbs: Words,
    paths: Box<[CompactString]>,
}

impl PathRule {
    fn read(rule: &Value) -> Self {
        let paths = rule.list_at(&["nonResourceURLs"]).iter().filter_map(Value::as_str);
        Self { verbs: Words::read(rule, "verbs"), paths: paths.map(CompactString::from).collect() }
    }

    fn is_for(&self, verb: &str, path: &str) -> bool {
        self.verbs.has(|own| own == verb) && self.paths.iter().any(|own| leads_to(own, path))
    }
}

/// Returns whether a path of a rule is the path of a request, or leads to it: `/a`, `/a/` and `/a/*` all lead to
/// `/a/b`.
fn leads_to(own: &str, path: &str) -> bool {
    if own == ALL || own == path {
        return true;
    }
    let folder = own.strip_suffix('*').unwrap_or(own);
    let folder = folder.strip_suffix('/').unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
