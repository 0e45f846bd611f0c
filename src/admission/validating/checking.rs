//! Type-checks the expressions of a policy against the kinds that it matches. The results appear only in the status of
//! the policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cel::types::Type;
use flotilla_objects::api_version;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::super::policy::sees;
use crate::expressions::{Compiler, Declared, STORED, Typed, VariableTypes};
use crate::limits;
use crate::served::{Resources, Served};
use crate::tables::GroupVersionKind;

/// Kinds by group, version and name.
type Kinds = BTreeMap<(String, String, String), Arc<Served>>;

/// Returns the type errors of a policy's expressions, for each kind that its rules name.
pub fn warnings(resources: &Resources, policy: &Value) -> Vec<Value> {
    let spec = policy.at(&["spec"]);
    let params = params(resources, spec.at(&["paramKind"]));
    let compilers: Vec<(String, Compiler)> = kinds(resources, spec)
        .into_iter()
        .map(|(name, served)| (name, compiler(spec, &served, params.as_ref())))
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in spec.list_at(&["validations"]).iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation.str_at(&[field]);
            if text.is_empty() {
                continue;
            }
            let wrong = compilers.iter().filter_map(|(kind, compiler)| {
                let issues = compiler.check(text, sees(spec)).err()?;
                Some(format!("{kind}: {issues}\n"))
            });
            let wrong: Vec<String> = wrong.collect();
            if !wrong.is_empty() {
                let place = format!("spec.validations[{index}].{field}");
                warnings.push(value!({"fieldRef": place, "warning": (wrong.join("\n"))}));
            }
        }
    }
    warnings
}

/// Returns a compiler that knows the types of a resource's objects and of the policy's parameters.
fn compiler(spec: &Value, served: &Arc<Served>, params: Option<&Arc<Served>>) -> Compiler {
    let object = Typed::new(served.kind(), "0");
    let params = params.map(|params| Typed::new(params.kind(), "1"));
    let mut declared = Declared {
        object: Some(object.object()),
        params: params.as_ref().map(|params| params.object()),
        schemas: vec![object],
        variables: Some(VariableTypes::default()),
        is_without_request: true,
    };
    declared.schemas.extend(params.map(|params| params as _));
    let mut compiler = Compiler::declaring(STORED, declared);
    for variable in spec.list_at(&["variables"]) {
        let of = compiler.check(variable.str_at(&["expression"]), sees(spec)).unwrap_or(Type::Dyn);
        compiler.declare(variable.str_at(&["name"]), &of);
    }
    compiler
}

fn params(resources: &Resources, kind: &Value) -> Option<Arc<Served>> {
    let (group, version) = api_version::split(kind.str_at(&["apiVersion"]));
    resources.with_kind(group, version, kind.str_at(&["kind"]))
}

/// Returns the kinds that rules name without wildcards, by their names.
fn kinds(resources: &Resources, spec: &Value) -> Vec<(String, Arc<Served>)> {
    let mut found = Kinds::new();
    for rule in spec.list_at(&["matchConstraints", "resourceRules"]) {
        if find_kinds(resources, rule, &mut found) {
            break;
        }
    }
    found
        .into_iter()
        .map(|((group, version, kind), served)| (format!("{group}/{version}, Kind={kind}"), served))
        .collect()
}

/// Adds the kinds that a rule names. Returns whether a bound is reached, so that no further rule is read.
fn find_kinds(resources: &Resources, rule: &Value, found: &mut Kinds) -> bool {
    let (groups, versions) = (exact(rule, "apiGroups", false), exact(rule, "apiVersions", false));
    let names = exact(rule, "resources", true);
    let (mut count, mut attempts) = (0, 0);
    for group in groups {
        for version in &versions {
            for name in &names {
                attempts += 1;
                if let Some(served) = resources.find(group, version, name) {
                    let kind = GroupVersionKind::of(&served, "");
                    found.insert((kind.group, kind.version, kind.kind), served);
                    count += 1;
                }
                if count == limits::POLICY_KINDS_CHECKED || attempts == limits::POLICY_NAMES_TRIED {
                    return true;
                }
            }
        }
    }
    false
}

/// Returns the names of a rule, sorted. Returns none if one is a wildcard. If `passes_over` is true, skips wildcards
/// and subresources instead.
fn exact<'v>(rule: &'v Value, field: &str, passes_over: bool) -> Vec<&'v str> {
    let mut names: Vec<&str> = rule.list_at(&[field]).iter().filter_map(Value::as_str).collect();
    if passes_over {
        names.retain(|name| !name.contains(['*', '/']));
    } else if names.iter().any(|name| name.contains('*')) {
        return Vec::new();
    }
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_checked_against_the_kinds_that_rules_name() {
        let rule = value!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["deployments", "deployments/scale"]});
        let policy = value!({"spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": "n", "expression": "object.spec.replicas"}],
            "validations": [
                {"expression": "variables.n > 1 && object.metadata.name != ''"},
                {"expression": "object.spec.replicaz > 1", "messageExpression": "object.spec.replicas"},
                {"expression": "variables.n == 'a'"},
            ],
        }});
        let warnings = warnings(&Resources::builtin(), &policy);
        let errors: Vec<(&str, &str)> =
            warnings.iter().map(|one| (one.str_at(&["fieldRef"]), one.str_at(&["warning"]))).collect();
        let undefined = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicaz'\n | \
            object.spec.replicaz > 1\n | ...........^\n";
        assert_eq!(errors[0], ("spec.validations[1].expression", undefined));
        assert_eq!(errors[1].0, "spec.validations[2].expression");
        assert!(errors[1].1.contains("found no matching overload for '_==_' applied to '(int, string)'"), "{errors:?}");
        assert_eq!(errors.len(), 2);
    }
}
