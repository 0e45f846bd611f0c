//! Node selectors, as affinities and volumes have them.

use flotilla_proto::value::Value;

use super::{labels, names};
use crate::field::{Errors, Path};

const RENAMED: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Returns the warning about a node label that has been renamed. Returns `None` for other labels.
pub fn deprecation(label: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == label).map(|(_, why)| *why)
}

/// Checks a `NodeSelector`; `any_value` accepts values that no label can have.
pub fn validate(selector: &Value, any_value: bool, path: &Path<'_>, errors: &mut Errors) {
    let terms = selector.list_at(&["nodeSelectorTerms"]);
    let path = path.child("nodeSelectorTerms");
    if terms.is_empty() {
        errors.required(&path, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        validate_term(term, any_value, &path.index(index), errors);
    }
}

/// Checks a `NodeSelectorTerm`.
pub fn validate_term(term: &Value, any_value: bool, path: &Path<'_>, errors: &mut Errors) {
    let list = path.child("matchExpressions");
    for (index, requirement) in term.list_at(&["matchExpressions"]).iter().enumerate() {
        validate_requirement(requirement, any_value, &list.index(index), errors);
    }
    let list = path.child("matchFields");
    for (index, requirement) in term.list_at(&["matchFields"]).iter().enumerate() {
        validate_field(requirement, &list.index(index), errors);
    }
}

fn validate_requirement(requirement: &Value, any_value: bool, path: &Path<'_>, errors: &mut Errors) {
    let values = requirement.list_at(&["values"]);
    let operator = requirement.str_at(&["operator"]);
    let place = path.child("values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(&place, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.forbidden(&place, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.required(&place, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.invalid_str(&path.child("operator"), operator, "not a valid selector operator"),
    }
    labels::validate_label_key(requirement.str_at(&["key"]), &path.child("key"), errors);
    if !any_value {
        for (index, value) in values.iter().enumerate() {
            names::check(&place.index(index), value.as_str().unwrap_or(""), names::label_value, errors);
        }
    }
}

fn validate_field(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    let values = requirement.list_at(&["values"]);
    let operator = requirement.str_at(&["operator"]);
    match operator {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(&path.child("values"), why);
        }
        "In" | "NotIn" => {}
        _ => errors.invalid_str(&path.child("operator"), operator, "not a valid selector operator"),
    }
    let key = requirement.str_at(&["key"]);
    if key != "metadata.name" {
        errors.invalid_str(&path.child("key"), key, "not a valid field selector key");
        return;
    }
    for (index, value) in values.iter().enumerate() {
        let path = path.child("values");
        names::check(&path.index(index), value.as_str().unwrap_or(""), names::dns1123_subdomain, errors);
    }
}

/// Warns of terms that use old names of node labels.
pub fn warn_terms(terms: &[Value], path: &Path<'_>, warnings: &mut Vec<String>) {
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("matchExpressions");
        for (index, expression) in term.list_at(&["matchExpressions"]).iter().enumerate() {
            let key = expression.str_at(&["key"]);
            if let Some(why) = deprecation(key) {
                let path = path.index(index);
                warnings.push(format!("{}: {key} is {why}", path.child("key")));
            }
        }
    }
}

/// Returns whether a `NodeSelector` has a value that no label can have.
pub fn has_impossible_value(selector: &Value) -> bool {
    selector.list_at(&["nodeSelectorTerms"]).iter().any(labels::has_impossible_value)
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn terms_are_checked() {
        let mut errors = Errors::default();
        let path = Path::root("required");
        validate(&value!({"nodeSelectorTerms": []}), false, &path, &mut errors);
        let term = value!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": []}],
            "matchFields": [{"key": "spec.x", "operator": "In", "values": ["y"]}]});
        validate(&value!({"nodeSelectorTerms": [term]}), false, &path, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "required.nodeSelectorTerms",
                "required.nodeSelectorTerms[0].matchExpressions[0].values",
                "required.nodeSelectorTerms[0].matchFields[0].key"
            ]
        );
    }
}
