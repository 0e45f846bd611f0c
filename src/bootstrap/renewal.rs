//! Decides how to reconcile a bootstrap object that exists, at a later start or while a server runs.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::BootstrapObject;
use super::trust;
use crate::access::rbac::uncovered;

/// Annotation that allows updates of an RBAC default; `false` forbids them.
const RBAC_AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// The same for flow control.
const FLOW_AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// The path of the date in a ConfigMap.
const DATE: [&str; 2] = ["data", "since"];

/// The rule for reconciling an existing object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileRule {
    /// It is not changed; only a missing one is created.
    Keep,
    /// Missing labels, annotations and grants are added, and none is removed. Nothing changes if the annotation of the
    /// object says `false`.
    Role,
    /// As [`ReconcileRule::Role`], for subjects; a binding that refers to another role is replaced.
    Binding,
    /// The spec is restored regardless of its annotation, except for the shares of an exempt level, which users may
    /// set.
    MandatoryFlow,
    /// The spec is restored if the annotation says `true`, or if there is no annotation and nobody has changed the
    /// spec.
    SuggestedFlow,
    /// The spec is restored.
    Spec,
    /// The ports are restored.
    ServicePorts,
    /// Labels, addresses and ports are set to those of the running servers.
    Addresses,
    /// A second range is added to the first one, and a missing condition is added.
    Range,
    /// `data` is set to the union of the stored certificates and names and those that this server wants other servers
    /// to trust. Nothing else changes.
    Trust,
    /// A missing or invalid date in `data` is set.
    Date,
}

/// When a server reconciles an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileTrigger {
    /// When a server starts.
    AtStart,
    /// Also while a server runs, if it is missing.
    Missing,
    /// Also while a server runs, if it is missing or differs.
    Always,
}

/// The action for an object that exists.
#[derive(Debug, Clone, PartialEq)]
pub enum Renewal {
    /// Nothing.
    Unchanged,
    /// Update it to this.
    Update(Value),
    /// Let the second manager apply its fields again.
    Apply,
    /// Delete it and create the wanted one.
    Replace,
}

impl BootstrapObject {
    /// Returns the action for the object if it exists as `existing`.
    pub fn renewal(&self, existing: &Value) -> Renewal {
        let mut renewed = existing.clone();
        match self.rule {
            ReconcileRule::Keep => return Renewal::Unchanged,
            ReconcileRule::Role | ReconcileRule::Binding if annotation(existing, RBAC_AUTOUPDATE) == "false" => {
                return Renewal::Unchanged;
            }
            ReconcileRule::Role => self.renew_role(&mut renewed),
            ReconcileRule::Binding => {
                if existing.get("roleRef") != self.object.get("roleRef") {
                    return Renewal::Replace;
                }
                add_missing_labels(&mut renewed, &self.object);
                add_missing_items(&mut renewed, self.object.list_at(&["subjects"]), "subjects");
            }
            ReconcileRule::MandatoryFlow => self.renew_flow(&mut renewed),
            ReconcileRule::SuggestedFlow => match flag(annotation(existing, FLOW_AUTOUPDATE)) {
                Some(true) => self.renew_flow(&mut renewed),
                Some(false) => return Renewal::Unchanged,
                None if existing.int_at(&["metadata", "generation"]) == Some(1) => self.renew_flow(&mut renewed),
                None => renewed.set_at(&["metadata", "annotations", FLOW_AUTOUPDATE], "false"),
            },
            ReconcileRule::Spec => self.copy(&mut renewed, &["spec"]),
            ReconcileRule::ServicePorts => self.copy(&mut renewed, &["spec", "ports"]),
            ReconcileRule::Addresses => {
                // The address family of a slice is immutable.
                if existing.get("addressType") != self.object.get("addressType") {
                    return Renewal::Replace;
                }
                for field in ["subsets", "endpoints", "ports"] {
                    if self.object.get(field).is_some() {
                        self.copy(&mut renewed, &[field]);
                    }
                }
                add_missing_labels(&mut renewed, &self.object);
            }
            ReconcileRule::Range => return self.renew_range(renewed),
            ReconcileRule::Trust => match trust::combined(existing.map_at(&["data"]), self.object.map_at(&["data"])) {
                Some(data) => renewed.set_at(&["data"], data),
                None => return Renewal::Unchanged,
            },
            ReconcileRule::Date => {
                if !is_date(existing.str_at(&DATE)) {
                    self.copy(&mut renewed, &DATE);
                }
            }
        }
        if renewed == *existing { Renewal::Unchanged } else { Renewal::Update(renewed) }
    }

