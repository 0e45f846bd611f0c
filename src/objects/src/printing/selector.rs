//! Formats labels and label selectors as text.

use flotilla_proto::value::{Map, Str, Value};

use super::cell;

/// Formats labels as `k=v,...` sorted by key, or `<none>`.
pub fn labels(labels: Option<&Map>) -> Value {
    let mut pairs: Vec<(&str, &str)> =
        labels.into_iter().flat_map(Map::iter).map(|(key, value)| (key, value.as_str().unwrap_or(""))).collect();
    if pairs.is_empty() {
        return "<none>".into();
    }
    pairs.sort_unstable();
    let mut text = Str::default();
    for (n, (key, value)) in pairs.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(key);
        text.push('=');
        text.push_str(value);
    }
    text.into()
}

/// Formats a `metav1.LabelSelector` as requests state selectors. The text is empty if it selects everything or nothing.
/// Returns `None` if it is invalid.
pub fn text(selector: &Value) -> Option<Str> {
    let mut requirements: Vec<(&str, Str)> = Vec::new();
    for (key, value) in selector.map_at(&["matchLabels"]).into_iter().flat_map(Map::iter) {
        let value = value.as_str().unwrap_or("");
        requirements.push((key, cell::join([key, value], "=")));
    }
    for expression in selector.list_at(&["matchExpressions"]) {
        let key = expression.str_at(&["key"]);
        requirements.push((key, requirement(key, expression)?));
    }
    requirements.sort_by_key(|(key, _)| *key);
    Some(cell::join(requirements.iter().map(|(_, text)| text.as_str()), ","))
}

/// As [`text`], with `<none>` for an empty and `<error>` for an invalid selector.
pub fn text_or_none(selector: &Value) -> Value {
    match text(selector) {
        None => "<error>".into(),
        Some(text) if text.is_empty() => "<none>".into(),
        Some(text) => text.into(),
    }
}

fn requirement(key: &str, expression: &Value) -> Option<Str> {
    let values = expression.list_at(&["values"]);
    let (word, listed) = match expression.str_at(&["operator"]) {
        "In" => (" in (", true),
        "NotIn" => (" notin (", true),
        "Exists" => ("", false),
        "DoesNotExist" => ("!", false),
        _ => return None,
    };
    if listed == values.is_empty() {
        return None;
    }
    if !listed {
        return Some(cell::join([word, key], ""));
    }
    let mut values: Vec<&str> = values.iter().map(|value| value.as_str().unwrap_or("")).collect();
    values.sort_unstable();
    let values = cell::join(values, ",");
    Some(cell::join([key, word, &values, ")"], ""))
}

/// Formats a selector as Go's generated types print it, which the parameters of policy bindings show.
pub fn go_form(selector: &Value) -> Str {
    let mut labels: Vec<(&str, &str)> = selector
        .map_at(&["matchLabels"])
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| (key, value.as_str().unwrap_or("")))
        .collect();
    labels.sort_unstable();
    let mut text = Str::const_new("&LabelSelector{MatchLabels:map[string]string{");
    for (key, value) in labels {
        text.push_str(&format!("{key}: {value},"));
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for expression in selector.list_at(&["matchExpressions"]) {
        let values = expression.list_at(&["values"]).iter().map(|value| value.as_str().unwrap_or(""));
        text.push_str(&format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            expression.str_at(&["key"]),
            expression.str_at(&["operator"]),
            cell::join(values, " ")
        ));
    }
    text.push_str("},}");
    text
}
