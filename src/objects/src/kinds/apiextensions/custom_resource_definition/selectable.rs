//! Fields of custom resources that `fieldSelector` may name (KEP-4358).

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::{field_path, parts};
use crate::field::{Errors, Path};

/// Most selectable fields of a version.
const FIELDS_MAX: usize = 8;

/// Checks the selectable fields beside `schema`. `kept` tolerates too many fields, because the stored definition has
/// the same ones. Fields without a schema are an error, with the message `why`.
pub fn validate_beside(schema: &Value, fields: &[Value], kept: bool, why: &str, path: &Path<'_>, errors: &mut Errors) {
    if schema.is_null() && !fields.is_empty() {
        errors.invalid_str(&path.child("selectableFields"), "", why);
    } else if parts::is_expressible(schema) {
        validate(fields, schema, kept, path, errors);
    } else if !fields.is_empty() {
        let why = "the schema must be structural";
        errors.invalid_str(&path.child("schema.openAPIV3Schema"), "", why);
    }
}

fn validate(fields: &[Value], schema: &Value, kept: bool, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("selectableFields");
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let (place, text) = (path.index(index), field.str_at(&["jsonPath"]));
        let place = place.child("jsonPath");
        if text.is_empty() {
            errors.required(&place, "");
            continue;
        }
        let found = match field_path::find(text, schema, false) {
            Ok(found) => found,
            Err(why) => {
                errors.invalid_str(&place, text, format!("is an invalid path: {why}"));
                continue;
            }
        };
        if found.names.first().is_some_and(|name| name == "metadata") {
            errors.invalid_str(&place, text, "must not point to fields in metadata");
        }
        if !matches!(found.schema.map(parts::kind), Some("string" | "boolean" | "integer")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            errors.invalid_str(&place, text, why);
        }
        if !seen.insert(found.names) {
            errors.duplicate(&place, &text.into());
        }
    }
    if seen.len() > FIELDS_MAX && !kept {
        errors.too_many(&path, seen.len(), FIELDS_MAX);
    }
}

/// Returns whether the stored definition has more selectable fields in this version than are allowed, and the new one
/// the same.
pub fn are_kept(fields: &[Value], version: &str, old: Option<&Value>) -> bool {
    let versions = old.map_or(&[][..], |old| old.list_at(&["spec", "versions"]));
    fields.len() > FIELDS_MAX
        && versions.iter().any(|old| {
            (version.is_empty() || old.str_at(&["name"]) == version) && old.list_at(&["selectableFields"]) == fields
        })
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn complaints(schema: &Value, fields: &[&str]) -> Vec<String> {
        let fields: Vec<Value> = fields.iter().map(|path| value!({"jsonPath": (*path)})).collect();
        let mut errors = Errors::default();
        validate_beside(schema, &fields, false, "not without", &Path::root("v"), &mut errors);
        errors.0.iter().map(|error| error.to_string().replace("v.selectableFields", "")).collect()
    }

    #[test]
    fn only_plain_fields_outside_of_metadata_are_selectable() {
        let properties = value!({
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "object"}
        });
        let schema = value!({"type": "object", "properties": properties});
        assert_eq!(complaints(&schema, &[".a", ".b"]), Vec::<String>::new());
        let unlike = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                      formats are allowed.";
        assert_eq!(
            complaints(&schema, &[".c", "", ".z", ".metadata.name", ".a", ".a", ".a[0]"]),
            [
                format!("[0].jsonPath: Invalid value: \".c\": {unlike}"),
                "[1].jsonPath: Required value".to_owned(),
                "[2].jsonPath: Invalid value: \".z\": is an invalid path: does not refer to a valid field".to_owned(),
                "[3].jsonPath: Invalid value: \".metadata.name\": must not point to fields in metadata".to_owned(),
                "[5].jsonPath: Duplicate value: \".a\"".to_owned(),
                "[6].jsonPath: Invalid value: \".a[0]\": is an invalid path: array notation is not allowed".to_owned(),
            ]
        );
        assert_eq!(complaints(&Value::Null, &[".a"]), [": Invalid value: \"\": not without"]);
    }

    #[test]
    fn the_number_of_fields_is_bounded_unless_the_stored_one_exceeds_it() {
        let mut schema = value!({"type": "object", "properties": {}});
        let paths: Vec<String> = (0..9).map(|n| format!(".f{n}")).collect();
        for path in &paths {
            schema.set_at(&["properties", &path[1..]], value!({"type": "string"}));
        }
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(complaints(&schema, &paths), [": Too many: 9: must have at most 8 items"]);
        let fields: Vec<Value> = paths.iter().map(|path| value!({"jsonPath": (*path)})).collect();
        let version = value!({"name": "v1", "selectableFields": (fields.clone())});
        let old = value!({"spec": {"versions": [version]}});
        assert!(are_kept(&fields, "v1", Some(&old)) && are_kept(&fields, "", Some(&old)));
        assert!(!are_kept(&fields, "v2", Some(&old)) && !are_kept(&fields, "v1", None));
    }
}
