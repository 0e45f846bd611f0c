//! Match conditions: expressions that decide whether a webhook or a policy applies to a request.

use flotilla_cel::value::Value as Cel;
use flotilla_proto::value::Value;

use super::Effort;
use crate::expressions::{
    Activation, Compiled, Compiler, Fault, Inputs, MATCH_BUDGET, OUT_OF_BUDGET, OptionalNames, STORED, Variable, Wanted,
};

/// The match conditions of one webhook or policy, compiled once.
#[derive(Debug, Default)]
pub struct Conditions {
    conditions: Vec<CompiledCondition>,
    ignores_failure: bool,
}

#[derive(Debug)]
struct CompiledCondition {
    name: String,
    compiled: Result<Compiled, Fault>,
}

/// The result of match conditions for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchResult {
    /// All conditions hold.
    Yes,
    /// The condition of this name does not hold; the name is empty if conditions failed and failures are ignored.
    No(String),
    /// No condition is false, but some failed. Holds the errors in the reference's wording.
    Failed(String),
}

impl Conditions {
    /// Compiles the `matchConditions` of a webhook, with its `failurePolicy`.
    pub fn of_webhook(webhook: &Value) -> Self {
        let sees = OptionalNames { params: false, authorizer: true, patches: false };
        Self::compile(&Compiler::new(STORED), webhook, sees)
    }

    /// Compiles the `matchConditions` of a webhook or a policy. `compiler` knows the policy's variables.
    pub fn compile(compiler: &Compiler, spec: &Value, sees: OptionalNames) -> Self {
        let condition = |condition: &Value| CompiledCondition {
            name: condition.str_at(&["name"]).to_owned(),
            compiled: compiler.compile(condition.str_at(&["expression"]), Wanted::Bool, sees),
        };
        Self {
            conditions: spec.list_at(&["matchConditions"]).iter().map(condition).collect(),
            ignores_failure: spec.str_at(&["failurePolicy"]) == "Ignore",
        }
    }

    /// Returns whether there are no conditions. Every request then matches.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns whether a request matches. One false condition outweighs all failed conditions. Conditions do not see
    /// `namespaceObject`.
    pub async fn matches(&self, inputs: Inputs<'_>, variables: &[Variable], effort: &mut Effort) -> MatchResult {
        if self.is_empty() {
            return MatchResult::Yes;
        }
        if effort.is_spent() {
            return self.failed(vec![OUT_OF_BUDGET.to_owned()]);
        }
        let activation = Activation::new(Inputs { namespace: &Value::Null, ..inputs }, variables);
        let (mut unmet, mut errors) = (None, Vec::new());
        let mut budget = effort.grant(MATCH_BUDGET);
        for condition in &self.conditions {
            let before = budget;
            let evaluated = activation.evaluate(&condition.compiled, &mut budget);
            effort.spend(before - budget);
            match evaluated {
                Ok(Ok(Cel::Bool(false))) => drop(unmet.get_or_insert(condition)),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => errors.push(error),
                // The reference evaluates all conditions before it looks at the results.
                Err(stopped) => return self.failed(vec![stopped.to_string()]),
            }
            effort.pause().await;
        }
        if let Some(unmet) = unmet {
            return MatchResult::No(unmet.name.clone());
        }
        if errors.is_empty() { MatchResult::Yes } else { self.failed(errors) }
    }

    fn failed(&self, mut errors: Vec<String>) -> MatchResult {
        if self.ignores_failure {
            return MatchResult::No(String::new());
        }
        let mut seen = std::collections::HashSet::new();
        errors.retain(|error| seen.insert(error.clone()));
        MatchResult::Failed(match &errors[..] {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn matched(conditions: &[&str], policy: &str) -> MatchResult {
        let conditions: Vec<Value> = conditions
            .iter()
            .enumerate()
            .map(|(at, expression)| value!({"name": (format!("c{at}")), "expression": (*expression)}))
            .collect();
        let hook = value!({"matchConditions": conditions, "failurePolicy": policy});
        let (object, none) = (value!({"metadata": {"name": "a"}}), Value::Null);
        let request = value!({"operation": "CREATE"});
        let inputs = Inputs {
            object: &object,
            old_object: &none,
            request: &request,
            namespace: &none,
            params: &none,
            authorizer: None,
        };
        let (conditions, mut effort) = (Conditions::of_webhook(&hook), Effort::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(conditions.matches(inputs, &[], &mut effort))
    }

    #[test]
    fn a_request_matches_if_all_conditions_hold() {
        assert_eq!(matched(&[], "Fail"), MatchResult::Yes);
        assert_eq!(
            matched(&["object.metadata.name == 'a'", "request.operation == 'CREATE'"], "Fail"),
            MatchResult::Yes
        );
        assert_eq!(matched(&["true", "oldObject != null"], "Fail"), MatchResult::No("c1".into()));
    }

    #[test]
    fn a_false_condition_decides_before_a_failing_one() {
        let fails = "object.spec.x == 1";
        assert_eq!(matched(&[fails, "false"], "Fail"), MatchResult::No("c1".into()));
        let why = "expression 'object.spec.x == 1' resulted in error: no such key: spec";
        assert_eq!(matched(&[fails, "true"], "Fail"), MatchResult::Failed(why.into()));
        assert_eq!(matched(&[fails, fails], "Fail"), MatchResult::Failed(why.into()));
        assert_eq!(matched(&[fails], "Ignore"), MatchResult::No(String::new()));
    }

    #[test]
    fn conditions_stop_when_the_budget_is_spent() {
        let costly = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, \
            [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, true)))))";
        let failed = matched(&[costly; 10], "Fail");
        assert!(matches!(&failed, MatchResult::Failed(why) if why == crate::expressions::OUT_OF_BUDGET), "{failed:?}");
    }
}
