//! Whether a write is one that a webhook or a policy wants to see.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::{Concerns, GroupVersionKind, GroupVersionResource, Operation, Subject};
use crate::rules::labels;
use crate::served::Served;
use crate::status::ApiResult;

const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
/// Stands for everything in lists of rules.
const ANY: &str = "*";

/// What is wanted of writes: the rules of a webhook, the match constraints of a policy, or the resources of a binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether a write through another version of the resource that a rule names is wanted, too.
    equivalent: bool,
    /// Whether everything is wanted where there are no rules.
    all_without_rules: bool,
    namespaces: Value,
    objects: Value,
}

/// The version in which a write is what a rule names.
#[derive(Debug, Clone)]
pub enum Version {
    /// That of the request.
    Requested,
    /// Another one that serves the same objects.
    Other(Arc<Served>),
}

/// A write in the version in which it is what a rule names.
#[derive(Debug, Clone)]
pub struct Matched {
    /// The resource that the rule named: that of the request, or an equivalent one.
    pub resource: GroupVersionResource,
    /// The kind of objects in that version.
    pub kind: GroupVersionKind,
    /// The resource as that version serves it, where it is not that of the request.
    pub other: Option<Arc<Served>>,
}

/// One `RuleWithOperations`, with the names that policies may add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rule {
    operations: Vec<Operation>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Names of objects; none for any.
    object_names: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    All,
    Cluster,
    Namespaced,
}

impl Criteria {
    /// Reads what a webhook wants to see; it has its defaults.
    pub fn of_webhook(webhook: &Value) -> Self {
        Self::read(webhook, "rules")
    }

    /// Reads `matchConstraints` or `matchResources`, which have their defaults; absent ones want everything.
    pub fn of_resources(resources: &Value) -> Self {
        Self { all_without_rules: true, ..Self::read(resources, "resourceRules") }
    }

    fn read(of: &Value, field: &str) -> Self {
        let selector = |field: &str| of.get(field).filter(|of| !of.is_null()).cloned().unwrap_or_else(Value::object);
        let rules = |field: &str| of.list_at(&[field]).iter().map(Rule::of).collect();
        Self {
            rules: rules(field),
            excluded: rules("excludeResourceRules"),
            all_without_rules: false,
            equivalent: of.str_at(&["matchPolicy"]) == "Equivalent",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// Adds the operations and resources that may be wanted.
    pub fn concern(&self, concerns: &mut Concerns) {
        if self.rules.is_empty() && self.all_without_rules {
            concerns.add(None, &OPERATIONS);
        }
        for rule in &self.rules {
            for (resource, _) in &rule.resources {
                concerns.add(Some(&**resource).filter(|resource| *resource != ANY), &rule.operations);
            }
        }
    }

    /// Whether a write is wanted, and in which version: in that of the request, or in another that a rule names.
    ///
    /// # Errors
    /// 404 for a write that is wanted but for a namespace that is not there.
    pub fn find(&self, subject: &Subject<'_>) -> ApiResult<Option<Version>> {
        let version = match self.rules.is_empty() {
            true if self.all_without_rules => Version::Requested,
            _ => match self.version(&self.rules, subject) {
                Some(version) => version,
                None => return Ok(None),
            },
        };
        let is_excluded = || self.version(&self.excluded, subject).is_some();
        if !self.selects_object(subject) || is_excluded() || !self.selects_namespace(subject)? {
            return Ok(None);
        }
        Ok(Some(version))
    }

    /// Whether a write is wanted, or it cannot be told.
    pub fn may_find(&self, subject: &Subject<'_>) -> bool {
        !matches!(self.find(subject), Ok(None))
    }

    /// The version in which one of some rules names a write.
    fn version(&self, rules: &[Rule], subject: &Subject<'_>) -> Option<Version> {
        // What rules say of everything but the resource is the same in all versions.
        let wanting = || rules.iter().filter(|rule| rule.wants(subject));
        if wanting().any(|rule| rule.names_resource(subject.served, subject.subresource)) {
            return Some(Version::Requested);
        }
        if !self.equivalent {
            return None;
        }
        wanting()
            .find_map(|rule| subject.equivalents().find(|other| rule.names_resource(other, subject.subresource)))
            .map(Version::Other)
    }

    /// Whether the labels of the object, or of what it was, are selected.
    fn selects_object(&self, subject: &Subject<'_>) -> bool {
        if labels::selects_everything(&self.objects) {
            return true;
        }
        let selected = |object: Option<&Value>| {
            object
                .filter(|object| !object.at(&["metadata"]).is_null())
                .is_some_and(|object| labels::selector_matches(&self.objects, object.map_at(&["metadata", "labels"])))
        };
        selected(subject.object) || selected(subject.old)
    }

    /// Whether the labels of the namespace are selected. What is in none is not held back by them.
    fn selects_namespace(&self, subject: &Subject<'_>) -> ApiResult<bool> {
        if labels::selects_everything(&self.namespaces) {
            return Ok(true);
        }
        if subject.namespace.is_empty() && !subject.is_of_namespaces() {
            return Ok(true);
        }
        Ok(labels::selector_matches(&self.namespaces, subject.namespace_labels()?.as_object()))
    }
}

impl Rule {
    fn of(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            rule.list_at(&[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let named = texts("operations");
        let is_named = |operation: &Operation| named.iter().any(|name| name == ANY || name == operation.name());
        let resources = texts("resources").into_iter().map(|text| match text.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (text, String::new()),
        });
        Self {
            operations: OPERATIONS.into_iter().filter(is_named).collect(),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: resources.collect(),
            scope: match rule.str_at(&["scope"]) {
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::All,
            },
            object_names: texts("resourceNames"),
        }
    }

    /// Whether it wants a write, if it names a version in which the resource is served.
    fn wants(&self, subject: &Subject<'_>) -> bool {
        self.is_in_scope(subject)
            && self.operations.contains(&subject.operation)
            && (self.object_names.is_empty() || self.object_names.iter().any(|name| name == subject.name))
    }

    /// Whether it names a resource in a version.
    fn names_resource(&self, served: &Served, subresource: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == ANY || item == wanted);
        let of = &served.resource;
        let is_named =
            |(own, part): &(String, String)| (own == ANY || *own == *of.name) && (part == ANY || part == subresource);
        has(&self.groups, &of.group) && has(&self.versions, &of.version) && self.resources.iter().any(is_named)
    }

    fn is_in_scope(&self, subject: &Subject<'_>) -> bool {
        let namespaced = !subject.is_of_namespaces() && !subject.namespace.is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Cluster => !namespaced,
            Scope::Namespaced => namespaced,
        }
    }
}
