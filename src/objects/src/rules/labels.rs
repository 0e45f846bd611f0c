//! Labels, annotations and label selectors inside objects: their validation, and matching.

use flotilla_proto::value::{Map, Value};

use super::names;
use crate::field::{Errors, Path};

/// Most bytes of all keys and values of an object's annotations together.
pub const ANNOTATION_BYTES_MAX: usize = 256 << 10;

/// Checks a map of labels; errors name the map, not the key.
pub fn validate_labels(labels: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(map) = labels.as_object() else { return };
    for (key, value) in map.iter() {
        validate_label_key(key, path, errors);
        names::check(path, value.as_str().unwrap_or(""), names::label_value, errors);
    }
}

/// Checks the key of a label.
pub fn validate_label_key(key: &str, path: &Path<'_>, errors: &mut Errors) {
    names::check(path, key, names::qualified_name, errors);
}

/// Checks a map of annotations: keys are label keys in either case, and all keys and values together have a limit.
pub fn validate_annotations(annotations: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(map) = annotations.as_object() else { return };
    let mut total = 0;
    for (key, value) in map.iter() {
        total += key.len() + value.as_str().map_or(0, str::len);
        let messages = if key.bytes().any(|b| !b.is_ascii() || b.is_ascii_uppercase()) {
            names::qualified_name(&key.to_lowercase())
        } else {
            names::qualified_name(key)
        };
        for message in messages {
            errors.invalid_str(path, key, message);
        }
    }
    if total > ANNOTATION_BYTES_MAX {
        errors.too_long(path, ANNOTATION_BYTES_MAX);
    }
}

/// Exceptions for selectors that are stored already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectorOptions {
    /// Values that no label can have are accepted: the stored object has such a value already.
    pub any_value: bool,
    /// Operators that are not known are accepted.
    pub any_operator: bool,
}

/// Checks a `LabelSelector`; an absent one is valid.
pub fn validate_selector(selector: &Value, options: SelectorOptions, path: &Path<'_>, errors: &mut Errors) {
    validate_labels(selector.at(&["matchLabels"]), &path.child("matchLabels"), errors);
    let expressions = path.child("matchExpressions");
    for (index, expression) in selector.list_at(&["matchExpressions"]).iter().enumerate() {
        validate_requirement(expression, options, &expressions.index(index), errors);
    }
}

/// Checks a requirement of a selector.
pub fn validate_requirement(requirement: &Value, options: SelectorOptions, path: &Path<'_>, errors: &mut Errors) {
    let values = requirement.list_at(&["values"]);
    let operator = requirement.str_at(&["operator"]);
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&path.child("values"), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ if options.any_operator => {}
        _ => errors.invalid_str(&path.child("operator"), operator, "not a valid selector operator"),
    }
    validate_label_key(requirement.str_at(&["key"]), &path.child("key"), errors);
    if !options.any_value {
        let path = path.child("values");
        for (index, value) in values.iter().enumerate() {
            names::check(&path.index(index), value.as_str().unwrap_or(""), names::label_value, errors);
        }
    }
}

/// Returns whether a `LabelSelector` has a value that no label can have.
pub fn has_impossible_value(selector: &Value) -> bool {
    selector.list_at(&["matchExpressions"]).iter().any(|expression| {
        let values = expression.list_at(&["values"]).iter();
        values.filter_map(Value::as_str).any(|value| !names::label_value(value).is_empty())
    })
}

/// Returns whether a `LabelSelector` selects everything; an absent one selects nothing.
pub fn selects_everything(selector: &Value) -> bool {
    selector.as_object().is_some()
        && selector.map_at(&["matchLabels"]).is_none_or(Map::is_empty)
        && selector.list_at(&["matchExpressions"]).is_empty()
}

/// Returns whether a `LabelSelector` selects an object with these labels. An absent selector selects nothing, an empty
/// one everything; an invalid expression matches nothing.
pub fn selector_matches(selector: &Value, labels: Option<&Map>) -> bool {
    if selector.as_object().is_none() {
        return false;
    }
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let exact = selector.map_at(&["matchLabels"]).is_none_or(|map| map_matches(map, labels));
    exact
        && selector.list_at(&["matchExpressions"]).iter().all(|expression| {
            let value = label(expression.str_at(&["key"]));
            let mut values = expression.list_at(&["values"]).iter().filter_map(Value::as_str);
            match expression.str_at(&["operator"]) {
                "In" => value.is_some_and(|value| values.any(|allowed| allowed == value)),
                "NotIn" => value.is_none_or(|value| !values.any(|refused| refused == value)),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// Returns whether labels have every entry of a plain map selector, as Services have it.
pub fn map_matches(selector: &Map, labels: Option<&Map>) -> bool {
    selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn selectors_match_by_their_operators() {
        let labels = value!({"a": "1", "b": "2"});
        let labels = labels.as_object();
        let expression = |key: &str, operator: &str, values: Value| {
            let expression = value!({"key": key, "operator": operator, "values": values});
            value!({"matchExpressions": [expression]})
        };
        let yes = [
            value!({}),
            value!({"matchLabels": {"a": "1"}}),
            expression("a", "In", value!(["0", "1"])),
            expression("c", "NotIn", value!(["1"])),
            expression("a", "Exists", value!([])),
            expression("c", "DoesNotExist", value!([])),
        ];
        let no = [
            Value::Null,
            value!({"matchLabels": {"a": "1", "c": "1"}}),
            expression("a", "NotIn", value!(["1"])),
            expression("c", "In", value!(["1"])),
            expression("c", "Exists", value!([])),
            expression("a", "Gt", value!(["0"])),
        ];
        assert!(yes.iter().all(|selector| selector_matches(selector, labels)));
        assert!(!no.iter().any(|selector| selector_matches(selector, labels)));
        assert!(selects_everything(&value!({"matchLabels": {}})) && !selects_everything(&Value::Null));
    }

    #[test]
    fn errors_have_the_paths_of_the_reference() {
        let selector = value!({
            "matchLabels": {"-": "x"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "", "operator": "Exists", "values": ["x"]},
                {"key": "a", "operator": "in", "values": ["-"]}
            ]
        });
        let mut errors = Errors::default();
        validate_selector(&selector, SelectorOptions::default(), &Path::root("spec.selector"), &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.selector.matchLabels",
                "spec.selector.matchExpressions[0].values",
                "spec.selector.matchExpressions[1].values",
                "spec.selector.matchExpressions[1].key",
                "spec.selector.matchExpressions[1].key",
                "spec.selector.matchExpressions[2].operator",
                "spec.selector.matchExpressions[2].values[0]",
            ]
        );
    }

    #[test]
    fn annotations_have_a_limit_and_any_case() {
        let mut errors = Errors::default();
        let path = Path::root("metadata.annotations");
        validate_annotations(&value!({"Example.COM/A": "x"}), &path, &mut errors);
        assert!(errors.is_empty());
        validate_annotations(&value!({"a": ("x".repeat(ANNOTATION_BYTES_MAX))}), &path, &mut errors);
        assert_eq!(errors.0[0].to_string(), "metadata.annotations: Too long: may not be more than 262144 bytes");
    }
}
