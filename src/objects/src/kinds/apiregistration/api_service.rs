//! APIServices: the server that answers for a version of a group.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path, quote};
use crate::fieldmanager::reset;
use crate::kinds::core::configmap::decoded_len;
use crate::printing::{Printer, admission};
use crate::rules::{Generation, NameRule, Strategy, metadata, names};

/// Rules of APIServices.
pub static STRATEGY: Strategy = Strategy {
    known_finalizers: false,
    name: NameRule::PathSegment,
    generation: Generation::ClientOwned,
    status: true,
    unconditional_update: false,
    default: |object| {
        let service = object.at(&["spec", "service"]);
        if !service.is_null() && service.at(&["port"]).is_null() {
            object.set_at(&["spec", "service", "port"], 443);
        }
    },
    prepare_create,
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate,
    validate_update: |object, _, errors| {
        metadata::validate_again_generic(NameRule::PathSegment, false, object, errors);
        validate(object, errors);
    },
    validate_status: |object, _, errors| {
        let path = Path::root("status.conditions");
        for (index, condition) in object.list_at(&["status", "conditions"]).iter().enumerate() {
            let status = condition.str_at(&["status"]);
            if !matches!(status, "True" | "False" | "Unknown") {
                let place = path.index(index);
                errors.not_supported(&place.child("status"), status, &["True", "False", "Unknown"]);
            }
        }
    },
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer { repeats_columns: true, ..Printer::of(admission::api_service) }),
    ..Strategy::DEFAULT
};

/// Marks an APIService without a service as available: this server answers for it itself.
fn prepare_create(object: &mut Value, now: Timestamp) {
    let mut status = Value::object();
    if object.at(&["spec", "service"]).is_null() {
        let condition = value!({"type": "Available", "status": "True", "lastTransitionTime": (now.to_string()),
            "reason": "Local", "message": "Local APIServices are always available"});
        status.set_at(&["conditions"], vec![condition]);
    }
    object.set_at(&["status"], status);
}

fn validate(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let (group, version) = (spec.str_at(&["group"]), spec.str_at(&["version"]));
    let name = object.str_at(&["metadata", "name"]);
    let wanted = format!("{version}.{group}");
    if !name.is_empty() && names::path_segment(name).is_empty() && name != wanted {
        let why = format!("must be `spec.version+\".\"+spec.group`: {}", quote(&wanted));
        errors.invalid_str(&Path::root("metadata.name"), name, why);
    }
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&path.child("group"), why);
    }
    if !group.is_empty() {
        names::check(&path.child("group"), group, names::dns1123_subdomain, errors);
    }
    names::check(&path.child("version"), version, names::dns1035_label, errors);
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = spec.int_at(&[field]).unwrap_or(0);
        if !(1..=max).contains(&priority) {
            let why = format!("must be positive and less than {max}");
            errors.invalid(&path.child(field), &priority.into(), why);
        }
    }
    let (service, bundle) = (spec.at(&["service"]), decoded_len(spec.at(&["caBundle"])));
    let insecure = spec.is_true_at(&["insecureSkipTLSVerify"]);
    let skip = path.child("insecureSkipTLSVerify");
    if service.is_null() {
        if bundle > 0 {
            let shown = format!("{bundle} bytes");
            errors.invalid_str(&path.child("caBundle"), &shown, "local APIServices may not have a caBundle");
        }
        if insecure {
            errors.invalid(&skip, &true.into(), "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    let place = path.child("service");
    for field in ["namespace", "name"] {
        if service.str_at(&[field]).is_empty() {
            errors.required(&place.child(field), "");
        }
    }
    let port = service.int_at(&["port"]).unwrap_or(0);
    let messages = names::port_number(port);
    if !messages.is_empty() {
        let why = format!("port is not valid: {}", messages.join(", "));
        errors.invalid(&place.child("port"), &port.into(), why);
    }
    if insecure && bundle > 0 {
        errors.invalid(&skip, &true.into(), "may not be true if caBundle is present");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_version_and_group() {
        let service = |name: &str| {
            let spec = value!({"group": "a.b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
            let mut errors = Errors::default();
            validate(&value!({"metadata": {"name": name}, "spec": spec}), &mut errors);
            errors.0.len()
        };
        assert_eq!((service("v1.a.b"), service("wrong")), (0, 1));
    }
}
