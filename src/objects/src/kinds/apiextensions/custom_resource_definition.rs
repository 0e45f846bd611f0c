//! CustomResourceDefinitions: their names, versions and schemas, which are checked completely when they are written.

pub mod approval;
pub mod ca_bundle;
mod conversion;
mod defaults;
mod field_path;
mod formats;
mod internal;
mod junctors;
mod keywords;
mod lists;
mod parts;
mod rules;
mod schema;
mod selectable;
mod structural;
mod versions;

use flotilla_proto::value;
use flotilla_proto::value::Value;

use self::schema::SchemaChecks;
use self::versions::{check_label, validate_shared, validate_versions};
use crate::field::{Errors, Path};
use crate::printing::PLAIN;
use crate::rules::conditions::is_true;
use crate::rules::{Generation, NameRule, Strategy, defaulting, metadata, names};

/// Rules of CustomResourceDefinitions.
pub static STRATEGY: Strategy = Strategy {
    known_finalizers: false,
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    unconditional_update: false,
    default,
    prepare_create: |object, _| {
        let status = value!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
        object.set_at(&["status"], status);
        add_stored_version(object);
    },
    prepare_update: |object, _, _| add_stored_version(object),
    validate: |object, errors| {
        validate_name(object, errors);
        validate(object, None, errors);
    },
    validate_update: |object, old, errors| validate(object, Some(old), errors),
    validate_status: |object, _, errors| {
        validate_names(object.at(&["status", "acceptedNames"]), &Path::root("status.acceptedNames"), errors);
    },
    warnings: formats::warn,
    printer: Some(PLAIN),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    if let Some(Value::Array(versions)) = object.get_mut("spec").and_then(|spec| spec.get_mut("versions")) {
        for version in versions {
            if let Some(schema) = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema")) {
                parts::arrange_schema(schema);
            }
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(names) = defaulting::object(spec, "names") {
            let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
            if !kind.is_empty() {
                defaulting::plain(names, "singular", kind.to_lowercase());
                defaulting::plain(names, "listKind", format!("{kind}List"));
            }
        }
        defaulting::pointer(spec, "conversion", value!({"strategy": "None"}));
        let service = defaulting::object(spec, "conversion")
            .and_then(|conversion| defaulting::object(conversion, "webhook"))
            .and_then(|webhook| defaulting::object(webhook, "clientConfig"))
            .and_then(|config| defaulting::object(config, "service"));
        if let Some(service) = service {
            defaulting::pointer(service, "port", 443);
        }
    }
    if object.list_at(&["status", "storedVersions"]).is_empty() {
        add_stored_version(object);
    }
}

/// Adds the storage version to `status.storedVersions`.
fn add_stored_version(object: &mut Value) {
    let versions = object.list_at(&["spec", "versions"]);
    let Some(version) = versions.iter().find(|version| version.is_true_at(&["storage"])) else { return };
    let name = Value::from(version.str_at(&["name"]));
    let mut stored = object.list_at(&["status", "storedVersions"]).to_vec();
    if !stored.contains(&name) {
        stored.push(name);
        object.set_at(&["status", "storedVersions"], stored);
    }
}

/// Checks that a definition is named after its resource and group.
fn validate_name(object: &Value, errors: &mut Errors) {
    let required = format!("{}.{}", object.str_at(&["spec", "names", "plural"]), object.str_at(&["spec", "group"]));
    let why = "must be spec.names.plural+\".\"+spec.group";
    let mut at = 0;
    for field in ["generateName", "name"] {
        let name = object.str_at(&["metadata", field]);
        if !name.is_empty() && name != required {
            errors.invalid_str(&Path::root("metadata").child(field), name, why);
            let last = errors.0.len() - 1;
            errors.0[at..=last].rotate_right(1);
            at += 1;
        }
    }
}

