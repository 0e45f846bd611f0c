//! Default roles and bindings of RBAC.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::{AGGREGATION_MANAGER, Applied, BootstrapObject, ReconcileRule};
use crate::access::rbac::aggregated;
use crate::embedded::{Line, TextError, lines, list};

/// API group of RBAC.
const GROUP: &str = "rbac.authorization.k8s.io";
/// Prefix of the label that adds a role's rules to the aggregated role whose name follows.
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";
/// Prefix of the names of roles that are bound to a service account. The rest is the name of the account.
const CONTROLLER: &str = "system:controller:";

/// Returns the roles, then the bindings; cluster-wide ones before those of namespaces.
pub(super) fn objects() -> Result<Vec<BootstrapObject>, TextError> {
    let mut roles = roles()?;
    let mut bindings = bindings()?;
    bindings.extend(roles.iter().filter_map(controller_binding));
    fill_aggregated(&mut roles);
    let by_place = |desired: &BootstrapObject| {
        let at = |key| desired.object.str_at(&["metadata", key]).to_owned();
        (at("namespace"), at("name"))
    };
    roles.sort_by_cached_key(by_place);
    bindings.sort_by_cached_key(by_place);
    roles.extend(bindings);
    Ok(roles)
}

/// Returns the role of nodes, which has no binding: the node authorizer uses its rules.
///
/// # Errors
/// If the embedded roles do not parse, or it is not among them.
pub fn node_role() -> Result<Value, TextError> {
    let mut roles = roles()?.into_iter().map(|desired| desired.object);
    let found = roles.find(|role| role.str_at(&["metadata", "name"]) == "system:node");
    found.ok_or(TextError { table: "roles", line: 0, problem: "no role of nodes" })
}

