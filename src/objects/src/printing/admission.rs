//! Cells of webhooks, policies and API services.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::cell;
use super::selector;

const UNSET: &str = "<unset>";

/// Name, number of webhooks, age.
pub fn webhooks(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), cell::count(object, &["webhooks"]), cell::age(object, now)]);
}

/// Name, number of validations, kind of parameters, age.
pub fn validating_policy(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    policy(object, "validations", now, cells);
}

/// Name, number of mutations, kind of parameters, age.
pub fn mutating_policy(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    policy(object, "mutations", now, cells);
}

fn policy(object: &Value, rules: &str, now: Timestamp, cells: &mut Vec<Value>) {
    let kind = object.at(&["spec", "paramKind"]);
    let kind: Value = match kind {
        Value::Object(_) => cell::join([kind.str_at(&["apiVersion"]), kind.str_at(&["kind"])], "/").into(),
        _ => UNSET.into(),
    };
    cells.extend([cell::name(object), cell::count(object, &["spec", rules]), kind, cell::age(object, now)]);
}

/// Name, policy, parameters, age of a policy's binding.
pub fn policy_binding(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let policy = cell::text(object, &["spec", "policyName"]);
    cells.extend([cell::name(object), policy, parameters(object.at(&["spec", "paramRef"])), cell::age(object, now)]);
}

/// Returns the cell of a policy's parameters: `namespace/name`, with `*` if no namespace is stated. If no name is
/// stated, returns the selector.
fn parameters(reference: &Value) -> Value {
    let (namespace, name) = (reference.str_at(&["namespace"]), reference.str_at(&["name"]));
    let selector = reference.at(&["selector"]);
    if !name.is_empty() {
        cell::join([if namespace.is_empty() { "*" } else { namespace }, name], "/").into()
    } else if selector.as_object().is_some() {
        selector::go_form(selector).into()
    } else {
        UNSET.into()
    }
}

/// Name, service, available, age.
pub fn api_service(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let service = object.at(&["spec", "service"]);
    let service: Value = match service {
        Value::Object(_) => cell::join([service.str_at(&["namespace"]), service.str_at(&["name"])], "/").into(),
        _ => "Local".into(),
    };
    let available: Value = match cell::condition(object, "Available") {
        None => "Unknown".into(),
        Some(condition) => match (condition.str_at(&["status"]), condition.str_at(&["reason"])) {
            ("True", _) => "True".into(),
            (status, "") => status.into(),
            (status, reason) => format!("{status} ({reason})").into(),
        },
    };
    cells.extend([cell::name(object), service, available, cell::age(object, now)]);
}
