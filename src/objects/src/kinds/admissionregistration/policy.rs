//! Validating and mutating admission policies.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::expressions::{Expressions, are_conditions_kept, validate_conditions};
use super::rules::{check_optional, check_set, default_match, validate_match};
use crate::expressions::{OptionalNames, Wanted};
use crate::field::{Errors, Path};
use crate::fieldmanager::reset;
use crate::printing::{Printer, admission, jsonpath};
use crate::rules::{Generation, NameRule, Strategy, conditions, metadata, names};

const AUDITS_MAX: usize = 20;
const AUDIT_BYTES_MAX: usize = 5 << 10;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

/// The strategy that the kinds of admission policies and bindings share.
pub(super) const COMMON: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    unconditional_update: false,
    ..Strategy::DEFAULT
};

/// Rules of ValidatingAdmissionPolicies.
pub static VALIDATING: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    status: true,
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    default: default_policy,
    validate: |object, errors| validate_validating(object, &Value::Null, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_validating(object, old.at(&["spec"]), errors);
    },
    validate_status: |object, _, errors| {
        validate_warnings(object, errors);
        conditions::validate(object.list_at(&["status", "conditions"]), &Path::root("status.conditions"), errors);
    },
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(admission::validating_policy)),
    ..COMMON
};

/// Rules of MutatingAdmissionPolicies.
pub static MUTATING: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    default: default_policy,
    validate: |object, errors| validate_mutating(object, &Value::Null, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_mutating(object, old.at(&["spec"]), errors);
    },
    printer: Some(Printer::of(admission::mutating_policy)),
    ..COMMON
};

fn default_policy(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if spec.at(&["failurePolicy"]).is_null() {
        spec.set_at(&["failurePolicy"], "Fail");
    }
    default_match(spec.get_mut("matchConstraints"));
}

/// Checks the parts that both kinds of policy share. Returns the checker for their other expressions.
fn validate_policy<'a>(spec: &Value, before: &'a Value, mutating: bool, errors: &mut Errors) -> Expressions<'a> {
    let path = Path::root("spec");
    check_set(&path.child("failurePolicy"), spec.at(&["failurePolicy"]), &["Fail", "Ignore"], errors);
    let kind = spec.at(&["paramKind"]);
    if !kind.is_null() {
        validate_param_kind(kind, &path.child("paramKind"), errors);
    }
    let (constraints, place) = (spec.at(&["matchConstraints"]), path.child("matchConstraints"));
    if constraints.is_null() {
        errors.required(&place, "");
    } else {
        validate_match(constraints, &place, errors);
        if constraints.list_at(&["resourceRules"]).is_empty() {
            errors.required(&place.child("resourceRules"), "");
        }
        if mutating {
            validate_operations(constraints, &place, errors);
        }
    }
    if !are_conditions_kept(spec, before) {
        validate_conditions(spec, before, &path.child("matchConditions"), errors);
    }
    let has_variables = mutating || !spec.list_at(&["variables"]).is_empty();
    let mut expressions = Expressions::of_policy(spec, before, has_variables);
    for (index, variable) in spec.list_at(&["variables"]).iter().enumerate() {
        let place = path.child("variables");
        let place = place.index(index);
        let name = variable.str_at(&["name"]);
        if name.trim().is_empty() {
            errors.required(&place.child("name"), "name is not specified");
        } else if !is_cel_identifier(name) {
            errors.invalid_str(&place.child("name"), name, "must be a valid CEL identifier");
        }
        match variable.str_at(&["expression"]) {
            text if text.trim().is_empty() => {
                errors.required(&place.child("expression"), "expression is not specified");
            }
            text => expressions.variable(name, text, &place.child("expression"), errors),
        }
    }
    expressions
}

/// Checks that a mutating policy does not match deletions: there is no new object to change.
pub(super) fn validate_operations(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let operations = resources.list_at(&["resourceRules"]).iter().flat_map(|rule| rule.list_at(&["operations"]));
    for operation in operations {
        let place = path.child("resourceRules");
        check_optional(&place.child("operations"), operation, &MUTATING_OPERATIONS, errors);
    }
}

/// Returns whether a text is an identifier of CEL and not one of its reserved words.
fn is_cel_identifier(text: &str) -> bool {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    names::c_identifier(text).is_empty() && !RESERVED.contains(&text)
}

fn validate_param_kind(kind: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (place, text) = (path.child("apiVersion"), kind.str_at(&["apiVersion"]));
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        _ if text.is_empty() => errors.required(&place, ""),
        [version] => validate_version("", version, text, &place, errors),
        [group, version] => validate_version(group, version, text, &place, errors),
        _ => errors.invalid_str(&place, text, format!("unexpected GroupVersion string: {text}")),
    }
    let (place, name) = (path.child("kind"), kind.str_at(&["kind"]));
    let messages = names::dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        errors.required(&place, "");
    } else if !messages.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
        errors.invalid_str(&place, name, why);
    }
}

