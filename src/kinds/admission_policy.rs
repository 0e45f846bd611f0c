//! Admission policies and their bindings, validating and mutating. Expressions are checked where they are compiled.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::admission_rules::{check_optional, check_set, default_match, validate_conditions, validate_match};
use super::{Generation, NameRule, Strategy, conditions, labels, metadata, names};
use crate::field::{Errors, Path};

const AUDITS_MAX: usize = 20;
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

const COMMON: Strategy = Strategy {
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
    prepare_status: metadata::reset_for_status,
    default: default_policy,
    validate: validate_validating,
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_validating(object, errors);
    },
    validate_status: |object, _, errors| {
        validate_warnings(object, errors);
        conditions::validate(object.list_at(&["status", "conditions"]), &Path::root("status.conditions"), errors);
    },
    ..COMMON
};

/// Rules of ValidatingAdmissionPolicyBindings.
pub static VALIDATING_BINDING: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    default: default_binding,
    validate: |object, errors| validate_binding(object, true, errors),
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_binding(object, true, errors);
    },
    ..COMMON
};

/// Rules of MutatingAdmissionPolicies.
pub static MUTATING: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    default: default_policy,
    validate: validate_mutating,
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_mutating(object, errors);
    },
    ..COMMON
};

/// Rules of MutatingAdmissionPolicyBindings.
pub static MUTATING_BINDING: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    default: default_binding,
    validate: |object, errors| validate_binding(object, false, errors),
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_binding(object, false, errors);
    },
    ..COMMON
};

fn default_policy(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if spec.at(&["failurePolicy"]).is_null() {
        spec.set_at(&["failurePolicy"], "Fail");
    }
    default_match(spec.get_mut("matchConstraints"));
}

fn default_binding(object: &mut Value) {
    default_match(object.get_mut("spec").and_then(|spec| spec.get_mut("matchResources")));
}

/// What both sorts of policy have in common.
fn validate_policy(spec: &Value, mutating: bool, errors: &mut Errors) {
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
    validate_conditions(spec.list_at(&["matchConditions"]), &path.child("matchConditions"), errors);
    for (index, variable) in spec.list_at(&["variables"]).iter().enumerate() {
        let place = path.child("variables");
        let place = place.index(index);
        let name = variable.str_at(&["name"]);
        if name.trim().is_empty() {
            errors.required(&place.child("name"), "name is not specified");
        } else if !is_cel_identifier(name) {
            errors.invalid_str(&place.child("name"), name, "must be a valid CEL identifier");
        }
        if variable.str_at(&["expression"]).trim().is_empty() {
            errors.required(&place.child("expression"), "expression is not specified");
        }
    }
}

/// Mutations happen to what is written, never to what is deleted.
fn validate_operations(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let operations = resources.list_at(&["resourceRules"]).iter().flat_map(|rule| rule.list_at(&["operations"]));
    for operation in operations {
        let place = path.child("resourceRules");
        check_optional(&place.child("operations"), operation, &MUTATING_OPERATIONS, errors);
    }
}

