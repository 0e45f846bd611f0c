//! Compiles and evaluates one ValidatingAdmissionPolicy.

use std::time::{Duration, Instant};

use flotilla_cel::value::Value as Cel;
use flotilla_proto::value::Value;

use super::super::Effort;
use super::super::conditions::MatchResult;
use super::super::policy::{Policy, Spec, sees};
use super::annotations::Annotation;
use super::verdict::{Decision, Evaluation, Judged};
use crate::expressions::{
    Activation, BUDGET, Compiled, Compiler, Fault, Inputs, OUT_OF_BUDGET, OptionalNames, Stopped, Wanted,
};
use crate::limits;

const REASONS: [&str; 4] = ["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"];

type Expression = Result<Compiled, Fault>;

/// A compiled policy that refuses writes.
#[derive(Debug)]
pub struct ValidatingPolicy {
    spec: Spec,
    validations: Vec<Validation>,
    annotations: Vec<(String, Expression)>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    text: String,
    message: String,
    message_expression: Option<Expression>,
    reason: &'static str,
}

impl Policy for ValidatingPolicy {
    fn read(policy: &Value) -> Self {
        let (spec, compiler) = Spec::read(policy);
        let of = policy.at(&["spec"]);
        let sees = sees(of);
        let annotation = |annotation: &Value| {
            let text = annotation.str_at(&["valueExpression"]);
            (annotation.str_at(&["key"]).to_owned(), compiler.compile(text, Wanted::StringOrNull, sees))
        };
        let validations = of.list_at(&["validations"]).iter().map(|one| Validation::read(one, &compiler, sees));
        Self {
            spec,
            validations: validations.collect(),
            annotations: of.list_at(&["auditAnnotations"]).iter().map(annotation).collect(),
        }
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }
}

impl Validation {
    fn read(validation: &Value, compiler: &Compiler, sees: OptionalNames) -> Self {
        let text = validation.str_at(&["expression"]);
        let (message, reason) = (validation.str_at(&["messageExpression"]), validation.str_at(&["reason"]));
        let of_message = || compiler.compile(message, Wanted::String, OptionalNames { authorizer: false, ..sees });
        Self {
            expression: compiler.compile(text, Wanted::Bool, sees),
            text: text.trim().to_owned(),
            message: validation.str_at(&["message"]).trim().to_owned(),
            message_expression: (!message.is_empty()).then(of_message),
            reason: REASONS.into_iter().find(|known| *known == reason).unwrap_or("Invalid"),
        }
    }

    /// Returns the message of a validation that does not hold: from its message expression, else its message, else its
    /// text.
    fn message(&self, made: Option<Cel<'_>>) -> String {
        let made = made.as_ref().and_then(Cel::as_str).map(str::trim).unwrap_or_default();
        match (made, self.message.as_str()) {
            (made, _) if !made.is_empty() && made.len() <= limits::POLICY_MESSAGE_BYTES && !made.contains('\n') => {
                made.to_owned()
            }
            (_, "") => format!("failed expression: {}", self.text),
            (_, message) => message.to_owned(),
        }
    }
}

impl ValidatingPolicy {
    /// Returns whether the match conditions hold for a write, with one parameter.
    pub async fn holds(&self, inputs: Inputs<'_>, effort: &mut Effort) -> MatchResult {
        self.spec.conditions.matches(inputs, &self.spec.variables, effort).await
    }

    /// Evaluates the policy with one parameter. `holds` is the result of its match conditions.
    pub async fn judge(&self, inputs: Inputs<'_>, holds: MatchResult, effort: &mut Effort) -> Judged {
        let ignores = self.spec.ignores_failure;
        match holds {
            MatchResult::Yes if effort.is_spent() => return Judged::failed(OUT_OF_BUDGET.to_owned(), ignores),
            MatchResult::Yes => {}
            MatchResult::No(_) => return Judged::default(),
            MatchResult::Failed(why) => return Judged::failed(why, ignores),
        }
        let mut judged = Judged::default();
        match self.decisions(inputs, effort).await {
            Ok(decisions) => judged.decisions = decisions,
            Err(stopped) => return Judged::failed(stopped.to_string(), ignores),
        }
        match self.annotations(Inputs { authorizer: None, ..inputs }, effort).await {
            Ok(annotations) => judged.annotations = annotations,
            Err(stopped) => return Judged::failed(stopped.to_string(), ignores),
        }
        judged
    }

