//! A ValidatingAdmissionPolicy: compiled once, and evaluated.

use std::time::{Duration, Instant};

use flotilla_cel::value::Value as Cel;
use flotilla_proto::value::Value;

use super::super::Seen;
use super::super::conditions::Matched;
use super::super::policy::{Policy, Scene, Spec, sees};
use super::annotations::Annotation;
use super::verdict::{Decision, Evaluation, Judged};
use crate::expressions::{Activation, BUDGET, Compiled, Compiler, Fault, Inputs, Sees, Stopped, Wanted};

/// Bytes of a message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 << 10;
/// What an evaluation may cost at most, with its last step.
const CALL_MAX: u64 = 2_000_000;
const REASONS: [&str; 4] = ["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"];

type Expression = Result<Compiled, Fault>;

/// A policy that refuses writes.
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
    fn read(validation: &Value, compiler: &Compiler, sees: Sees) -> Self {
        let text = validation.str_at(&["expression"]);
        let (message, reason) = (validation.str_at(&["messageExpression"]), validation.str_at(&["reason"]));
        let of_message = || compiler.compile(message, Wanted::String, Sees { authorizer: false, ..sees });
        Self {
            expression: compiler.compile(text, Wanted::Bool, sees),
            text: text.trim().to_owned(),
            message: validation.str_at(&["message"]).trim().to_owned(),
            message_expression: (!message.is_empty()).then(of_message),
            reason: REASONS.into_iter().find(|known| *known == reason).unwrap_or("Invalid"),
        }
    }

    /// The message of a validation that does not hold: what an expression made, what is written, or the expression.
    fn told(&self, made: Option<Cel<'_>>) -> String {
        let made = made.as_ref().and_then(Cel::as_str).map(str::trim).unwrap_or_default();
        match (made, self.message.as_str()) {
            (made, _) if !made.is_empty() && made.len() <= MESSAGE_BYTES_MAX && !made.contains('\n') => made.to_owned(),
            (_, "") => format!("failed expression: {}", self.text),
            (_, message) => message.to_owned(),
        }
    }
}

impl ValidatingPolicy {
    /// Evaluates the policy with some parameters. The requests are what conditions see, and all else.
    pub fn judge(
        &self,
        scene: &Scene,
        seen: &Seen,
        (of_conditions, request): (&Value, &Value),
        params: &Value,
    ) -> Judged {
        let ignores = self.spec.ignores_failure;
        match self.spec.conditions.matches(scene.inputs(seen, of_conditions, params), &self.spec.variables) {
            Matched::Yes => {}
            Matched::No(_) => return Judged::default(),
            Matched::Failed(why) => return Judged::failed(why, ignores),
        }
        let inputs = scene.inputs(seen, request, params);
        let mut judged = Judged::default();
        match self.decisions(inputs) {
            Ok(decisions) => judged.decisions = decisions,
            Err(stopped) => return Judged::failed(stopped.to_string(), ignores),
        }
        match self.annotations(Inputs { authorizer: None, ..inputs }) {
            Ok(annotations) => judged.annotations = annotations,
            Err(stopped) => return Judged::failed(stopped.to_string(), ignores),
        }
        judged
    }

    fn decisions(&self, inputs: Inputs<'_>) -> Result<Vec<Decision>, Stopped> {
        let activation = Activation::new(inputs, &self.spec.variables);
        let (mut budget, mut results) = (BUDGET, Vec::with_capacity(self.validations.len()));
        for validation in &self.validations {
            let began = Instant::now();
            let result = activation.evaluate(&validation.expression, &mut budget)?;
            results.push((result.map(|value| value.as_bool() == Some(true)), began.elapsed()));
        }
        let messages = Messages::of(self, &results, Inputs { authorizer: None, ..inputs }, budget);
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
                    message: messages.0[at].clone(),
                    reason: self.validations[at].reason,
                    elapsed,
                },
            }
        };
        Ok(results.into_iter().enumerate().map(decide).collect())
    }

    fn annotations(&self, inputs: Inputs<'_>) -> Result<Vec<Annotation>, Stopped> {
        let activation = Activation::new(inputs, &self.spec.variables);
        let (mut budget, mut annotations) = (BUDGET, Vec::new());
        for (key, expression) in &self.annotations {
            let began = Instant::now();
            match activation.evaluate(expression, &mut budget)? {
                Ok(value) => {
                    let text = value.as_str().map(str::trim).unwrap_or_default();
                    annotations.extend((!text.is_empty()).then(|| Annotation::Told(key.clone(), text.to_owned())));
                }
                Err(_) if self.spec.ignores_failure => {}
                Err(why) => annotations.push(Annotation::Failed(why, began.elapsed())),
            }
        }
        Ok(annotations)
    }
}

/// The messages of validations, by their places; empty where nobody asks.
struct Messages(Vec<String>);

impl Messages {
    /// Evaluates what makes messages. All of it counts against the budget, also what makes no message of anything that
    /// does not hold; where it cannot be spent, that is left out.
    fn of(
        policy: &ValidatingPolicy,
        results: &[(Result<bool, String>, Duration)],
        inputs: Inputs<'_>,
        mut budget: u64,
    ) -> Result<Self, Stopped> {
        let evaluated = policy.validations.len() + policy.spec.variables.len();
        let suffices = (evaluated as u64).saturating_mul(CALL_MAX) <= budget;
        let activation = Activation::new(inputs, &policy.spec.variables);
        let mut messages = Vec::with_capacity(results.len());
        for (validation, (result, _)) in policy.validations.iter().zip(results) {
            let fails = *result == Ok(false);
            let made = match &validation.message_expression {
                Some(expression) if fails || !suffices => activation.evaluate(expression, &mut budget)?.ok(),
                _ => None,
            };
            messages.push(if fails { validation.told(made) } else { String::new() });
        }
        Ok(Self(messages))
    }
}
