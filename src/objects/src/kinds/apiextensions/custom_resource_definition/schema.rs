//! Checks the schema of a version as a whole.

use flotilla_proto::value::Value;

use super::rules::Stored;
use super::{defaults, internal, keywords, lists, parts, structural};
use crate::field::{ErrorKind, Errors, Path};

/// Keywords that are allowed at the root of a schema when the status subresource is enabled, as messages list them.
const AT_ROOT: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
    MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
    XPreserveUnknownFields XValidations";

/// The checks that apply to a definition's schemas. An update skips a check that the stored definition does not pass,
/// because it may have been stored before the check existed.
#[derive(Debug, Clone, Copy)]
pub struct SchemaChecks {
    /// Types must be those of OpenAPI.
    pub known_types: bool,
    /// Defaults must not have unknown fields.
    pub pruned_defaults: bool,
    /// Items of sets must be atomic.
    pub atomic_sets: bool,
    /// The keys of lists must be required or have a default.
    pub certain_keys: bool,
}

impl SchemaChecks {
    /// Returns the checks for a definition that replaces `old`. `None` means that the definition is new.
    pub fn replacing(old: Option<&Value>) -> Self {
        let versions = old.map_or(&[][..], |old| old.list_at(&["spec", "versions"]));
        let keeps = |breaks: &dyn Fn(&Value) -> bool| {
            let holds = |version: &Value| parts::any(version.at(&["schema", "openAPIV3Schema"]), breaks);
            !versions.iter().any(holds)
        };
        Self {
            known_types: keeps(&|schema| !parts::kind(schema).is_empty() && !keywords::is_known_type(schema)),
            pruned_defaults: keeps(&defaults::is_unpruned),
            atomic_sets: keeps(&|schema| lists::loose_item(schema).is_some()),
            certain_keys: keeps(&|schema| {
                let mut errors = Errors::default();
                lists::validate_keys(schema, &Path::root(""), &mut errors);
                !errors.is_empty()
            }),
        }
    }
}

/// Returns whether a schema has defaults.
pub fn has_defaults(schema: &Value) -> bool {
    parts::any(schema, &|schema| parts::has(schema, "default"))
}

/// A schema of one version, or the schema that all versions share.
#[derive(Clone, Copy)]
pub struct Stated<'a> {
    /// The schema.
    pub schema: &'a Value,
    /// The name of the version. If all versions share the schema, the name of the first one.
    pub version: &'a str,
    /// Whether the status subresource is enabled.
    pub status: bool,
}

/// Checks the schema of a version.
pub fn validate(stated: Stated<'_>, rules: SchemaChecks, stored: &Stored<'_>, path: &Path<'_>, errors: &mut Errors) {
    let schema = stated.schema;
    if schema.is_null() {
        return;
    }
    let path = path.child("openAPIV3Schema");
    let begin = errors.0.len();
    if stated.status {
        validate_root(schema, &path, errors);
    }
    if parts::is_on(schema, "nullable") {
        errors.forbidden(&path.child("nullable"), "nullable cannot be true at the root");
    }
    let expressible = parts::is_expressible(schema);
    let before = errors.0.len();
    if expressible {
        structural::validate(schema, &path, errors);
        if errors.0.len() == before {
            defaults::validate(schema, rules.pruned_defaults, &path, errors);
        }
    }
    let after = errors.0.len();
    keywords::validate(schema, rules, &path, errors);
    if expressible && after == before {
        let mut found = stored.judge(schema, stated.version, &errors.0[after..], &path);
        errors.0.append(&mut found.0);
    }
    if !expressible && errors.0.len() == begin {
        // All other keywords that a structural schema cannot express were found before.
        errors.invalid_str(&path, "", "OpenAPIV3Schema 'schema' is not supported");
    }
}

/// Checks that the root has only keywords that allow validating the status separately.
fn validate_root(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = parts::kind(schema);
    for name in internal::stated(schema) {
        if name == "Type" && kind != "object" {
            let why =
                "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return errors.invalid_str(&path.child("type"), kind, why);
        }
        if !AT_ROOT.split(' ').any(|allowed| allowed == name) {
            let why = format!(
                "only [{AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            );
            return errors.push(ErrorKind::Invalid, path, internal::schema_shown(schema), why);
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
