//! Reads selectors in access reviews: given as text, or as requirements.

use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::rules::labels::{self, SelectorOptions};
use crate::selector::{FieldSelector, LabelSelector};

/// Path of the field in errors about selectors.
const PLACE: &str = "spec.resourceAttributes";

/// The selectors of a review.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    /// The field selector as text, without the parts that are invalid.
    pub(super) fields: String,
    /// The label selector as text, without the parts that are invalid.
    pub(super) labels: String,
    /// Errors about invalid parts, for the status.
    pub(super) errors: Vec<String>,
}

/// Checks the form of both selectors of `resourceAttributes`.
pub(super) fn validate(attributes: &Value, errors: &mut Errors) {
    let path = Path::root(PLACE);
    for (member, labels) in [("fieldSelector", false), ("labelSelector", true)] {
        let selector = attributes.at(&[member]);
        if selector.is_null() {
            continue;
        }
        let path = path.child(member);
        let (raw, requirements) = (selector.str_at(&["rawSelector"]), selector.list_at(&["requirements"]));
        match (raw, requirements) {
            ("", []) => {
                let why = format!("when {} is specified, requirements or rawSelector is required", path);
                errors.required(&path.child("requirements"), why);
            }
            ("", _) | (_, []) => {}
            _ => {
                let why = "may not specified at the same time as requirements";
                errors.invalid_str(&path.child("rawSelector"), raw, why);
            }
        }
        for (index, requirement) in requirements.iter().enumerate() {
            let place = path.child("requirements");
            let place = place.index(index);
            if labels {
                let options = SelectorOptions { any_value: false, any_operator: true };
                labels::validate_requirement(requirement, options, &place, errors);
            } else {
                validate_field(requirement, &place, errors);
            }
        }
    }
}

fn validate_field(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    if requirement.str_at(&["key"]).is_empty() {
        errors.required(&path.child("key"), "must be specified");
    }
    match (requirement.str_at(&["operator"]), requirement.list_at(&["values"])) {
        ("In" | "NotIn", []) => {
            errors.required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        ("Exists" | "DoesNotExist", [_, ..]) => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(ErrorKind::Forbidden, &path.child("values"), "", why);
        }
        _ => {}
    }
}

/// Reads both selectors of `resourceAttributes`. Leaves out invalid requirements: the rest selects more, and the
/// decision covers at least the objects that the review asks about.
pub(super) fn read(attributes: &Value) -> Selected {
    let mut selected = Selected::default();
    let mut read = |member: &str, parses: &dyn Fn(&str) -> bool, text: &dyn Fn(&Value) -> Option<String>| {
        let selector = attributes.at(&[member]);
        let (raw, requirements) = (selector.str_at(&["rawSelector"]), selector.list_at(&["requirements"]));
        let terms: Vec<String> = match requirements {
            [] if raw.is_empty() => return String::new(),
            [] => Some(raw.to_owned()).filter(|raw| parses(raw)).into_iter().collect(),
            _ => requirements.iter().filter_map(text).filter(|term| parses(term)).collect(),
        };
        if terms.len() < requirements.len().max(1) {
            let how = if terms.is_empty() { "ignored" } else { "partially ignored" };
            selected.errors.push(format!("{PLACE}.{member} {how} due to parse error"));
        }
        terms.join(",")
    };
    let fields = read("fieldSelector", &|text| FieldSelector::parse(text).is_ok(), &field_text);
    let labels = read("labelSelector", &|text| LabelSelector::parse(text).is_ok(), &label_text);
    (selected.fields, selected.labels) = (fields, labels);
    selected
}

/// Formats a requirement on a field as text. `None` if it does not compare with exactly one value.
fn field_text(requirement: &Value) -> Option<String> {
    let sign = match requirement.str_at(&["operator"]) {
        "In" => "=",
        "NotIn" => "!=",
        _ => return None,
    };
    let [value] = requirement.list_at(&["values"]) else { return None };
    let escaped: String = value.as_str()?.chars().flat_map(escape).collect();
    Some(format!("{}{sign}{escaped}", requirement.str_at(&["key"])))
}

fn escape(c: char) -> impl Iterator<Item = char> {
    matches!(c, '\\' | ',' | '=').then_some('\\').into_iter().chain([c])
}

fn label_text(requirement: &Value) -> Option<String> {
    let (key, values) = (requirement.str_at(&["key"]), requirement.list_at(&["values"]));
    let values = || values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",");
    match requirement.str_at(&["operator"]) {
        "In" => Some(format!("{key} in ({})", values())),
        "NotIn" => Some(format!("{key} notin ({})", values())),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn invalid_requirements_are_left_out_and_reported() {
        let both = value!({
            "fieldSelector": {"requirements": [
                {"key": "a", "operator": "In", "values": ["x,y"]}, {"key": "b", "operator": "Exists"},
            ]},
            "labelSelector": {"rawSelector": "a in ("},
        });
        assert_eq!(
            read(&both),
            Selected {
                fields: "a=x\\,y".into(),
                labels: String::new(),
                errors: vec![
                    "spec.resourceAttributes.fieldSelector partially ignored due to parse error".into(),
                    "spec.resourceAttributes.labelSelector ignored due to parse error".into(),
                ],
            }
        );
        assert_eq!(read(&value!({"fieldSelector": {"rawSelector": "a=b"}})).fields, "a=b");
        assert_eq!(read(&value!({})), Selected::default());
    }

    #[test]
    fn wrong_selectors_are_reported_by_field() {
        let mut errors = Errors::default();
        let attributes = value!({
            "fieldSelector": {"rawSelector": "a=b", "requirements": [{"key": "", "operator": "In"}]},
            "labelSelector": {},
        });
        validate(&attributes, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let place = |rest: &str| format!("{PLACE}.{rest}");
        assert_eq!(
            fields,
            [
                place("fieldSelector.rawSelector"),
                place("fieldSelector.requirements[0].key"),
                place("fieldSelector.requirements[0].values"),
                place("labelSelector.requirements"),
            ]
        );
    }
}
