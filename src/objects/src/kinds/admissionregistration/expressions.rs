//! Checks the CEL expressions of policies and webhooks when they are written.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use crate::expressions::{Compiler, Fault, NEW, OptionalNames, STORED, Wanted};
use crate::field::{ErrorKind, Errors, Path};
use crate::rules::names;

const CONDITIONS_MAX: usize = 64;

/// Checks the expressions of one policy or webhook. A new expression may only call functions that servers of the
/// previous minor version have, too; an expression that was stored before may call all functions.
#[derive(Debug)]
pub struct Expressions<'a> {
    compiler: Compiler,
    before: &'a Value,
    has_params: bool,
}

impl<'a> Expressions<'a> {
    /// Returns the checker for the expressions of a policy's spec. `before` is the stored spec, or null for a new
    /// policy.
    pub fn of_policy(spec: &Value, before: &'a Value, with_variables: bool) -> Self {
        let compiler = if with_variables { Compiler::with_variables(NEW) } else { Compiler::new(NEW) };
        Self { compiler, before, has_params: !spec.at(&["paramKind"]).is_null() }
    }

    /// Returns the variables that most expressions of the policy can use.
    pub fn sees(&self) -> OptionalNames {
        OptionalNames { params: self.has_params, authorizer: true, patches: false }
    }

    /// Checks an expression. `list` and `field` locate expressions in the stored spec, to find out whether this one was
    /// stored before; `shown` is its text in messages.
    pub fn check(
        &mut self,
        text: &str,
        (wanted, sees): (Wanted, OptionalNames),
        (list, field): (&str, &[&str]),
        (path, shown): (&Path<'_>, &str),
        errors: &mut Errors,
    ) {
        let Err(fault) = self.compiler.compile(text, wanted, sees) else { return };
        let stood = self.before.list_at(&[list]).iter().any(|item| item.at(field).as_str() == Some(shown));
        let fault = if stood {
            self.compiler.set_minor(STORED);
            let stored = self.compiler.compile(text, wanted, sees);
            self.compiler.set_minor(NEW);
            stored.err()
        } else {
            Some(fault)
        };
        if let Some(fault) = fault {
            tell(&fault, path, shown, errors);
        }
    }

    /// Checks the expression of a variable and declares the variable for later expressions.
    pub fn variable(&mut self, name: &str, text: &str, path: &Path<'_>, errors: &mut Errors) {
        let sees = self.sees();
        if let Err(fault) = self.compiler.variable(name, text, sees).compiled {
            tell(&fault, path, text, errors);
        }
    }
}

fn tell(fault: &Fault, path: &Path<'_>, shown: &str, errors: &mut Errors) {
    match fault {
        Fault::Invalid(why) => errors.invalid_str(path, shown, why),
        Fault::Internal(why) => errors.push(ErrorKind::Internal, path, "", why),
    }
}

/// Checks match conditions; they see no variables.
pub fn validate_conditions(spec: &Value, before: &Value, path: &Path<'_>, errors: &mut Errors) {
    let conditions = spec.list_at(&["matchConditions"]);
    if conditions.len() > CONDITIONS_MAX {
        errors.too_many(path, conditions.len(), CONDITIONS_MAX);
    }
    let mut expressions = Expressions::of_policy(spec, before, false);
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let place = path.index(index);
        let own = place.child("expression");
        match condition.str_at(&["expression"]).trim() {
            "" => errors.required(&own, ""),
            text => {
                let asked = (Wanted::Bool, expressions.sees());
                expressions.check(text, asked, ("matchConditions", &["expression"]), (&own, text), errors);
            }
        }
        let name = condition.str_at(&["name"]);
        if name.is_empty() {
            errors.required(&place.child("name"), "");
            continue;
        }
        names::check(&place.child("name"), name, names::qualified_name, errors);
        if !seen.insert(name) {
            errors.duplicate(&place.child("name"), &name.into());
        }
    }
}

/// Returns whether stored match conditions need no check, since nothing that their validity depends on has changed.
pub fn are_conditions_kept(spec: &Value, before: &Value) -> bool {
    !before.is_null()
        && ["paramKind", "matchConditions"].iter().all(|field| match (spec.at(&[field]), before.at(&[field])) {
            (Value::Array(none), Value::Null) | (Value::Null, Value::Array(none)) => none.is_empty(),
            (now, then) => now == then,
        })
}
