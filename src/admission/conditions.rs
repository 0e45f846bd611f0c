//! Match conditions: expressions that say whether a webhook or a policy is asked about a request.

use flotilla_cel::value::Value as Cel;
use flotilla_proto::value::Value;

use super::Effort;
use crate::expressions::{
    Activation, Compiled, Compiler, Fault, Inputs, MATCH_BUDGET, OUT_OF_BUDGET, STORED, Sees, Variable, Wanted,
};

/// Conditions, compiled once.
#[derive(Debug, Default)]
pub struct Conditions {
    conditions: Vec<Condition>,
    ignores_failure: bool,
}

#[derive(Debug)]
struct Condition {
    name: String,
    compiled: Result<Compiled, Fault>,
}

/// What conditions say of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// All hold.
    Yes,
    /// The one of this name does not hold; empty where some failed and that is ignored.
    No(String),
    /// None is false, but some failed: what is wrong, in upstream's words.
    Failed(String),
}

impl Conditions {
    /// The `matchConditions` of a webhook with the `failurePolicy` that it states.
    pub fn of_webhook(webhook: &Value) -> Self {
        let sees = Sees { params: false, authorizer: true, patches: false };
        Self::compile(&Compiler::new(STORED), webhook, sees)
    }

    /// The `matchConditions` of the specification of a webhook or a policy, whose variables the compiler knows.
    pub fn compile(compiler: &Compiler, spec: &Value, sees: Sees) -> Self {
        let condition = |condition: &Value| Condition {
            name: condition.str_at(&["name"]).to_owned(),
            compiled: compiler.compile(condition.str_at(&["expression"]), Wanted::Bool, sees),
        };
        Self {
            conditions: spec.list_at(&["matchConditions"]).iter().map(condition).collect(),
            ignores_failure: spec.str_at(&["failurePolicy"]) == "Ignore",
        }
    }

    /// Whether there are none, so that every request matches.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether a request matches. What is false decides before what fails; conditions see no `namespaceObject`.
    pub async fn matches(&self, inputs: Inputs<'_>, variables: &[Variable], effort: &mut Effort) -> Matched {
        if self.is_empty() {
            return Matched::Yes;
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
                // All are evaluated before one counts.
                Err(stopped) => return self.failed(vec![stopped.to_string()]),
            }
            effort.pause().await;
        }
        if let Some(unmet) = unmet {
            return Matched::No(unmet.name.clone());
        }
        if errors.is_empty() { Matched::Yes } else { self.failed(errors) }
    }

    fn failed(&self, mut errors: Vec<String>) -> Matched {
        if self.ignores_failure {
            return Matched::No(String::new());
        }
        let mut seen = std::collections::HashSet::new();
        errors.retain(|error| seen.insert(error.clone()));
        Matched::Failed(match &errors[..] {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn matched(conditions: &[&str], policy: &str) -> Matched {
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
    fn all_must_hold() {
        assert_eq!(matched(&[], "Fail"), Matched::Yes);
        assert_eq!(matched(&["object.metadata.name == 'a'", "request.operation == 'CREATE'"], "Fail"), Matched::Yes);
        assert_eq!(matched(&["true", "oldObject != null"], "Fail"), Matched::No("c1".into()));
    }

    #[test]
    fn what_is_false_decides_before_what_fails() {
        let fails = "object.spec.x == 1";
        assert_eq!(matched(&[fails, "false"], "Fail"), Matched::No("c1".into()));
        let why = "expression 'object.spec.x == 1' resulted in error: no such key: spec";
        assert_eq!(matched(&[fails, "true"], "Fail"), Matched::Failed(why.into()));
        assert_eq!(matched(&[fails, fails], "Fail"), Matched::Failed(why.into()));
        assert_eq!(matched(&[fails], "Ignore"), Matched::No(String::new()));
    }

    #[test]
    fn budgets_end() {
        let dear = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, \
            [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, true)))))";
        let failed = matched(&[dear; 10], "Fail");
        assert!(matches!(&failed, Matched::Failed(why) if why == crate::expressions::OUT_OF_BUDGET), "{failed:?}");
    }
}