fn metadata(namespace: &str, name: &str) -> Value {
    let mut metadata = value!({"name": name});
    if !namespace.is_empty() {
        metadata.set_at(&["namespace"], namespace);
    }
    metadata.set_at(&["labels"], value!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    metadata.set_at(&["annotations"], value!({"rbac.authorization.kubernetes.io/autoupdate": "true"}));
    metadata
}

fn object(kind: &str, metadata: Value) -> Value {
    value!({"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata})
}

fn roles() -> Result<Vec<BootstrapObject>, TextError> {
    let mut objects: Vec<BootstrapObject> = Vec::new();
    for line in lines("roles", include_str!("roles.txt")) {
        if !line.indented {
            objects.push(role(&line)?);
            continue;
        }
        let rule = rule(&line)?;
        let desired = objects.last_mut().ok_or_else(|| line.error("a rule before any role"))?;
        match desired.object.get_mut("rules") {
            Some(Value::Array(rules)) => rules.push(rule),
            _ => desired.object.set_at(&["rules"], vec![rule]),
        }
    }
    Ok(objects)
}

fn role(line: &Line) -> Result<BootstrapObject, TextError> {
    match line.word(0)? {
        "role" => {
            let mut role = object("Role", metadata(line.word(1)?, line.word(2)?));
            role.set_at(&["rules"], Value::Null);
            Ok(BootstrapObject::new(GROUP, "roles", role, ReconcileRule::Role))
        }
        "cluster-role" => {
            let mut role = object("ClusterRole", metadata("", line.word(1)?));
            role.set_at(&["rules"], Value::Null);
            for word in &line.words[2..] {
                match word.split_once('=') {
                    Some(("to", to)) => role.set_at(&["metadata", "labels", &format!("{AGGREGATE_TO}{to}")], "true"),
                    Some(("from", from)) => {
                        let labels: Map =
                            [(format!("{AGGREGATE_TO}{from}"), Value::from("true"))].into_iter().collect();
                        let selectors = value!({"clusterRoleSelectors": [{"matchLabels": labels}]});
                        role.set_at(&["aggregationRule"], selectors);
                    }
                    _ => return Err(line.error("neither to= nor from=")),
                }
            }
            Ok(BootstrapObject::new(GROUP, "clusterroles", role, ReconcileRule::Role))
        }
        _ => Err(line.error("neither role nor cluster-role")),
    }
}

/// Parses the rule in an indented line.
fn rule(line: &Line) -> Result<Value, TextError> {
    let verbs = list(match line.word(0)? {
        "read" => "get,list,watch",
        "write" => "create,delete,deletecollection,patch,update",
        "all" => "create,delete,deletecollection,get,list,patch,update,watch",
        other => other,
    });
    let mut rule = value!({"verbs": verbs});
    if line.word(1)? == "url" {
        rule.set_at(&["nonResourceURLs"], list(line.word(2)?));
        return Ok(rule);
    }
    rule.set_at(&["apiGroups"], list(line.word(1)?));
    rule.set_at(&["resources"], list(line.word(2)?));
    if let Some(names) = line.words.get(3) {
        rule.set_at(&["resourceNames"], list(names));
    }
    Ok(rule)
}

/// Sets the rules of aggregated roles. Roles that others aggregate come first, so one pass in that order suffices.
fn fill_aggregated(objects: &mut [BootstrapObject]) {
    for name in ["view", "edit", "admin"] {
        let Some(at) = objects.iter().position(|desired| desired.object.str_at(&["metadata", "name"]) == name) else {
            continue;
        };
        let roles: Vec<Value> = objects.iter().map(with_applied_rules).collect();
        let rules = aggregated(&objects[at].object, &roles);
        let fields = value!({"rules": rules});
        objects[at].applied = Some(Applied { manager: AGGREGATION_MANAGER, subresource: "", fields });
    }
}

fn with_applied_rules(desired: &BootstrapObject) -> Value {
    let mut role = desired.object.clone();
    if let Some(applied) = &desired.applied {
        role.set_at(&["rules"], applied.fields.at(&["rules"]).clone());
    }
    role
}

fn bindings() -> Result<Vec<BootstrapObject>, TextError> {
    lines("bindings", include_str!("bindings.txt"))
        .map(|line| {
            let (namespace, name) = line.word(0)?.split_once('/').unwrap_or(("", line.word(0)?));
            let role = line.words.get(1).and_then(|word| word.strip_prefix('='));
            let subjects = line.words[1..].iter().filter(|word| !word.starts_with('='));
            let subjects = subjects.map(|word| subject(&line, word)).collect::<Result<Vec<_>, _>>()?;
            Ok(binding(namespace, name, role.unwrap_or(name), subjects))
        })
        .collect()
}

fn subject(line: &Line, word: &str) -> Result<Value, TextError> {
    match word.split_once(':') {
        Some(("account", account)) => {
            let (namespace, name) = account.split_once('/').ok_or_else(|| line.error("account without namespace"))?;
            Ok(value!({"kind": "ServiceAccount", "name": name, "namespace": namespace}))
        }
        Some(("user", name)) => Ok(value!({"kind": "User", "apiGroup": GROUP, "name": name})),
        Some(("group", name)) => Ok(value!({"kind": "Group", "apiGroup": GROUP, "name": name})),
        _ => Err(line.error("unknown kind of subject")),
    }
}

fn binding(namespace: &str, name: &str, role: &str, subjects: Vec<Value>) -> BootstrapObject {
    let (kind, role_kind, resource) = if namespace.is_empty() {
        ("ClusterRoleBinding", "ClusterRole", "clusterrolebindings")
    } else {
        ("RoleBinding", "Role", "rolebindings")
    };
    let mut binding = object(kind, metadata(namespace, name));
    if !subjects.is_empty() {
        binding.set_at(&["subjects"], subjects);
    }
    binding.set_at(&["roleRef"], value!({"apiGroup": GROUP, "kind": role_kind, "name": role}));
    BootstrapObject::new(GROUP, resource, binding, ReconcileRule::Binding)
}

/// Returns the binding of a controller's role to the controller's service account. Returns `None` for other roles.
fn controller_binding(role: &BootstrapObject) -> Option<BootstrapObject> {
    let name = role.object.str_at(&["metadata", "name"]);
    let account = name.strip_prefix(CONTROLLER)?;
    let subject = value!({"kind": "ServiceAccount", "name": account, "namespace": "kube-system"});
    Some(binding(role.object.str_at(&["metadata", "namespace"]), name, name, vec![subject]))
}