fn is_established(object: &Value) -> bool {
    is_true(object, "Established")
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let (rules, preserves) = (SchemaChecks::replacing(old), spec.is_true_at(&["preserveUnknownFields"]));
    validate_group(spec.str_at(&["group"]), &path.child("group"), errors);
    names::check_choice(&path.child("scope"), spec.str_at(&["scope"]), &["Cluster", "Namespaced"], errors);
    validate_presence(object, old, &path.child("versions"), errors);
    if preserves && schemas(object).any(schema::has_defaults) {
        let why = "must be false in order to use defaults in the schema";
        errors.invalid(&path.child("preserveUnknownFields"), &true.into(), why);
    }
    validate_versions(object, old, rules, &path, errors);
    validate_spec_names(spec.at(&["names"]), &path.child("names"), errors);
    validate_shared(object, old, rules, &path, errors);
    let strategy = spec.at(&["conversion", "strategy"]);
    if preserves && !matches!(strategy.as_str(), None | Some("None")) {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.invalid(&path.child("conversion").child("strategy"), strategy, why);
    }
    conversion::validate(object, old, &path.child("conversion"), errors);
    if let Some(old) = old {
        validate_same(object, old, errors);
    }
    validate_names(object.at(&["status", "acceptedNames"]), &Path::root("status.acceptedNames"), errors);
    validate_stored(object, errors);
    approval::validate(object, old, errors);
    if preserves && !old.is_some_and(|old| old.is_true_at(&["spec", "preserveUnknownFields"])) {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&path.child("preserveUnknownFields"), &true.into(), why);
    }
}

/// Returns the schemas of all versions; `null` for a version without one.
fn schemas(object: &Value) -> impl Iterator<Item = &Value> {
    object.list_at(&["spec", "versions"]).iter().map(|version| version.at(&["schema", "openAPIV3Schema"]))
}

/// Checks that every version has a schema. If a version of the stored definition had none, only served versions need
/// one.
fn validate_presence(object: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let lax = old.is_some_and(|old| schemas(old).any(Value::is_null));
    let preserves = object.is_true_at(&["spec", "preserveUnknownFields"]);
    let why = if lax { "because otherwise all fields are pruned" } else { "" };
    for (index, schema) in schemas(object).enumerate() {
        let served = object.list_at(&["spec", "versions"])[index].is_true_at(&["served"]);
        if schema.is_null() && (!lax || (served && !preserves)) {
            errors.required(&path.index(index).child("schema").child("openAPIV3Schema"), why);
        }
    }
}

/// Checks that the fields which paths and stored objects depend on stay the same.
fn validate_same(object: &Value, old: &Value, errors: &mut Errors) {
    let (spec, before) = (object.at(&["spec"]), old.at(&["spec"]));
    let mut same = |field: &str, path: &[&str]| {
        metadata::immutable(&Path::root("spec").child(field), spec.at(path), before.at(path), errors);
    };
    if is_established(old) {
        same("scope", &["scope"]);
        same("names.kind", &["names", "kind"]);
    }
    same("group", &["group"]);
    same("names.plural", &["names", "plural"]);
}

fn validate_group(group: &str, path: &Path<'_>, errors: &mut Errors) {
    let messages = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.required(path, "");
    } else if !messages.is_empty() {
        errors.invalid_str(path, group, messages.join(","));
    } else if !group.contains('.') {
        errors.invalid_str(path, group, "should be a domain with at least one dot");
    }
}

fn validate_spec_names(names: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if names.str_at(&[field]).is_empty() {
            errors.required(&path.child(field), "");
        }
    }
    validate_names(names, path, errors);
}

fn validate_names(names: &Value, path: &Path<'_>, errors: &mut Errors) {
    let caseless = "may have mixed case, but should otherwise match: ";
    for (field, prefix) in [("plural", ""), ("singular", ""), ("kind", caseless), ("listKind", caseless)] {
        let name = names.str_at(&[field]);
        let text = if prefix.is_empty() { name.to_owned() } else { name.to_lowercase() };
        if !name.is_empty() {
            check_label(&path.child(field), name, &text, prefix, errors);
        }
    }
    let check_list = |field: &str, errors: &mut Errors| {
        let path = path.child(field);
        for (index, name) in names.list_at(&[field]).iter().filter_map(Value::as_str).enumerate() {
            check_label(&path.index(index), name, name, "", errors);
        }
    };
    check_list("shortNames", errors);
    let list_kind = names.str_at(&["listKind"]);
    if !list_kind.is_empty() && names.str_at(&["kind"]) == list_kind {
        errors.invalid_str(&path.child("listKind"), list_kind, "kind and listKind may not be the same");
    }
    check_list("categories", errors);
}

