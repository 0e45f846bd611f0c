//! Cells of the kinds of `networking.k8s.io`.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::cell;
use super::selector;
use super::services::load_balancer;

/// How many hosts a cell shows.
const HOSTS_SHOWN_MAX: usize = 3;

/// Name, class, hosts, address, ports, age.
pub fn ingress(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let ports = if object.list_at(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" };
    cells.extend([
        cell::name(object),
        cell::pointer_or(object, &["spec", "ingressClassName"], "<none>"),
        hosts(object.list_at(&["spec", "rules"])),
        load_balancer(object).into(),
        ports.into(),
        cell::age(object, now),
    ]);
}

/// Returns the hosts of rules. Rules without a host are not shown, but count as omitted once the list is full.
fn hosts(rules: &[Value]) -> Value {
    let mut shown: Vec<&str> = Vec::with_capacity(HOSTS_SHOWN_MAX);
    let mut is_more = false;
    for rule in rules {
        is_more |= shown.len() == HOSTS_SHOWN_MAX;
        let host = rule.str_at(&["host"]);
        if !is_more && !host.is_empty() {
            shown.push(host);
        }
    }
    if shown.is_empty() {
        return "*".into();
    }
    let text = cell::join(shown, ",");
    if is_more { format!("{text} + {} more...", rules.len() - HOSTS_SHOWN_MAX).into() } else { text.into() }
}

/// Name, controller, parameters, age.
pub fn ingress_class(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let parameters = object.at(&["spec", "parameters"]);
    let parameters: Value = match (parameters, parameters.at(&["apiGroup"])) {
        (Value::Object(_), Value::Str(group)) => {
            format!("{}.{group}/{}", parameters.str_at(&["kind"]), parameters.str_at(&["name"])).into()
        }
        (Value::Object(_), _) => cell::join([parameters.str_at(&["kind"]), parameters.str_at(&["name"])], "/").into(),
        _ => "<none>".into(),
    };
    let is_default = cell::annotation(object, "ingressclass.kubernetes.io/is-default-class") == Some("true");
    cells.extend([
        name_or_default(object, is_default),
        cell::text(object, &["spec", "controller"]),
        parameters,
        cell::age(object, now),
    ]);
}

/// Returns the name of a class, with a mark if it is the default class.
pub fn name_or_default(object: &Value, is_default: bool) -> Value {
    let name = object.str_at(&["metadata", "name"]);
    if is_default { cell::join([name, " (default)"], "").into() } else { name.into() }
}

/// Name, pod selector, age.
pub fn network_policy(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        selector::text_or_none(object.at(&["spec", "podSelector"])),
        cell::age(object, now),
    ]);
}

/// Name, CIDRs, age.
pub fn service_cidr(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        cell::strings(object.list_at(&["spec", "cidrs"])).into(),
        cell::age(object, now),
    ]);
}

/// Name, parent reference, and an age for which Kubernetes declares no column.
pub fn ip_address(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), parent(object.at(&["spec", "parentRef"])).into(), cell::age(object, now)]);
}

/// Formats a reference as `resource.group/namespace/name`, without the parts that are empty.
fn parent(reference: &Value) -> Str {
    if reference.as_object().is_none() {
        return Str::const_new("<none>");
    }
    let (resource, group) = (reference.str_at(&["resource"]), reference.str_at(&["group"]));
    let mut text = Str::from(resource.to_lowercase());
    for (mark, part) in [(".", &*group.to_lowercase()), ("/", reference.str_at(&["namespace"]))] {
        if !part.is_empty() {
            text.push_str(mark);
            text.push_str(part);
        }
    }
    cell::join([&text, reference.str_at(&["name"])], "/")
}