    async fn decisions(&self, inputs: Inputs<'_>, effort: &mut Effort) -> Result<Vec<Decision>, Stopped> {
        let mut evaluator = Evaluator::new(inputs, &self.spec, effort);
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let began = Instant::now();
            let result = evaluator.evaluate(&validation.expression)?.map(|value| value.as_bool() == Some(true));
            results.push((result, began.elapsed()));
            evaluator.effort.pause().await;
        }
        let budget = evaluator.budget;
        let messages = self.messages(&results, Inputs { authorizer: None, ..inputs }, budget, effort).await;
        let decide = |(at, (result, elapsed)): (usize, (Result<bool, String>, Duration))| {
            let failed =
                |message| Decision { denies: !self.spec.ignores_failure, ..Decision::failed(message, elapsed) };
            match (result, &messages) {
                (Err(why), _) => failed(why),
                (Ok(_), Err(stopped)) => failed(format!("failed messageExpression: {stopped}")),
                (Ok(true), Ok(_)) => Decision::admits(elapsed),
                (Ok(false), Ok(messages)) => Decision {
                    denies: true,
                    evaluation: Evaluation::Deny,
                    message: messages[at].clone(),
                    reason: self.validations[at].reason,
                    elapsed,
                },
            }
        };
        Ok(results.into_iter().enumerate().map(decide).collect())
    }

    /// Returns the messages of validations, by position; empty where no message is needed. Every message expression
    /// counts against the budget, even if its validation holds. In that case the expression is skipped if the budget
    /// certainly suffices for all expressions.
    async fn messages(
        &self,
        results: &[(Result<bool, String>, Duration)],
        inputs: Inputs<'_>,
        budget: u64,
        effort: &mut Effort,
    ) -> Result<Vec<String>, Stopped> {
        let evaluated = self.validations.len() + self.spec.variables.len();
        let suffices = (evaluated as u64).saturating_mul(limits::POLICY_CALL_COST) <= budget;
        let mut evaluator = Evaluator { budget, ..Evaluator::new(inputs, &self.spec, effort) };
        let mut messages = Vec::with_capacity(results.len());
        for (validation, (result, _)) in self.validations.iter().zip(results) {
            let fails = *result == Ok(false);
            let made = match &validation.message_expression {
                Some(expression) if fails || !suffices => evaluator.evaluate(expression)?.ok(),
                _ => None,
            };
            messages.push(if fails { validation.message(made) } else { String::new() });
            evaluator.effort.pause().await;
        }
        Ok(messages)
    }

    async fn annotations(&self, inputs: Inputs<'_>, effort: &mut Effort) -> Result<Vec<Annotation>, Stopped> {
        let (mut evaluator, mut annotations) = (Evaluator::new(inputs, &self.spec, effort), Vec::new());
        for (key, expression) in &self.annotations {
            let began = Instant::now();
            match evaluator.evaluate(expression)? {
                Ok(value) => {
                    let text = value.as_str().map(str::trim).unwrap_or_default();
                    annotations.extend((!text.is_empty()).then(|| Annotation::Value(key.clone(), text.to_owned())));
                }
                Err(_) if self.spec.ignores_failure => {}
                Err(why) => annotations.push(Annotation::Failed(why, began.elapsed())),
            }
            evaluator.effort.pause().await;
        }
        Ok(annotations)
    }
}

/// Evaluates expressions of one kind one after the other, within one budget.
struct Evaluator<'a, 'e> {
    activation: Activation<'a>,
    budget: u64,
    effort: &'e mut Effort,
}

impl<'a, 'e> Evaluator<'a, 'e> {
    fn new(inputs: Inputs<'a>, spec: &'a Spec, effort: &'e mut Effort) -> Self {
        Self { activation: Activation::new(inputs, &spec.variables), budget: effort.grant(BUDGET), effort }
    }

    /// Evaluates an expression. The inner error says why it failed; the outer one ends the evaluation of the policy.
    fn evaluate(&mut self, expression: &'a Expression) -> Result<Result<Cel<'a>, String>, Stopped> {
        let before = self.budget;
        let evaluated = self.activation.evaluate(expression, &mut self.budget);
        self.effort.spend(before - self.budget);
        evaluated
    }
}
