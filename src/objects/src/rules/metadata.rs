//! Validation of `metadata`, at creation and at every update.

use flotilla_proto::value::Value;

use super::{NameRule, Strategy, labels, names};
use crate::field::{Errors, Path, quote};
use crate::fieldmanager::MANAGER_BYTES_MAX;

/// The message about a changed field that is immutable.
pub const IMMUTABLE: &str = "field is immutable";

/// Most bytes in the subresource of a `managedFields` entry.
const SUBRESOURCE_BYTES_MAX: usize = 256;

const METADATA: Path<'static> = Path::root("metadata");

/// Checks the metadata of a new object. `rule` is the rule for its name, `namespaced` whether it must have a namespace.
pub fn validate_create(rule: NameRule, namespaced: bool, object: &Value, errors: &mut Errors) {
    validate_at(rule, namespaced, object.at(&["metadata"]), &METADATA, errors);
}

/// As [`validate_create`], for the metadata of any object, at any path.
pub fn validate_at(rule: NameRule, namespaced: bool, metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let prefix = metadata.str_at(&["generateName"]);
    if !prefix.is_empty() {
        for message in name_messages(rule, prefix, true) {
            errors.invalid_str(&path.child("generateName"), prefix, message);
        }
    }
    let name = metadata.str_at(&["name"]);
    if name.is_empty() {
        errors.required(&path.child("name"), "name or generateName is required");
    } else {
        for message in name_messages(rule, name, false) {
            errors.invalid_str(&path.child("name"), name, message);
        }
    }
    let namespace = metadata.str_at(&["namespace"]);
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.required(&path.child("namespace"), ""),
        (true, false) => names::check(&path.child("namespace"), namespace, names::dns1123_label, errors),
        (false, true) => {}
        (false, false) => errors.forbidden(&path.child("namespace"), "not allowed on this type"),
    }
    let generation = metadata.int_at(&["generation"]).unwrap_or(0);
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        errors.invalid(&path.child("generation"), &generation.into(), why);
    }
    validate_labels_and_owners(metadata, path, errors);
    validate_finalizers(metadata, path, errors);
    validate_managed_fields(metadata, path, errors);
}

/// Returns the faults of a name, or of a prefix for a generated one.
pub fn name_messages(rule: NameRule, name: &str, prefix: bool) -> names::Messages {
    let form = match (rule, prefix) {
        (NameRule::Subdomain, _) => names::dns1123_subdomain,
        (NameRule::Label | NameRule::Service, _) => names::dns1123_label,
        (NameRule::Label1035, _) => names::dns1035_label,
        (NameRule::PathSegment, true) => return names::path_segment_prefix(name),
        (NameRule::PathSegment, false) => return names::path_segment(name),
        (NameRule::Own, _) => return names::Messages::default(),
    };
    if prefix { form(&names::without_trailing_dash(name)) } else { form(name) }
}

/// Checks the metadata of an update. In the reference, the generic rules check it, and for most kinds also the kind's
/// own rules, so that clients see a cause twice. This function runs before the kind's rules and adds both causes.
pub fn validate_update(strategy: &Strategy, namespaced: bool, object: &Value, old: &Value, errors: &mut Errors) {
    let (metadata, old) = (object.at(&["metadata"]), old.at(&["metadata"]));
    validate_at(NameRule::PathSegment, namespaced, metadata, &METADATA, errors);
    let before = errors.0.len();
    validate_change(metadata, old, &METADATA, errors);
    let after = errors.0.len();
    if !strategy.repeats_metadata {
        return;
    }
    if strategy.known_finalizers {
        validate_finalizer_names(object, errors);
    }
    let repeated = errors.0[before..after].to_vec();
    errors.append(repeated);
}

