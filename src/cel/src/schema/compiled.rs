//! Compiled rules: each rule of a schema is compiled once, with its estimated cost.

use std::sync::Arc;

use super::declared::{Declared, Objects, Sizes};
use super::field_path;
use super::structural::{Rule, Schema};
use crate::check::Checked;
use crate::environment::{Environment, Provider};
use crate::estimate::estimate;
use crate::eval::Program;
use crate::types::Type;

/// The minor version of Kubernetes that provides the environment of new rules: the previous one, so that a server of
/// that version can still serve these rules.
pub const MINOR: u16 = 35;
/// The minor version that provides the environment of stored expressions: the newest, with all functions, since a later
/// server may have stored the expressions.
pub const STORED_MINOR: u16 = u16::MAX;
/// The slots of the variables.
pub(super) const SELF: usize = 0;
pub(super) const OLD_SELF: usize = 1;
const OLD_SELF_NAME: &str = "oldSelf";

/// A compiled rule, or why it cannot be compiled.
#[derive(Debug, Default)]
pub struct Compiled {
    /// The rule as it was written.
    pub rule: Rule,
    /// The program. `None` for an empty rule, or if there is an error.
    pub program: Option<Program>,
    /// The reason why it does not compile.
    pub error: Option<String>,
    /// Whether it uses `oldSelf`.
    pub uses_old_self: bool,
    /// The largest estimated cost of one evaluation.
    pub cost: u64,
    /// The program that computes the message.
    pub message: Option<Program>,
    /// The reason why the message does not compile.
    pub message_error: Option<String>,
    /// The largest estimated cost of the message.
    pub message_cost: u64,
    /// The path of its error, relative to the schema; empty for the schema itself.
    pub place: String,
}

impl Provider for Objects {
    fn has_object(&self, name: &str) -> bool {
        self.has(name)
    }

    fn field(&self, object: &str, field: &str) -> Option<Type> {
        Objects::field(self, object, field)
    }
}

/// Returns the minor version of Kubernetes in whose environment an expression is compiled.
pub type MinorOf<'a> = &'a dyn Fn(Expression<'_>) -> u16;

/// An expression of a rule.
#[derive(Clone, Copy, Debug)]
pub enum Expression<'a> {
    /// The rule.
    Rule(&'a str),
    /// The expression of its message.
    Message(&'a str),
}

/// The environments of the expressions of one schema.
struct Environments {
    objects: Arc<dyn Provider>,
    of: Type,
}

impl Environments {
    fn get(&self, minor: u16, is_optional: bool) -> Environment {
        let base = Environment::kubernetes(minor).with_provider(self.objects.clone());
        let old = if is_optional { Type::optional(self.of.clone()) } else { self.of.clone() };
        base.with_variable("self", self.of.clone()).with_variable(OLD_SELF_NAME, old)
    }
}

/// Compiles the rules of a schema, but not those of the schemas below it.
pub fn compile(schema: &Schema, declared: &Arc<Declared>, minor_of: MinorOf<'_>) -> Vec<Compiled> {
    if schema.rules.is_empty() {
        return Vec::new();
    }
    let (objects, of) = Objects::of(declared);
    let (environments, sizes) = (Environments { objects, of }, Sizes(declared.clone()));
    schema.rules.iter().map(|rule| compile_rule(rule, schema, &environments, &sizes, minor_of)).collect()
}

fn compile_rule(
    rule: &Rule,
    schema: &Schema,
    environments: &Environments,
    sizes: &Sizes,
    minor_of: MinorOf<'_>,
) -> Compiled {
    let mut compiled = Compiled { rule: rule.clone(), ..Compiled::default() };
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    let is_optional = rule.has_optional_old_self();
    let environment = &environments.get(minor_of(Expression::Rule(&rule.rule)), is_optional);
    let read = checked(&rule.rule, environment, &Type::Bool);
    let refused = |fault: CompileFault| match fault {
        CompileFault::Issues(issues) => format!("compilation failed: {issues}"),
        CompileFault::Type => "cel expression must evaluate to a bool".to_owned(),
    };
    let checked_rule = match read {
        Ok(checked) => checked,
        Err(fault) => {
            compiled.error = Some(refused(fault));
            return compiled;
        }
    };
    compiled.uses_old_self = checked_rule.refers_to(OLD_SELF_NAME);
    match Program::new(&checked_rule, environment) {
        Ok(program) => compiled.program = Some(program),
        Err(error) => {
            compiled.error = Some(format!("program instantiation failed: {error}"));
            return compiled;
        }
    }
    compiled.cost = estimate(&checked_rule, sizes).max;
    if !rule.message_expression.is_empty() {
        let minor = minor_of(Expression::Message(&rule.message_expression));
        let environment = environments.get(minor, is_optional);
        if let Err(error) = compile_message(&mut compiled, &environment, sizes) {
            compiled.message_error = Some(error);
            return compiled;
        }
    }
    compiled.place = field_path::normalize(&rule.field_path, schema).unwrap_or_default();
    compiled
}

fn compile_message(compiled: &mut Compiled, environment: &Environment, sizes: &Sizes) -> Result<(), String> {
    let checked = checked(&compiled.rule.message_expression, environment, &Type::String);
    let checked = checked.map_err(|fault| match fault {
        CompileFault::Issues(issues) => format!("messageExpression compilation failed: {issues}"),
        CompileFault::Type => "messageExpression must evaluate to a string".to_owned(),
    })?;
    let program = Program::new(&checked, environment);
    let program = program.map_err(|error| format!("messageExpression instantiation failed: {error}"))?;
    compiled.message = Some(program);
    compiled.message_cost = estimate(&checked, sizes).max;
    Ok(())
}

enum CompileFault {
    /// The issues of the expression.
    Issues(String),
    /// Its result has the wrong type.
    Type,
}

fn checked(text: &str, environment: &Environment, wanted: &Type) -> Result<Checked, CompileFault> {
    let checked = Checked::of(text, environment).map_err(CompileFault::Issues)?;
    if checked.output() == wanted { Ok(checked) } else { Err(CompileFault::Type) }
}