fn validate_version(group: &str, version: &str, whole: &str, path: &Path<'_>, errors: &mut Errors) {
    let messages = names::dns1123_subdomain(group);
    if !group.is_empty() && !messages.is_empty() {
        errors.invalid_str(path, group, messages.join(","));
    }
    let messages = names::dns1035_label(version);
    if version.is_empty() {
        errors.invalid_str(path, whole, "version must be specified");
    } else if !messages.is_empty() {
        errors.invalid_str(path, version, messages.join(","));
    }
}

fn validate_validating(object: &Value, before: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let mut expressions = validate_policy(spec, before, false, errors);
    let (validations, audits) = (spec.list_at(&["validations"]), spec.list_at(&["auditAnnotations"]));
    if validations.is_empty() && audits.is_empty() {
        for field in ["validations", "auditAnnotations"] {
            let why = "validations or auditAnnotations must contain at least one item";
            errors.required(&path.child(field), why);
        }
        return;
    }
    for (index, validation) in validations.iter().enumerate() {
        validate_validation(validation, &mut expressions, &path.child("validations").index(index), errors);
    }
    validate_audits(object, &mut expressions, &path.child("auditAnnotations"), errors);
}

fn validate_audits(object: &Value, expressions: &mut Expressions<'_>, path: &Path<'_>, errors: &mut Errors) {
    let audits = object.list_at(&["spec", "auditAnnotations"]);
    if audits.len() > AUDITS_MAX {
        let why = format!("must not have more than {AUDITS_MAX} auditAnnotations");
        errors.invalid(path, object.at(&["spec", "auditAnnotations"]), why);
    }
    let name = object.str_at(&["metadata", "name"]);
    let mut keys = HashSet::new();
    for (index, audit) in audits.iter().enumerate() {
        let place = path.index(index);
        let key = audit.str_at(&["key"]);
        if name.is_empty() {
            errors.invalid_str(&place.child("key"), key, "requires metadata.name be non-empty");
        } else {
            let whole = format!("{name}/{key}");
            names::check(&place.child("key"), &whole, names::qualified_name, errors);
        }
        let (text, own) = (audit.str_at(&["valueExpression"]), place.child("valueExpression"));
        match text.trim() {
            "" => errors.required(&own, "valueExpression is not specified"),
            trimmed if trimmed.len() > AUDIT_BYTES_MAX => {
                errors.required(&own, format!("must not exceed {AUDIT_BYTES_MAX} bytes in length"));
            }
            trimmed => {
                let asked = (Wanted::StringOrNull, expressions.sees());
                expressions.check(trimmed, asked, ("auditAnnotations", &["valueExpression"]), (&own, text), errors);
            }
        }
        if !keys.insert(key) {
            errors.duplicate(&place.child("key"), &key.into());
        }
    }
}

fn validate_validation(validation: &Value, expressions: &mut Expressions<'_>, path: &Path<'_>, errors: &mut Errors) {
    const LIST: &str = "validations";
    let (text, place) = (validation.str_at(&["expression"]), path.child("expression"));
    let sees = expressions.sees();
    if text.trim().is_empty() {
        errors.required(&place, "expression is not specified");
    } else {
        expressions.check(text, (Wanted::Bool, sees), (LIST, &["expression"]), (&place, text), errors);
    }
    let (text, place) = (validation.str_at(&["messageExpression"]), path.child("messageExpression"));
    if !text.is_empty() && text.trim().is_empty() {
        errors.invalid_str(&place, text, "must be non-empty if specified");
    } else if !text.is_empty() {
        let asked = (Wanted::String, OptionalNames { authorizer: false, ..sees });
        expressions.check(text, asked, (LIST, &["messageExpression"]), (&place, text), errors);
    }
    let (text, place) = (validation.str_at(&["message"]), path.child("message"));
    if !text.is_empty() && text.trim().is_empty() {
        errors.invalid_str(&place, text, "must be non-empty if specified");
    } else if text.trim().contains(['\n', '\r']) {
        errors.invalid_str(&place, text, "must not contain line breaks");
    }
    check_optional(&path.child("reason"), validation.at(&["reason"]), &REASONS, errors);
}