/// Whether a text is an identifier of CEL, none of its reserved words.
fn is_cel_identifier(text: &str) -> bool {
    const RESERVED: [&str; 22] = [
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
        "__proto__",
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

fn validate_validating(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    validate_policy(spec, false, errors);
    let (validations, audits) = (spec.list_at(&["validations"]), spec.list_at(&["auditAnnotations"]));
    if validations.is_empty() && audits.is_empty() {
        for field in ["validations", "auditAnnotations"] {
            let why = "validations or auditAnnotations must contain at least one item";
            errors.required(&path.child(field), why);
        }
        return;
    }
    for (index, validation) in validations.iter().enumerate() {
        validate_validation(validation, &path.child("validations").index(index), errors);
    }
    let path = path.child("auditAnnotations");
    if audits.len() > AUDITS_MAX {
        let why = format!("must not have more than {AUDITS_MAX} auditAnnotations");
        errors.invalid(&path, spec.at(&["auditAnnotations"]), why);
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
        let expression = audit.str_at(&["valueExpression"]);
        if expression.trim().is_empty() {
            errors.required(&place.child("valueExpression"), "valueExpression is not specified");
        } else if expression.trim().len() > 5 << 10 {
            let why = "must not exceed 5kb in length";
            errors.required(&place.child("valueExpression"), why);
        }
        if !keys.insert(key) {
            errors.duplicate(&place.child("key"), &key.into());
        }
    }
}

fn validate_validation(validation: &Value, path: &Path<'_>, errors: &mut Errors) {
    if validation.str_at(&["expression"]).trim().is_empty() {
        errors.required(&path.child("expression"), "expression is not specified");
    }
    for field in ["messageExpression", "message"] {
        let text = validation.str_at(&[field]);
        if !text.is_empty() && text.trim().is_empty() {
            errors.invalid_str(&path.child(field), text, "must be non-empty if specified");
        } else if field == "message" && text.trim().contains(['\n', '\r']) {
            errors.invalid_str(&path.child(field), text, "must not contain line breaks");
        }
    }
    check_optional(&path.child("reason"), validation.at(&["reason"]), &REASONS, errors);
}

fn validate_mutating(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    validate_policy(spec, true, errors);
    let mutations = spec.list_at(&["mutations"]);
    if mutations.is_empty() {
        errors.required(&path.child("mutations"), "mutations must contain at least one item");
    }
    for (index, mutation) in mutations.iter().enumerate() {
        validate_mutation(mutation, &path.child("mutations").index(index), errors);
    }
    let policy = spec.str_at(&["reinvocationPolicy"]);
    names::check_choice(&path.child("reinvocationPolicy"), policy, &["IfNeeded", "Never"], errors);
}

fn validate_mutation(mutation: &Value, path: &Path<'_>, errors: &mut Errors) {
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
    } else if mutation.str_at(&[own, "expression"]).trim().is_empty() {
        let place = path.child(own);
        errors.required(&place.child("expression"), "");
    }
    if !mutation.at(&[other]).is_null() {
        let why = format!("must not be specified when patchType is {kind}");
        errors.invalid_str(&path.child(other), &format!("{{{other}}}"), why);
    }
}

fn validate_binding(object: &Value, validating: bool, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    match spec.str_at(&["policyName"]) {
        "" => errors.required(&path.child("policyName"), ""),
        name => names::check(&path.child("policyName"), name, names::dns1123_subdomain, errors),
    }
    validate_param_ref(spec.at(&["paramRef"]), &path.child("paramRef"), errors);
    let resources = spec.at(&["matchResources"]);
    validate_match(resources, &path.child("matchResources"), errors);
    if !validating {
        validate_operations(resources, &path.child("matchResources"), errors);
        return;
    }
    let (place, actions) = (path.child("validationActions"), spec.list_at(&["validationActions"]));
    for (index, action) in actions.iter().enumerate() {
        check_optional(&place.index(index), action, &ACTIONS, errors);
        if actions[..index].contains(action) {
            errors.duplicate(&place.index(index), action);
        }
    }
    let has = |name: &str| actions.iter().any(|action| action.as_str() == Some(name));
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
            response and headers serves no purpose)";
        errors.invalid(&place, spec.at(&["validationActions"]), why);
    }
    if actions.is_empty() {
        errors.required(&place, "at least one validation action is required");
    }
}

fn validate_param_ref(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    if reference.is_null() {
        return;
    }
    let (name, selector) = (reference.str_at(&["name"]), reference.at(&["selector"]));
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    if !name.is_empty() {
        names::check(&path.child("name"), name, names::path_segment, errors);
        if !selector.is_null() {
            errors.forbidden(&path.child("name"), EXCLUSIVE);
        }
    }
    if !selector.is_null() {
        let options = labels::SelectorOptions::default();
        labels::validate_selector(selector, options, &path.child("selector"), errors);
        if !name.is_empty() {
            errors.forbidden(&path.child("selector"), EXCLUSIVE);
        }
    }
    if name.is_empty() && selector.is_null() {
        errors.required(path, "one of name or selector must be specified");
    }
    let action = reference.str_at(&["parameterNotFoundAction"]);
    names::check_choice(&path.child("parameterNotFoundAction"), action, &["Deny", "Allow"], errors);
}

fn validate_warnings(object: &Value, errors: &mut Errors) {
    let path = Path::root("status.typeChecking.expressionWarnings");
    let warnings = object.list_at(&["status", "typeChecking", "expressionWarnings"]);
    for (index, warning) in warnings.iter().enumerate() {
        let place = path.index(index);
        for field in ["warning", "fieldRef"] {
            if warning.str_at(&[field]).trim().is_empty() {
                errors.required(&place.child(field), "");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn policies_and_bindings() {
        let rule = value!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        let spec = value!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]});
        assert!(VALIDATING.broken_fields(value!({"metadata": {"name": "p"}, "spec": spec})).is_empty());
        assert_eq!(
            VALIDATING.broken_fields(value!({"metadata": {"name": "p"}, "spec": {}})),
            ["spec.matchConstraints", "spec.validations", "spec.auditAnnotations"]
        );
        assert_eq!(
            VALIDATING_BINDING.broken_fields(value!({"spec": {"validationActions": ["Deny", "Warn"], "paramRef": {}}})),
            ["spec.policyName", "spec.paramRef", "spec.paramRef.parameterNotFoundAction", "spec.validationActions"]
        );
    }
}