/// Removes and returns the causes that [`validate_update`] added for the kind, for kinds whose rules add them later or
/// never.
pub fn take_repeated(object: &Value, old: &Value, errors: &mut Errors) -> Errors {
    if errors.is_empty() {
        return Errors::default();
    }
    let mut change = Errors::default();
    validate_change(object.at(&["metadata"]), old.at(&["metadata"]), &METADATA, &mut change);
    let at = errors.0.len().saturating_sub(change.0.len());
    let taken = errors.0.split_off(at);
    *errors = std::mem::take(&mut errors.0).into();
    taken.into()
}

/// Repeats the checks of [`validate_create`], for kinds whose rules of update repeat them. Skips them if there was no
/// error and there is no `generateName`: the name is that of the stored object, and [`validate_update`] has checked the
/// rest.
pub fn validate_again(rule: NameRule, namespaced: bool, object: &Value, errors: &mut Errors) {
    validate_again_generic(rule, namespaced, object, errors);
    validate_finalizer_names(object, errors);
}

/// As [`validate_again`], for kinds that accept finalizers which the server does not know.
pub fn validate_again_generic(rule: NameRule, namespaced: bool, object: &Value, errors: &mut Errors) {
    if !errors.is_empty() || !object.str_at(&["metadata", "generateName"]).is_empty() {
        validate_create(rule, namespaced, object, errors);
    }
}

/// Checks that an update changes only mutable metadata.
pub fn validate_change(metadata: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !old.at(&["deletionTimestamp"]).is_null() {
        validate_no_new_finalizers(metadata, old, path, errors);
    }
    if metadata.str_at(&["resourceVersion"]).is_empty() {
        errors.invalid_str(&path.child("resourceVersion"), "", "must be specified for an update");
    }
    let generation = metadata.int_at(&["generation"]).unwrap_or(0);
    if generation < old.int_at(&["generation"]).unwrap_or(0) {
        errors.invalid(&path.child("generation"), &generation.into(), "must not be decremented");
    }
    for field in ["name", "namespace", "uid"] {
        if metadata.str_at(&[field]) != old.str_at(&[field]) {
            errors.invalid_str(&path.child(field), metadata.str_at(&[field]), IMMUTABLE);
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata.at(&[field]) != old.at(&[field]) {
            errors.invalid(&path.child(field), metadata.at(&[field]), IMMUTABLE);
        }
    }
    validate_labels_and_owners(metadata, path, errors);
    validate_managed_fields(metadata, path, errors);
}

/// Restores the old metadata, for kinds whose status writes cannot change it. Keeps the new managed fields, which
/// record the writer of the status.
pub fn reset_for_status(object: &mut Value, old: &Value) {
    for field in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"] {
        let path = ["metadata", field];
        match old.at(&path) {
            Value::Null => drop(object.remove_at(&path)),
            value => object.set_at(&path, value.clone()),
        }
    }
}

/// Adds an error if a field has changed.
pub fn immutable(path: &Path<'_>, value: &Value, old: &Value, errors: &mut Errors) {
    if value != old {
        errors.invalid(path, value, IMMUTABLE);
    }
}

fn validate_labels_and_owners(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    labels::validate_labels(metadata.at(&["labels"]), &path.child("labels"), errors);
    labels::validate_annotations(metadata.at(&["annotations"]), &path.child("annotations"), errors);
    validate_owners(metadata.at(&["ownerReferences"]), &path.child("ownerReferences"), errors);
}

fn validate_owners(references: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut controller: Option<&Value> = None;
    for reference in references.as_array().unwrap_or(&[]) {
        validate_owner(reference, path, errors);
        if !reference.is_true_at(&["controller"]) {
            continue;
        }
        let Some(first) = controller else {
            controller = Some(reference);
            continue;
        };
        let text = |owner: &Value| format!("{}/{}", owner.str_at(&["kind"]), owner.str_at(&["name"]));
        let why = "Only one reference can have Controller set to true. Found \"true\" in references for";
        errors.invalid(path, references, format!("{why} {} and {}", text(first), text(reference)));
    }
}

