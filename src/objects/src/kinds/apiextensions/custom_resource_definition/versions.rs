//! The versions of CustomResourceDefinitions. The reference moves members that all versions share out of the versions,
//! and names their old place in messages; so do these checks.

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::rules::Stored;
use super::schema::{self, SchemaChecks, Stated};
use super::{internal, selectable};
use crate::field::{ErrorKind, Errors, Path, shown as text};
use crate::rules::{names, shown};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// Most bytes in the warning of a deprecated version.
const WARNING_BYTES_MAX: usize = 256;

/// Returns the value of a member if all versions share it.
fn shared<'a>(versions: &'a [Value], field: &str) -> Option<&'a Value> {
    let first = versions.first()?.at(&[field]);
    versions.iter().all(|version| version.at(&[field]) == first).then_some(first)
}

/// Formats the versions for messages: without the members that they share.
fn versions_shown(spec: &Value) -> String {
    let Some(versions) = spec.at(&["versions"]).as_array() else { return "null".to_owned() };
    let mut versions = versions.to_vec();
    for field in ["schema", "subresources", "additionalPrinterColumns", "selectableFields"] {
        if shared(&versions, field).is_some() {
            versions.iter_mut().for_each(|version| drop(version.remove_at(&[field])));
        }
    }
    let shown = |version: &Value| {
        let mut shown = shown::internal("CustomVersion", version);
        if let Some(schema) = version.get("schema").filter(|schema| schema.as_object().is_some()) {
            let schema = internal::internal(schema.at(&["openAPIV3Schema"]));
            shown.set_at(&["Schema"], value!({"OpenAPIV3Schema": schema}));
        }
        shown
    };
    text(&Value::Array(versions.iter().map(shown).collect()))
}

/// Adds one error that lists everything that is wrong with a name.
pub fn check_label(path: &Path<'_>, name: &str, text: &str, prefix: &str, errors: &mut Errors) {
    let messages = names::dns1035_label(text);
    if !messages.is_empty() {
        errors.invalid_str(path, name, format!("{prefix}{}", messages.join(",")));
    }
}

/// Checks the members of each version, and the versions together.
pub fn validate_versions(
    object: &Value,
    old: Option<&Value>,
    rules: SchemaChecks,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let spec = object.at(&["spec"]);
    let versions = spec.list_at(&["versions"]);
    // Computed once: comparing all versions again for each version would take quadratic time.
    let own = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"]
        .map(|field| shared(versions, field).is_none());
    let [own_schema, own_subresources, own_columns, own_fields] = own;
    let place = path.child("versions");
    let stored = Stored::of(object, old);
    let mut seen = HashSet::new();
    let mut unique = true;
    for (index, version) in versions.iter().enumerate() {
        let (name, path) = (version.str_at(&["name"]), place.index(index));
        unique &= seen.insert(name);
        check_label(&path.child("name"), name, name, "", errors);
        validate_deprecation(version, &path.child("deprecationWarning"), errors);
        let schema = if own_schema { version.at(&["schema", "openAPIV3Schema"]) } else { &Value::Null };
        let stated = Stated { schema, version: name, status: has_status(version) };
        schema::validate(stated, rules, &stored, &path.child("schema"), errors);
        if own_subresources {
            validate_subresources(version.at(&["subresources"]), &path.child("subresources"), errors);
        }
        if own_columns {
            validate_columns(version, &path, errors);
        }
        let fields = if own_fields { version.list_at(&["selectableFields"]) } else { &[] };
        let kept = selectable::are_kept(fields, name, old);
        let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
        selectable::validate_beside(schema, fields, kept, why, &path, errors);
    }
    if !unique {
        errors.push(ErrorKind::Invalid, &place, versions_shown(spec), "must contain unique version names");
    }
    if versions.iter().filter(|version| version.is_true_at(&["storage"])).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(ErrorKind::Invalid, &place, versions_shown(spec), why);
    }
    let first = versions.first().map_or("", |version| version.str_at(&["name"]));
    if !first.is_empty() {
        check_label(&path.child("version"), first, first, "", errors);
    }
}

