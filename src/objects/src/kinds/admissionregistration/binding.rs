//! Bindings of validating and mutating admission policies.

use flotilla_proto::value::Value;

use super::policy::{COMMON, validate_operations};
use super::rules::{check_optional, default_match, validate_match};
use crate::field::{Errors, Path};
use crate::printing::{Printer, admission};
use crate::rules::{NameRule, Strategy, labels, metadata, names};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// Rules of ValidatingAdmissionPolicyBindings.
pub static VALIDATING: Strategy = Strategy {
    validate: |object, errors| validate_binding(object, true, errors),
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_binding(object, true, errors);
    },
    ..BINDING
};

/// Rules of MutatingAdmissionPolicyBindings.
pub static MUTATING: Strategy = Strategy {
    validate: |object, errors| validate_binding(object, false, errors),
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate_binding(object, false, errors);
    },
    ..BINDING
};

/// Rules of both kinds of bindings.
const BINDING: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    default: default_binding,
    printer: Some(Printer::of(admission::policy_binding)),
    ..COMMON
};

fn default_binding(object: &mut Value) {
    default_match(object.get_mut("spec").and_then(|spec| spec.get_mut("matchResources")));
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

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn bindings_name_a_policy_and_actions() {
        assert_eq!(
            VALIDATING.broken_fields(value!({"spec": {"validationActions": ["Deny", "Warn"], "paramRef": {}}})),
            ["spec.policyName", "spec.paramRef", "spec.paramRef.parameterNotFoundAction", "spec.validationActions"]
        );
    }
}