    fn copy(&self, renewed: &mut Value, path: &[&str]) {
        renewed.set_at(path, self.object.at(path).clone());
    }

    fn renew_range(&self, mut renewed: Value) -> Renewal {
        let path = ["spec", "cidrs"];
        let (wanted, own) = (self.object.list_at(&path), renewed.list_at(&path));
        if wanted.len() == 2 && own == &wanted[..1] {
            self.copy(&mut renewed, &path);
            return Renewal::Update(renewed);
        }
        let mut conditions = renewed.list_at(&["status", "conditions"]).iter();
        let ready = conditions.find(|condition| condition.str_at(&["type"]) == "Ready");
        let is_unset = ready.is_none_or(|ready| ready.str_at(&["status"]) == "Unknown");
        let stays = renewed.at(&["metadata", "deletionTimestamp"]).is_null();
        if is_unset && stays && own == wanted { Renewal::Apply } else { Renewal::Unchanged }
    }

    fn renew_role(&self, renewed: &mut Value) {
        add_missing_labels(renewed, &self.object);
        let selectors = self.object.list_at(&["aggregationRule", "clusterRoleSelectors"]);
        if selectors.is_empty() {
            let missing = uncovered(renewed.list_at(&["rules"]), self.object.list_at(&["rules"]));
            add_missing_items(renewed, &missing, "rules");
            return;
        }
        let mut rule = renewed.remove_at(&["aggregationRule"]).unwrap_or_else(Value::object);
        add_missing_items(&mut rule, selectors, "clusterRoleSelectors");
        renewed.set_at(&["aggregationRule"], rule);
    }

    fn renew_flow(&self, renewed: &mut Value) {
        if flag(annotation(renewed, FLOW_AUTOUPDATE)) != Some(true) {
            renewed.set_at(&["metadata", "annotations", FLOW_AUTOUPDATE], "true");
        }
        let shares = renewed.at(&["spec", "exempt"]).clone();
        self.copy(renewed, &["spec"]);
        if !shares.is_null() && self.object.at(&["spec", "exempt"]).as_object().is_some() {
            renewed.set_at(&["spec", "exempt"], shares);
        }
    }
}

/// Returns whether an object of flow control claims to be maintained by the server.
pub fn claims_upkeep(object: &Value) -> bool {
    flag(annotation(object, FLOW_AUTOUPDATE)) == Some(true)
}

/// Parses a boolean as Go does. Returns `None` if the text is not one.
fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn is_date(text: &str) -> bool {
    Timestamp::parse(&format!("{text}T00:00:00Z")).is_ok()
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object.str_at(&["metadata", "annotations", key])
}

fn add_missing_labels(renewed: &mut Value, wanted: &Value) {
    for place in ["labels", "annotations"] {
        for (key, value) in wanted.map_at(&["metadata", place]).into_iter().flat_map(|map| map.iter()) {
            if renewed.at(&["metadata", place, key]).is_null() {
                renewed.set_at(&["metadata", place, key], value.clone());
            }
        }
    }
}

fn add_missing_items(renewed: &mut Value, wanted: &[Value], field: &str) {
    let missing: Vec<Value> = wanted.iter().filter(|item| !renewed.list_at(&[field]).contains(item)).cloned().collect();
    if missing.is_empty() {
        return;
    }
    match renewed.get_mut(field) {
        Some(Value::Array(items)) => items.extend(missing),
        _ => renewed.set_at(&[field], missing),
    }
}
