//! Default flow schemas and priority levels (KEP-1040).

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::{Applied, BootstrapObject, FLOW_MANAGER, FLOW_STATUS_MANAGER, ReconcileRule, ReconcileTrigger};
use crate::embedded::{Line, TextError, lines, list};
use crate::field::quote;

/// API group of flow control.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Names of the mandatory objects of both kinds: their specs are restored regardless of their annotations.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// Returns the priority levels, then the flow schemas that refer to them.
pub(super) fn objects(now: &str) -> Result<Vec<BootstrapObject>, TextError> {
    let mut objects: Vec<BootstrapObject> = Vec::new();
    for line in lines("flow", include_str!("flow.txt")) {
        match (line.indented, line.word(0)?) {
            (false, "level") => objects.push(level(&line)?),
            (false, "flow") => objects.push(schema(&line, now)?),
            (true, _) => {
                let rules = objects.last_mut().and_then(|desired| desired.object.get_mut("spec")?.get_mut("rules"));
                let Some(Value::Array(rules)) = rules else { return Err(line.error("a rule without a flow")) };
                let Some(rule) = rules.first_mut() else { return Err(line.error("a rule without subjects")) };
                add_rule(&line, rule)?;
            }
            _ => return Err(line.error("neither level nor flow")),
        }
    }
    Ok(objects)
}

fn object_of(resource: &'static str, kind: &str, name: &str, spec: Value, status: Value) -> BootstrapObject {
    let object = value!({
        "kind": kind,
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}},
        "spec": spec,
        "status": status
    });
    let rule = if MANDATORY.contains(&name) { ReconcileRule::MandatoryFlow } else { ReconcileRule::SuggestedFlow };
    BootstrapObject {
        manager: FLOW_MANAGER,
        ..BootstrapObject::new(GROUP, resource, object, rule).reconciled(ReconcileTrigger::Always)
    }
}

fn level(line: &Line) -> Result<BootstrapObject, TextError> {
    let amount = |at: usize, key: &str| {
        let text = line.word(at)?.strip_prefix(key).and_then(|text| text.strip_prefix('='));
        text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(|| line.error("not an amount"))
    };
    let (shares, lend) = (amount(2, "shares")?, amount(3, "lend")?);
    let spec = match line.word(4)? {
        "exempt" => value!({
            "type": "Exempt",
            "exempt": {"nominalConcurrencyShares": shares, "lendablePercent": lend}
        }),
        limit => {
            let response = limit_response(limit).ok_or_else(|| line.error("unknown kind of level"))?;
            value!({
                "type": "Limited",
                "limited": {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lend}
            })
        }
    };
    let name = line.word(1)?;
    Ok(object_of("prioritylevelconfigurations", "PriorityLevelConfiguration", name, spec, Value::object()))
}

fn limit_response(word: &str) -> Option<Value> {
    if word == "reject" {
        return Some(value!({"type": "Reject"}));
    }
    let mut numbers = word.strip_prefix("queue:")?.split('/').map(str::parse::<i64>);
    let (queues, hand, length) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(value!({"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": length}}))
}

fn schema(line: &Line, now: &str) -> Result<BootstrapObject, TextError> {
    let (name, precedence, level) = (line.word(1)?, line.number(2)?, line.word(3)?);
    let mut spec = value!({"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence});
    match line.word(4)? {
        "user" => spec.set_at(&["distinguisherMethod", "type"], "ByUser"),
        "namespace" => spec.set_at(&["distinguisherMethod", "type"], "ByNamespace"),
        "none" => {}
        _ => return Err(line.error("unknown way to tell flows apart")),
    }
    let subjects = line.words[5..].iter().map(|word| subject(line, word)).collect::<Result<Vec<_>, _>>()?;
    spec.set_at(&["rules"], vec![value!({"subjects": subjects})]);
    let condition = dangling(level, true, now);
    let fields = value!({"status": {"conditions": [condition]}});
    let applied = Some(Applied { manager: FLOW_STATUS_MANAGER, subresource: "status", fields });
    Ok(BootstrapObject { applied, ..object_of("flowschemas", "FlowSchema", name, spec, Value::object()) })
}

/// Returns the condition `Dangling`, which says whether the priority level of a flow schema is missing.
pub fn dangling(level: &str, found: bool, now: &str) -> Value {
    let subject = format!("This FlowSchema references the PriorityLevelConfiguration object named {}", quote(level));
    let (status, reason, rest) =
        if found { ("False", "Found", "and it exists") } else { ("True", "NotFound", "but there is no such object") };
    value!({
        "type": "Dangling", "status": status, "lastTransitionTime": now, "reason": reason,
        "message": (format!("{subject} {rest}")),
    })
}

fn subject(line: &Line, word: &str) -> Result<Value, TextError> {
    match word.split_once(':') {
        Some(("account", account)) => {
            let (namespace, name) = account.split_once('/').ok_or_else(|| line.error("account without namespace"))?;
            Ok(value!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}))
        }
        Some(("user", name)) => Ok(value!({"kind": "User", "user": {"name": name}})),
        Some(("group", name)) => Ok(value!({"kind": "Group", "group": {"name": name}})),
        _ => Err(line.error("unknown kind of subject")),
    }
}

fn add_rule(line: &Line, rules: &mut Value) -> Result<(), TextError> {
    let (verbs, groups, resources) = (list(line.word(0)?), line.word(1)?, list(line.word(2)?));
    let (place, rule) = if groups == "url" {
        ("nonResourceRules", value!({"verbs": verbs, "nonResourceURLs": resources}))
    } else {
        let mut rule = value!({"verbs": verbs, "apiGroups": (list(groups)), "resources": resources});
        match line.word(3)? {
            "any" => rule.set_at(&["clusterScope"], true),
            "namespaced" => {}
            _ => return Err(line.error("unknown scope")),
        }
        rule.set_at(&["namespaces"], value!(["*"]));
        ("resourceRules", rule)
    };
    match rules.get_mut(place) {
        Some(Value::Array(list)) => list.push(rule),
        _ => rules.set_at(&[place], vec![rule]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::{FlowSchema, PriorityLevel};

    #[test]
    fn mandatory_objects_are_those_that_work_before_any_are_stored() {
        let objects = objects("2026-01-01T00:00:00Z").unwrap();
        let find = |resource, name| {
            let is_it =
                |of: &&BootstrapObject| of.resource == resource && of.object.str_at(&["metadata", "name"]) == name;
            &objects.iter().find(is_it).unwrap().object
        };
        for (name, schema) in FlowSchema::mandatory() {
            assert_eq!(FlowSchema::read(find("flowschemas", name)), schema, "{name}");
        }
        for (name, level) in PriorityLevel::mandatory() {
            assert_eq!(PriorityLevel::read(find("prioritylevelconfigurations", name)), level, "{name}");
        }
        assert_eq!(FlowSchema::mandatory().map(|(name, _)| name), MANDATORY);
    }
}
