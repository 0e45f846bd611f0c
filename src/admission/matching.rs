//! Decides whether a write matches the rules of a webhook or a policy.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::{Concerns, MatchAttributes, Operation};
use crate::selector::LabelSelector;
use crate::served::Served;
use crate::status::ApiResult;
use crate::tables::{GroupVersionKind, GroupVersionResource};

const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
/// The wildcard in lists of rules.
const ANY: &str = "*";

/// The criteria for writes: the rules of a webhook, the match constraints of a policy, or the resources of a binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria {
    rules: Vec<MatchRule>,
    excluded: Vec<MatchRule>,
    /// Whether a write also matches through another version of the resource that a rule names (`matchPolicy:
    /// Equivalent`).
    equivalent: bool,
    /// Whether everything matches if there are no rules.
    all_without_rules: bool,
    namespaces: LabelSelector,
    objects: LabelSelector,
}

/// The version in which a write matches a rule.
#[derive(Debug, Clone)]
pub enum RuleVersion {
    /// The version of the request.
    Requested,
    /// Another version that serves the same objects.
    Other(Arc<Served>),
}

/// A write in the version in which it matches a rule.
#[derive(Debug, Clone)]
pub struct MatchedVersion {
    /// The resource that the rule named: that of the request, or an equivalent one.
    pub resource: GroupVersionResource,
    /// The kind of objects in that version.
    pub kind: GroupVersionKind,
    /// The resource in that version. `None` if it is the version of the request.
    pub other: Option<Arc<Served>>,
}

/// One `RuleWithOperations`, with the object names that policies may add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MatchRule {
    operations: Vec<Operation>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: RuleScope,
    /// Names of objects; empty for any.
    object_names: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum RuleScope {
    #[default]
    All,
    Cluster,
    Namespaced,
}

impl Criteria {
    /// Reads the criteria of a webhook, which already has its defaults.
    pub fn of_webhook(webhook: &Value) -> Self {
        Self::read(webhook, "rules")
    }

    /// Reads `matchConstraints` or `matchResources`, which already have their defaults. Absent ones match everything.
    pub fn of_resources(resources: &Value) -> Self {
        Self { all_without_rules: true, ..Self::read(resources, "resourceRules") }
    }

    fn read(of: &Value, field: &str) -> Self {
        let rules = |field: &str| of.list_at(&[field]).iter().map(MatchRule::of).collect();
        Self {
            rules: rules(field),
            excluded: rules("excludeResourceRules"),
            all_without_rules: false,
            equivalent: of.str_at(&["matchPolicy"]) == "Equivalent",
            namespaces: LabelSelector::of(of.at(&["namespaceSelector"])),
            objects: LabelSelector::of(of.at(&["objectSelector"])),
        }
    }

    /// Adds the operations and resources that may match.
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

    /// Returns the version in which a write matches: that of the request, or an equivalent one that a rule names.
    /// Returns `None` if the write does not match.
    ///
    /// # Errors
    /// 404 if the rules match but the namespace of the write does not exist.
    pub fn find(&self, write: &MatchAttributes<'_>) -> ApiResult<Option<RuleVersion>> {
        let version = match self.rules.is_empty() {
            true if self.all_without_rules => RuleVersion::Requested,
            _ => match self.version(&self.rules, write) {
                Some(version) => version,
                None => return Ok(None),
            },
        };
        let is_excluded = || self.version(&self.excluded, write).is_some();
        if !self.selects_object(write) || is_excluded() || !self.selects_namespace(write)? {
            return Ok(None);
        }
        Ok(Some(version))
    }

    /// Returns whether a write matches. Returns true also if that cannot be decided.
    pub fn may_find(&self, write: &MatchAttributes<'_>) -> bool {
        !matches!(self.find(write), Ok(None))
    }

    /// Returns the version in which one of the rules names the resource of a write. Returns `None` if no rule does.
    fn version(&self, rules: &[MatchRule], write: &MatchAttributes<'_>) -> Option<RuleVersion> {
        // Only the resource differs between versions, so the other conditions are checked once.
        let wanting = || rules.iter().filter(|rule| rule.wants(write));
        if wanting().any(|rule| rule.names_resource(write.served, write.subresource)) {
            return Some(RuleVersion::Requested);
        }
        if !self.equivalent {
            return None;
        }
        wanting()
            .find_map(|rule| write.equivalents().find(|other| rule.names_resource(other, write.subresource)))
            .map(RuleVersion::Other)
    }

    /// Returns whether the selector matches the labels of the object or of the stored object.
    fn selects_object(&self, write: &MatchAttributes<'_>) -> bool {
        if self.objects.is_everything() {
            return true;
        }
        let selected = |object: Option<&Value>| {
            object
                .filter(|object| !object.at(&["metadata"]).is_null())
                .is_some_and(|object| self.objects.matches_labels(object.map_at(&["metadata", "labels"])))
        };
        selected(write.object) || selected(write.old)
    }

    /// Returns whether the selector matches the labels of the namespace. Cluster-scoped objects always match.
    fn selects_namespace(&self, write: &MatchAttributes<'_>) -> ApiResult<bool> {
        if self.namespaces.is_everything() {
            return Ok(true);
        }
        if write.namespace.is_empty() && !write.is_of_namespaces() {
            return Ok(true);
        }
        Ok(self.namespaces.matches_labels(write.namespace_labels()?.as_object()))
    }
}

impl MatchRule {
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
                "Cluster" => RuleScope::Cluster,
                "Namespaced" => RuleScope::Namespaced,
                _ => RuleScope::All,
            },
            object_names: texts("resourceNames"),
        }
    }

    /// Returns whether the rule matches a write, apart from its resource and version.
    fn wants(&self, write: &MatchAttributes<'_>) -> bool {
        self.is_in_scope(write)
            && self.operations.contains(&write.operation)
            && (self.object_names.is_empty() || self.object_names.iter().any(|name| name == write.name))
    }

    /// Returns whether the rule names a resource in its version.
    fn names_resource(&self, served: &Served, subresource: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == ANY || item == wanted);
        let of = &served.resource;
        let is_named =
            |(own, part): &(String, String)| (own == ANY || *own == *of.name) && (part == ANY || part == subresource);
        has(&self.groups, &of.group) && has(&self.versions, &of.version) && self.resources.iter().any(is_named)
    }

    fn is_in_scope(&self, write: &MatchAttributes<'_>) -> bool {
        let namespaced = !write.is_of_namespaces() && !write.namespace.is_empty();
        match self.scope {
            RuleScope::All => true,
            RuleScope::Cluster => !namespaced,
            RuleScope::Namespaced => namespaced,
        }
    }
}
