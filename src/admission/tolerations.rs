//! Tolerations that the pods of a namespace get, and those that they may have: in annotations of the namespace, else in
//! a configuration (Configuration of `podtolerationrestriction.admission.k8s.io`).

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path, float};
use crate::kinds::core::pod::scheduling::validate_tolerations;

/// The annotation with the tolerations that new pods get.
const DEFAULT: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
/// The annotation with the tolerations that pods may have.
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
/// The members of a toleration, with Go's names for their types.
const MEMBERS: [(&str, &str); 5] = [
    ("key", "string"),
    ("operator", "v1.TolerationOperator"),
    ("value", "string"),
    ("effect", "v1.TaintEffect"),
    ("tolerationSeconds", SECONDS),
];
/// Go's name for the type of a number of seconds.
const SECONDS: &str = "int64";

/// The tolerations that pods get and may have, unless annotations of their namespace state them.
#[derive(Debug, Default)]
pub struct Tolerations {
    /// The tolerations that new pods get.
    pub default: Vec<Value>,
    /// The tolerations that pods may have; empty for any.
    pub whitelist: Vec<Value>,
}

impl Tolerations {
    /// Reads the configuration; adds an error for each toleration that is wrong.
    pub fn read(document: &Value, errors: &mut Errors) -> Self {
        let root = Path::root("podtolerationrestriction");
        let mut list = |name: &str| {
            let (path, stated) = (root.child(name), document.at(&[name]));
            match decode(stated) {
                Ok(list) => {
                    validate_tolerations(&list, &path, errors);
                    list
                }
                Err(why) => {
                    errors.invalid(&path, stated, why);
                    Vec::new()
                }
            }
        };
        Self { default: list("default"), whitelist: list("whitelist") }
    }
}

/// Returns the tolerations that new pods of a namespace get. Returns `None` if it has no annotation that states them.
///
/// # Errors
/// Go's message: the annotation is not a list of tolerations.
pub fn defaults_of(namespace: &Value) -> Result<Option<Vec<Value>>, String> {
    of_annotation(namespace, DEFAULT)
}

/// Returns the tolerations that pods of a namespace may have. Returns `None` if it has no annotation that states them.
///
/// # Errors
/// As for [`defaults_of`].
pub fn whitelist_of(namespace: &Value) -> Result<Option<Vec<Value>>, String> {
    of_annotation(namespace, WHITELIST)
}

fn of_annotation(namespace: &Value, name: &str) -> Result<Option<Vec<Value>>, String> {
    match namespace.at(&["metadata", "annotations", name]).as_str() {
        None => Ok(None),
        Some("") => Ok(Some(Vec::new())),
        Some(text) => decode(&json::parse(text.as_bytes()).map_err(|error| error.to_string())?).map(Some),
    }
}

/// Decodes a list of tolerations. As in Go, the case of members does not matter and unknown ones are dropped.
fn decode(list: &Value) -> Result<Vec<Value>, String> {
    let no =
        |value: &Value, of: &str| format!("json: cannot unmarshal {} into Go value of type {of}", value.type_name());
    let list = match list {
        Value::Null => &[],
        Value::Array(list) => &list[..],
        other => return Err(no(other, "[]v1.Toleration")),
    };
    list.iter()
        .map(|toleration| match toleration {
            Value::Null => Ok(Value::object()),
            Value::Object(members) => decode_members(members),
            other => Err(no(other, "v1.Toleration")),
        })
        .collect()
}

fn decode_members(members: &Map) -> Result<Value, String> {
    let mut toleration = Value::object();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let Some((known, of)) = MEMBERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else { continue };
        if if *of == SECONDS { value.as_int().is_none() } else { value.as_str().is_none() } {
            // Go's message contains a number that is not whole.
            let kind = match value {
                Value::Float(number) if *of == SECONDS => format!("number {}", float(number.get())),
                other => other.type_name().to_owned(),
            };
            return Err(format!("json: cannot unmarshal {kind} into Go struct field Toleration.{known} of type {of}"));
        }
        if value.as_str() != Some("") {
            toleration.set_at(&[known], value.clone());
        }
    }
    Ok(toleration)
}

/// Joins two lists of tolerations. Leaves out a toleration that another one covers; of equal ones the first stays.
pub fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<&Value> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let is_covered = merged.iter().any(|other| covers(other, one))
            || all[at + 1..].iter().any(|other| parts(other) != parts(one) && covers(other, one));
        if !is_covered {
            merged.push(one);
        }
    }
    merged.into_iter().cloned().collect()
}

