//! Rules that the kinds with a pod template share.

use flotilla_proto::value::{Map, Value};

use super::core::pod::spec::Options;
use super::core::pod::{dropped, template, warnings};
use crate::field::{Errors, Path};
use crate::rules::Selectable;
use crate::rules::{names, semantic};

/// The path of the template in most kinds.
pub const PATH: [&str; 2] = ["spec", "template"];
const SPEC: [&str; 3] = ["spec", "template", "spec"];

/// Drops the fields of features that are off, at creation.
pub fn prepare_create(object: &mut Value) {
    dropped::drop_from_spec(object, None, &SPEC);
}

/// Drops the fields of features that are off, and raises the generation if the spec changed.
pub fn prepare_update(object: &mut Value, old: &Value) {
    dropped::drop_from_spec(object, Some(old), &SPEC);
    count_spec(object, old);
}

/// Raises the generation if the spec changed.
pub fn count_spec(object: &mut Value, old: &Value) {
    let changed = !semantic::equal_at(object, old, &["spec"]);
    set_generation(object, old, changed);
}

/// Raises the generation above the old one if `changed`, else keeps it.
pub fn set_generation(object: &mut Value, old: &Value, changed: bool) {
    let generation = old.int_at(&["metadata", "generation"]).unwrap_or_default();
    object.set_at(&["metadata", "generation"], generation + i64::from(changed));
}

/// Returns whether an update raised the generation; true at creation.
pub fn is_new_generation(object: &Value, old: Option<&Value>) -> bool {
    let generation = |object: &Value| object.int_at(&["metadata", "generation"]);
    old.is_none_or(|old| generation(old) != generation(object))
}

/// Adds the warnings about the template at creation and whenever the generation rises.
pub fn warn(object: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    if is_new_generation(object, old) {
        let spec = Path::root("spec");
        warnings::of_template(object.at(&PATH), &spec.child("template"), into);
    }
}

/// As [`warn`], and warns at creation if the name is no DNS label, since pods and their host names are named after it.
pub fn warn_of_name_too(object: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    if old.is_none() {
        warn_of_name(object, "this is used in Pod names and hostnames", into);
    }
    warn(object, old, into);
}

/// Warns of a name that is no DNS label.
pub fn warn_of_name(object: &Value, use_of_it: &str, into: &mut Vec<String>) {
    let messages = names::dns1123_label(object.str_at(&["metadata", "name"]));
    if !messages.is_empty() {
        let advice = "which can result in surprising behavior; a DNS label is recommended";
        into.push(format!("metadata.name: {use_of_it}, {advice}: [{}]", messages.join(" ")));
    }
}

/// Applies the defaults of pod templates to the template of an object.
pub fn set_defaults(spec: &mut Map) {
    super::core::pod::defaults::template(spec.entry("template"));
}

/// The field selector for `status.replicas`.
pub const STATUS_REPLICAS: Selectable =
    ("status.replicas", |object| object.int_at(&["status", "replicas"]).unwrap_or_default().to_string());

/// Checks the template of a kind whose pods run forever. `path` is that of the template, `kind` is the name of the kind
/// in errors.
pub fn validate_endless(template: &Value, kind: &str, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    template::validate(template, path, options, errors);
    validate_endless_policy(template, kind, path, errors);
}

/// Checks that the template's restart policy is `Always` and that it has no deadline.
pub fn validate_endless_policy(template: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let spec = path.child("spec");
    let policy = template.str_at(&["spec", "restartPolicy"]);
    if policy != "Always" {
        errors.not_supported(&spec.child("restartPolicy"), policy, &["Always"]);
    }
    if !template.at(&["spec", "activeDeadlineSeconds"]).is_null() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&spec.child("activeDeadlineSeconds"), why);
    }
}

/// Returns the exceptions for an object's template, given the stored object.
pub fn options(old: Option<&Value>) -> Options {
    Options::of_template(old.map(|old| old.at(&PATH)))
}