fn validate_stored(object: &Value, errors: &mut Errors) {
    let path = Path::root("status.storedVersions");
    let stored = object.at(&["status", "storedVersions"]);
    let names = object.list_at(&["status", "storedVersions"]);
    if names.is_empty() {
        errors.invalid(&path, stored, "must have at least one stored version");
        return;
    }
    let versions = object.list_at(&["spec", "versions"]);
    for (index, version) in versions.iter().enumerate().filter(|(_, version)| version.is_true_at(&["storage"])) {
        // The reference finds each stored version only once: it misses a storage version that repeats a name.
        let is_repeated = versions[..index].iter().any(|other| other.at(&["name"]) == version.at(&["name"]));
        if is_repeated || !names.contains(version.at(&["name"])) {
            let why = format!("must have the storage version {}", version.str_at(&["name"]));
            errors.invalid(&path, stored, why);
        }
    }
    for (index, name) in names.iter().enumerate() {
        if !versions.iter().any(|version| version.at(&["name"]) == name) {
            let text = name.as_str().unwrap_or("");
            let why = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {text} and removes {text} from \
                 status.storedVersions"
            );
            errors.invalid(&path.index(index), name, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        let schema = value!({"openAPIV3Schema": {"type": "object"}});
        let mut definition = value!({
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": (schema)}]
            }
        });
        (STRATEGY.default)(&mut definition);
        (STRATEGY.prepare_create)(&mut definition, flotilla_proto::time::Timestamp { seconds: 0, nanos: 0 });
        definition
    }

    fn broken(definition: &Value, old: Option<&Value>) -> Vec<String> {
        let mut errors = Errors::default();
        validate_name(definition, &mut errors);
        validate(definition, old, &mut errors);
        errors.0.iter().map(|error| format!("{}: {}", error.field, error.body())).collect()
    }

    #[test]
    fn names_follow_from_the_kind() {
        let definition = definition();
        assert_eq!(definition.str_at(&["spec", "names", "listKind"]), "ThingList");
        assert_eq!(definition.str_at(&["spec", "names", "singular"]), "thing");
        assert_eq!(broken(&definition, None), Vec::<String>::new());
    }

    #[test]
    fn errors_name_shared_members_outside_of_the_versions() {
        let mut bad = definition();
        bad.set_at(&["spec", "versions"], value!([{"name": "v1", "schema": {"openAPIV3Schema": {"type": "string"}}}]));
        let versions = r#"[{"Name":"v1","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]"#;
        assert_eq!(
            broken(&bad, None),
            [
                format!(
                    "spec.versions: Invalid value: {versions}: must have exactly one version marked as storage version"
                ),
                "spec.validation.openAPIV3Schema.type: Invalid value: \"string\": must be object at the root"
                    .to_owned()
            ]
        );
    }

    #[test]
    fn free_values_of_schemas_are_sorted() {
        let mut one = definition();
        let items = value!({"required": ["k"], "properties": {"z": {"type": "string"}, "k": {"enum": ["b"],
            "type": "string"}}, "type": "object"});
        let part = value!({"items": items, "default": {"z": 1, "a": [{"y": 1, "b": 2}]}});
        let schema = value!({"properties": {"spec": part}});
        one.set_at(&["spec", "versions"], value!([{"name": "v1", "schema": {"openAPIV3Schema": schema}}]));
        default(&mut one);
        let text = String::from_utf8(flotilla_proto::json::to_vec(one.at(&["spec", "versions"]))).expect("UTF-8");
        let items = r#"{"type":"object","required":["k"],"properties":{"k":{"type":"string","enum":["b"]},"z":{"type":"string"}}}"#;
        assert!(text.contains(&format!("\"items\":{items}")), "{text}");
        assert!(text.contains(r#""default":{"a":[{"b":2,"y":1}],"z":1}"#), "{text}");
    }

    #[test]
    fn a_repeated_storage_version_is_not_among_those_stored() {
        let complaints = |versions: Value| {
            let mut errors = Errors::default();
            let definition = value!({"spec": {"versions": versions}, "status": {"storedVersions": ["v1"]}});
            validate_stored(&definition, &mut errors);
            errors.0.iter().map(|error| error.detail.to_string()).collect::<Vec<_>>()
        };
        let version = value!({"name": "v1", "storage": true});
        assert!(complaints(value!([(version.clone())])).is_empty());
        assert_eq!(complaints(value!([(version.clone()), version])), ["must have the storage version v1"]);
    }

    #[test]
    fn groups_of_the_project_need_approval() {
        let mut definition = definition();
        definition.set_at(&["spec", "group"], "x.k8s.io");
        definition.set_at(&["metadata", "name"], "things.x.k8s.io");
        let state = |text: &str, definition: &mut Value| {
            definition.set_at(&["metadata", "annotations"], value!({"api-approved.kubernetes.io": (text)}));
            broken(definition, None).len()
        };
        assert_eq!(broken(&definition, None).len(), 1);
        assert_eq!(state("https://example.com/1", &mut definition), 0);
        assert_eq!(state("unapproved, trying it", &mut definition), 0);
        assert_eq!(state("not a url", &mut definition), 1);
    }
}