/// Returns whether each toleration is covered by one of a whitelist. An empty whitelist allows all.
pub fn are_allowed(tolerations: &[Value], whitelist: &[Value]) -> bool {
    whitelist.is_empty() || tolerations.iter().all(|one| whitelist.iter().any(|other| covers(other, one)))
}

/// Returns key, operator, value, effect and seconds.
fn parts(of: &Value) -> ([&str; 4], Option<i64>) {
    (["key", "operator", "value", "effect"].map(|name| of.str_at(&[name])), of.int_at(&["tolerationSeconds"]))
}

/// Returns whether a toleration tolerates everything that another one does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let (wide, narrow) = (parts(wide), parts(narrow));
    let ([key, operator, value, effect], seconds) = wide;
    let ([other_key, other_operator, other_value, other_effect], other_seconds) = narrow;
    let is_any_key = key.is_empty() && operator == "Exists";
    let is_longer =
        || effect != "NoExecute" || seconds.is_none_or(|most| other_seconds.is_some_and(|time| time <= most));
    let takes_value = || match operator {
        "" | "Equal" => other_operator == "Equal" && other_value == value,
        operator => operator == "Exists",
    };
    wide == narrow
        || (key == other_key || is_any_key)
            && (effect.is_empty() || effect == other_effect)
            && is_longer()
            && takes_value()
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn namespace(name: &str, text: &str) -> Value {
        let mut namespace = Value::object();
        namespace.set_at(&["metadata", "annotations", name], text);
        namespace
    }

    #[test]
    fn annotations_are_lists_of_tolerations() {
        let read = |text: &str| defaults_of(&namespace(DEFAULT, text));
        assert_eq!(defaults_of(&namespace(WHITELIST, "[]")), Ok(None));
        assert_eq!((read(""), read("null")), (Ok(Some(Vec::new())), Ok(Some(Vec::new()))));
        let tolerations = r#"[{"Key": "a", "operator": "Exists", "value": "", "unknown": 1}, null]"#;
        assert_eq!(read(tolerations), Ok(Some(vec![value!({"key": "a", "operator": "Exists"}), Value::object()])));
        for (text, why) in [
            ("{}", "json: cannot unmarshal object into Go value of type []v1.Toleration"),
            ("[1]", "json: cannot unmarshal number into Go value of type v1.Toleration"),
            (r#"[{"key": 1}]"#, "json: cannot unmarshal number into Go struct field Toleration.key of type string"),
            (
                r#"[{"tolerationSeconds": "1"}]"#,
                "json: cannot unmarshal string into Go struct field Toleration.tolerationSeconds of type int64",
            ),
            (
                r#"[{"tolerationSeconds": 1.5}]"#,
                "json: cannot unmarshal number 1.5 into Go struct field Toleration.tolerationSeconds of type int64",
            ),
            ("x", "invalid character 'x' looking for beginning of value"),
        ] {
            assert_eq!(read(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn a_toleration_covers_others() {
        let all = value!({"operator": "Exists"});
        let exists = value!({"key": "a", "operator": "Exists"});
        let equal = value!({"key": "a", "operator": "Equal", "value": "v", "effect": "NoSchedule"});
        let unnamed = value!({"key": "a", "value": "v"});
        let brief = value!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let long = value!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6});
        assert!(covers(&all, &equal) && covers(&exists, &equal) && covers(&exists, &long) && covers(&long, &brief));
        assert!(!covers(&equal, &exists) && !covers(&brief, &long) && !covers(&brief, &exists));
        assert!(covers(&unnamed, &equal) && covers(&unnamed, &unnamed) && !covers(&equal, &unnamed));
        let one = std::slice::from_ref(&exists);
        assert_eq!(merge(&[equal.clone(), brief], one), one);
        assert_eq!(merge(one, &[exists.clone(), long]), one);
        assert!(are_allowed(one, &[]));
        assert!(are_allowed(&[exists.clone(), equal.clone()], std::slice::from_ref(&all)));
        assert!(!are_allowed(one, &[equal]));
    }

    #[test]
    fn a_configuration_is_validated() {
        let mut errors = Errors::default();
        let document = value!({"default": [{"key": "a b"}], "whitelist": {}});
        Tolerations::read(&document, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| &*error.field).collect();
        let root = "podtolerationrestriction";
        assert_eq!(fields, [format!("{root}.default[0].key"), format!("{root}.whitelist")]);
        let mut errors = Errors::default();
        let read = Tolerations::read(&value!({"whitelist": [{"key": "a", "operator": "Exists"}]}), &mut errors);
        assert!(errors.is_empty() && read.default.is_empty() && read.whitelist.len() == 1);
    }
}