fn validate_mutating(object: &Value, before: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let mut expressions = validate_policy(spec, before, true, errors);
    let mutations = spec.list_at(&["mutations"]);
    if mutations.is_empty() {
        errors.required(&path.child("mutations"), "mutations must contain at least one item");
    }
    for (index, mutation) in mutations.iter().enumerate() {
        validate_mutation(mutation, &mut expressions, &path.child("mutations").index(index), errors);
    }
    let policy = spec.str_at(&["reinvocationPolicy"]);
    names::check_choice(&path.child("reinvocationPolicy"), policy, &["IfNeeded", "Never"], errors);
}

fn validate_mutation(mutation: &Value, expressions: &mut Expressions<'_>, path: &Path<'_>, errors: &mut Errors) {
    let kind = mutation.str_at(&["patchType"]);
    let (own, other) = match kind {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        _ => {
            let place = path.child("patchType");
            names::check_choice(&place, kind, &["ApplyConfiguration", "JSONPatch"], errors);
            return;
        }
    };
    if mutation.at(&[own]).is_null() {
        errors.required(&path.child(own), format!("must be specified when patchType is {kind}"));
    } else {
        let place = path.child(own);
        let place = place.child("expression");
        match mutation.str_at(&[own, "expression"]).trim() {
            "" => errors.required(&place, ""),
            text => {
                let wanted = if own == "jsonPatch" { Wanted::Patches } else { Wanted::Object };
                let sees = OptionalNames { patches: true, ..expressions.sees() };
                expressions.check(text, (wanted, sees), ("mutations", &[own, "expression"]), (&place, text), errors);
            }
        }
    }
    if !mutation.at(&[other]).is_null() {
        let why = format!("must not be specified when patchType is {kind}");
        errors.invalid_str(&path.child(other), &format!("{{{other}}}"), why);
    }
}

fn validate_warnings(object: &Value, errors: &mut Errors) {
    let path = Path::root("status.typeChecking.expressionWarnings");
    let warnings = object.list_at(&["status", "typeChecking", "expressionWarnings"]);
    for (index, warning) in warnings.iter().enumerate() {
        let place = path.index(index);
        if warning.str_at(&["warning"]).trim().is_empty() {
            errors.required(&place.child("warning"), "");
        }
        let (place, field) = (place.child("fieldRef"), warning.str_at(&["fieldRef"]));
        if field.trim().is_empty() {
            errors.required(&place, "");
        } else if let Err(why) = jsonpath::Path::parse(field) {
            errors.invalid_str(&place, field, format!("invalid JSONPath: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn policies_state_matched_resources_and_validations() {
        let rule = value!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        let spec = value!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]});
        assert!(VALIDATING.broken_fields(value!({"metadata": {"name": "p"}, "spec": spec})).is_empty());
        assert_eq!(
            VALIDATING.broken_fields(value!({"metadata": {"name": "p"}, "spec": {}})),
            ["spec.matchConstraints", "spec.validations", "spec.auditAnnotations"]
        );
    }

    #[test]
    fn warnings_name_fields_by_paths() {
        let complaints = |field: &str| {
            let warnings = value!([{"warning": "w", "fieldRef": field}]);
            let mut errors = Errors::default();
            validate_warnings(&value!({"status": {"typeChecking": {"expressionWarnings": warnings}}}), &mut errors);
            errors.0.iter().map(|error| error.detail.to_string()).collect::<Vec<_>>()
        };
        assert!(complaints("spec.validations[0].expression").is_empty());
        assert_eq!(complaints("/x"), ["invalid JSONPath: unrecognized character in action: U+002F '/'"]);
        assert_eq!(complaints("a\nb"), ["invalid JSONPath: unclosed action"]);
        assert_eq!(complaints("a["), ["invalid JSONPath: unterminated array"]);
    }

    #[test]
    fn errors_of_expressions_have_their_path() {
        let rule = value!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        let policy = |validation: Value| {
            value!({"metadata": {"name": "p"}, "spec": {
                "matchConstraints": {"resourceRules": [(rule.clone())]},
                "variables": [{"name": "n", "expression": "size(object.metadata.name)"}],
                "validations": [validation],
            }})
        };
        let complaints = |validation: Value| {
            let errors = VALIDATING.judge(policy(validation));
            errors.0.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect::<Vec<_>>()
        };
        assert_eq!(complaints(value!({"expression": "variables.n > 3"})), Vec::<String>::new());
        let wrong = complaints(value!({"expression": "variables.m", "messageExpression": "1"}));
        assert_eq!(
            wrong,
            [
                "spec.validations[0].expression: compilation failed: ERROR: <input>:1:10: undefined field 'm'\n | \
                 variables.m\n | .........^",
                "spec.validations[0].messageExpression: must evaluate to string but got int",
            ]
        );
    }
}