fn has_status(version: &Value) -> bool {
    !version.at(&["subresources", "status"]).is_null()
}

/// Checks the members that all versions share, under the paths that the reference gives them outside of the versions.
pub fn validate_shared(object: &Value, old: Option<&Value>, rules: SchemaChecks, path: &Path<'_>, errors: &mut Errors) {
    let versions = object.list_at(&["spec", "versions"]);
    let Some(first) = versions.first() else { return };
    let is_shared = |field: &str| shared(versions, field).is_some();
    let schema = if is_shared("schema") { first.at(&["schema", "openAPIV3Schema"]) } else { &Value::Null };
    let stated = Stated { schema, version: first.str_at(&["name"]), status: versions.iter().any(has_status) };
    schema::validate(stated, rules, &Stored::of(object, old), &path.child("validation"), errors);
    if is_shared("subresources") {
        validate_subresources(first.at(&["subresources"]), &path.child("subresources"), errors);
    }
    if is_shared("additionalPrinterColumns") {
        validate_columns(first, path, errors);
    }
    let fields = if is_shared("selectableFields") { first.list_at(&["selectableFields"]) } else { &[] };
    let kept = selectable::are_kept(fields, "", old);
    selectable::validate_beside(
        schema,
        fields,
        kept,
        "may only be set when validations.schema is included",
        path,
        errors,
    );
}

fn validate_deprecation(version: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(warning) = version.at(&["deprecationWarning"]).as_str() else { return };
    if !version.is_true_at(&["deprecated"]) {
        errors.invalid_str(path, warning, "can only be set for deprecated versions");
        return;
    }
    if warning.len() > WARNING_BYTES_MAX {
        errors.invalid_str(path, warning, format!("must be <= {WARNING_BYTES_MAX} characters long"));
    }
    if warning.is_empty() {
        errors.invalid_str(path, warning, "must not be an empty string");
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' ')) {
        let why =
            format!("must only contain printable UTF-8 characters; non-printable character found at index {index}");
        errors.invalid_str(path, warning, why);
    }
}

fn validate_subresources(subresources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (scale, path) = (subresources.at(&["scale"]), path.child("scale"));
    if scale.is_null() {
        return;
    }
    for (field, parent) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (text, path) = (scale.str_at(&[field]), path.child(field));
        if text.is_empty() {
            errors.required(&path, "");
        } else if check_simple_path(text, &path, errors) && !is_under(text, parent) {
            errors.invalid_str(&path, text, format!("should be a json path under {parent}"));
        }
    }
    let (text, path) = (scale.str_at(&["labelSelectorPath"]), path.child("labelSelectorPath"));
    let below = is_under(text, ".spec") || is_under(text, ".status");
    if !text.is_empty() && check_simple_path(text, &path, errors) && !below {
        errors.invalid_str(&path, text, "should be a json path under either .spec or .status");
    }
}

fn is_under(text: &str, parent: &str) -> bool {
    text.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

fn check_simple_path(text: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let simple = text.starts_with('.');
    if !simple {
        errors.invalid_str(path, text, "must be a simple json path starting with .");
    }
    simple
}

fn validate_columns(owner: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("additionalPrinterColumns");
    for (index, column) in owner.list_at(&["additionalPrinterColumns"]).iter().enumerate() {
        let path = path.index(index);
        if column.str_at(&["name"]).is_empty() {
            errors.required(&path.child("name"), "");
        }
        let kinds = || format!("must be one of {}", COLUMN_TYPES.join(","));
        match column.str_at(&["type"]) {
            "" => errors.required(&path.child("type"), kinds()),
            kind if COLUMN_TYPES.contains(&kind) => {}
            kind => errors.invalid_str(&path.child("type"), kind, kinds()),
        }
        let format = column.str_at(&["format"]);
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.invalid_str(&path.child("format"), format, why);
        }
        match column.str_at(&["jsonPath"]) {
            "" => errors.required(&path.child("JSONPath"), ""),
            text => drop(check_simple_path(text, &path.child("JSONPath"), errors)),
        }
    }
}
