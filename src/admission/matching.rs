//! Whether a write is one that a webhook or a policy wants to see.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::{Attributes, Concerns, GroupVersionKind, GroupVersionResource, Operation};
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

/// The version through which a write is what a rule names.
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
    /// None for any.
    names: Vec<String>,
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

    /// Whether a write is wanted, and as what: as the request names it, or as an equivalent resource that a rule names.
    ///
    /// # Errors
    /// 404 for a write that is wanted but for a namespace that is not there.
    pub fn find(&self, attributes: &Attributes<'_>) -> ApiResult<Option<Matched>> {
        if self.matched(&self.rules, attributes).is_none() && !(self.all_without_rules && self.rules.is_empty()) {
            return Ok(None);
        }
        if !self.selects_object(attributes) || self.matched(&self.excluded, attributes).is_some() {
            return Ok(None);
        }
        if !self.selects_namespace(attributes)? {
            return Ok(None);
        }
        Ok(match self.rules.is_empty() {
            true => Some(attributes.as_requested()),
            false => self.matched(&self.rules, attributes),
        })
    }

    fn matched(&self, rules: &[Rule], attributes: &Attributes<'_>) -> Option<Matched> {
        let own = &attributes.resource;
        if rules.iter().any(|rule| rule.wants(attributes, &own.group, &own.version, &own.resource)) {
            return Some(attributes.as_requested());
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let others = attributes.equivalents();
        rules.iter().find_map(|rule| {
            let wanted = |other: &&Arc<Served>| {
                let of = &other.resource;
                rule.wants(attributes, &of.group, &of.version, &of.name)
            };
            others.iter().find(wanted).map(|other| attributes.as_served(other))
        })
    }

    /// Whether the labels of the object, or of what it was, are selected.
    fn selects_object(&self, attributes: &Attributes<'_>) -> bool {
        if labels::selects_everything(&self.objects) {
            return true;
        }
        let selected = |object: &Option<Value>| {
            object
                .as_ref()
                .filter(|object| !object.at(&["metadata"]).is_null())
                .is_some_and(|object| labels::selector_matches(&self.objects, object.map_at(&["metadata", "labels"])))
        };
        selected(&attributes.object) || selected(&attributes.old)
    }

    /// Whether the labels of the namespace are selected. What is in none is not held back by them.
    fn selects_namespace(&self, attributes: &Attributes<'_>) -> ApiResult<bool> {
        if labels::selects_everything(&self.namespaces) {
            return Ok(true);
        }
        if attributes.namespace.is_empty() && attributes.resource.resource != "namespaces" {
            return Ok(true);
        }
        let namespace = attributes.namespace_labels()?;
        Ok(labels::selector_matches(&self.namespaces, namespace.as_object()))
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
            names: texts("resourceNames"),
        }
    }

    fn wants(&self, attributes: &Attributes<'_>, group: &str, version: &str, resource: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == ANY || item == wanted);
        self.is_in_scope(attributes, (group, version, resource) == ("", "v1", "namespaces"))
            && self.operations.contains(&attributes.operation)
            && has(&self.groups, group)
            && has(&self.versions, version)
            && self
                .resources
                .iter()
                .any(|(own, part)| (own == ANY || own == resource) && (part == ANY || *part == attributes.subresource))
            && (self.names.is_empty() || self.names.contains(&attributes.name))
    }

    fn is_in_scope(&self, attributes: &Attributes<'_>, is_namespace: bool) -> bool {
        let namespaced = !is_namespace && !attributes.namespace.is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Cluster => !namespaced,
            Scope::Namespaced => namespaced,
        }
    }
}