fn validate_owner(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let api_version = reference.str_at(&["apiVersion"]);
    let (group, version) = match api_version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some((group, version)) => (group, version),
        None => ("", api_version),
    };
    if version.is_empty() {
        errors.invalid_str(&path.child("apiVersion"), api_version, "version must not be empty");
    }
    for field in ["kind", "name", "uid"] {
        if reference.str_at(&[field]).is_empty() {
            errors.invalid_str(&path.child(field), "", "must not be empty");
        }
    }
    if (group, version, reference.str_at(&["kind"])) == ("", "v1", "Event") {
        errors.invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner");
    }
}

fn validate_finalizers(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("finalizers");
    let finalizers = metadata.list_at(&["finalizers"]);
    for finalizer in finalizers {
        names::check(&path, finalizer.as_str().unwrap_or(""), names::qualified_name, errors);
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer.as_str() == Some(name));
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(&path, metadata.at(&["finalizers"]), why);
    }
}

/// Checks that finalizers without a domain are known to the server. Most kinds demand this, in addition to
/// [`validate_create`].
pub fn validate_finalizer_names(object: &Value, errors: &mut Errors) {
    let path = METADATA.child("finalizers");
    for (index, finalizer) in object.list_at(&["metadata", "finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or("");
        if !is_certain_finalizer(name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid_str(&path.index(index), name, why);
        }
    }
}

/// Returns whether a finalizer has an unambiguous owner: it has a domain, or is one that the server knows.
pub fn is_certain_finalizer(name: &str) -> bool {
    name.contains('/') || matches!(name, "kubernetes" | "orphan" | "foregroundDeletion")
}

fn validate_no_new_finalizers(metadata: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let before = old.list_at(&["finalizers"]);
    let mut added: Vec<&str> = metadata
        .list_at(&["finalizers"])
        .iter()
        .filter(|finalizer| !before.contains(finalizer))
        .filter_map(Value::as_str)
        .collect();
    if added.is_empty() {
        return;
    }
    added.sort_unstable();
    added.dedup();
    let quoted: Vec<String> = added.into_iter().map(quote).collect();
    let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
    errors.forbidden(&path.child("finalizers"), format!("{why} []string{{{}}}", quoted.join(", ")));
}

/// Checks the name of a field manager, in options and in `managedFields`.
pub fn validate_field_manager(manager: &str, path: &Path<'_>, errors: &mut Errors) {
    if manager.len() > MANAGER_BYTES_MAX {
        errors.too_long(path, MANAGER_BYTES_MAX);
    }
    if manager.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return;
    }
    for (position, c) in manager.char_indices() {
        if !printable(c) {
            let shown = if c.is_control() { String::new() } else { format!(" '{c}'") };
            let why = format!("invalid character U+{:04X}{shown} (at position {position})", c as u32);
            errors.invalid_str(path, manager, why);
        }
    }
}

/// Returns whether Go's `unicode.IsPrint` is true for a character: false for controls, spaces other than the ASCII one,
/// and format characters.
pub fn printable(c: char) -> bool {
    let format = matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || format)
}

fn validate_managed_fields(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("managedFields");
    for (index, entry) in metadata.list_at(&["managedFields"]).iter().enumerate() {
        let path = path.index(index);
        let operation = entry.str_at(&["operation"]);
        if !matches!(operation, "Apply" | "Update") {
            errors.invalid_str(&path.child("operation"), operation, "must be `Apply` or `Update`");
        }
        let form = entry.str_at(&["fieldsType"]);
        if !matches!(form, "" | "FieldsV1") {
            errors.invalid_str(&path.child("fieldsType"), form, "must be `FieldsV1`");
        }
        validate_field_manager(entry.str_at(&["manager"]), &path.child("manager"), errors);
        if entry.str_at(&["subresource"]).len() > SUBRESOURCE_BYTES_MAX {
            errors.too_long(&path.child("subresource"), SUBRESOURCE_BYTES_MAX);
        }
    }
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
