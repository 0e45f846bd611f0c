//! The variables of an expression for one request, and evaluation within a cost budget.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use flotilla_cel::error::{Error, Outcome};
use flotilla_cel::eval::{Bindings, Evaluation};
use flotilla_cel::library::authorizer::{self, Authorizer, Resource};
use flotilla_cel::limits::NESTING_MAX;
use flotilla_cel::value::{Depths, Entries, Map, Tree, Value};
use flotilla_cel::with_room;

use super::compile::{Compiled, Fault, Variable};
use super::environment::{Name, VARIABLES};
use crate::field::quote;
use crate::limits::VARIABLE_LEVELS;

/// The cost limit of one evaluation.
const CALL: u64 = 1_000_000;
/// The cost limit of all expressions of one kind in a policy together, for one binding and parameter.
pub const BUDGET: u64 = 10_000_000;
/// The cost limit of all match conditions together.
pub const MATCH_BUDGET: u64 = 2_500_000;
/// The message for a budget that is spent.
pub const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further validation rules \
    will be run";

/// A request as expressions see it. A tree that is `null` is absent.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The object after the write.
    pub object: &'a Tree,
    /// The object before the write.
    pub old_object: &'a Tree,
    /// The attributes of the request.
    pub request: &'a Tree,
    /// The namespace of the object.
    pub namespace: &'a Tree,
    /// The parameters.
    pub params: &'a Tree,
    /// The authorizer, and the resource of the request. `None` when expressions cannot use them.
    pub authorizer: Option<(&'a Arc<dyn Authorizer>, &'a Resource)>,
}

/// The budget is spent. No more expressions are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{OUT_OF_BUDGET}")]
pub struct Stopped;

/// The variables of the expressions for one request. A policy's variable is evaluated once, on its first use.
#[derive(Debug)]
pub struct Activation<'a> {
    inputs: Inputs<'a>,
    authorizer: Option<(Value<'a>, Value<'a>)>,
    variables: &'a [Variable],
    found: RefCell<Vec<Option<Outcome<Value<'a>>>>>,
    /// The nesting depths of variables' values, which can contain each other.
    depths: RefCell<Depths>,
    /// The cost of variables that was not yet taken from a budget.
    spent: Cell<u64>,
    deep: Cell<u32>,
}

impl<'a> Activation<'a> {
    /// Creates the activation of a request, with the variables of a policy.
    pub fn new(inputs: Inputs<'a>, variables: &'a [Variable]) -> Self {
        let authorizer = inputs.authorizer.map(|(who, asked)| {
            (authorizer::authorizer(Arc::clone(who)), authorizer::request_resource(Arc::clone(who), asked.clone()))
        });
        let (found, depths) = (RefCell::default(), RefCell::default());
        Self { inputs, authorizer, variables, found, depths, spent: Cell::default(), deep: Cell::default() }
    }

    /// Evaluates an expression and takes its cost from the budget. The inner result is the value, or a message about
    /// the expression.
    ///
    /// # Errors
    /// [`Stopped`] if the budget is spent.
    pub fn evaluate(
        &self,
        compiled: &'a Result<Compiled, Fault>,
        budget: &mut u64,
    ) -> Result<Result<Value<'a>, String>, Stopped> {
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(fault) => return Ok(Err(format!("compilation error: {fault}"))),
        };
        let Evaluation { outcome, cost } = self.run(compiled);
        let left = budget.checked_sub(self.spent.take()).and_then(|left| left.checked_sub(cost));
        *budget = left.unwrap_or(0);
        left.ok_or(Stopped)?;
        Ok(outcome.map_err(|error| format!("expression '{}' resulted in error: {error}", compiled.text)))
    }

    fn run(&self, compiled: &'a Compiled) -> Evaluation<'a> {
        let bound = Bound { activation: self, names: &compiled.names };
        compiled.program.evaluate(&bound, CALL)
    }

    /// Returns the value of a policy's variable. If several have the same name, the last one counts.
    fn variable(&self, name: &str) -> Option<Outcome<Value<'a>>> {
        let at = self.variables.iter().rposition(|variable| *variable.name == *name)?;
        if let Some(Some(found)) = self.found.borrow().get(at) {
            return Some(found.clone());
        }
        let found = self.find(&self.variables[at]);
        let mut all = self.found.borrow_mut();
        if all.is_empty() {
            all.resize_with(self.variables.len(), || None);
        }
        all[at] = Some(found.clone());
        Some(found)
    }

    fn find(&self, variable: &'a Variable) -> Outcome<Value<'a>> {
        let name = quote(&variable.name);
        let compiled = variable
            .compiled
            .as_ref()
            .map_err(|fault| Error::new(format!("composited variable {name} fails to compile: {fault}")))?;
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(format!("composited variable {name} fails to evaluate: {error}"))
        };
        if self.deep.get() == VARIABLE_LEVELS {
            return Err(failed(&"variables depend on each other too deeply"));
        }
        self.deep.set(self.deep.get() + 1);
        let Evaluation { outcome, cost } = self.run(compiled);
        self.deep.set(self.deep.get() - 1);
        self.spent.set(self.spent.get().saturating_add(cost));
        let value = outcome.map_err(|error| failed(&error))?;
        let mut depths = self.depths.borrow_mut();
        if with_room(|| depths.of(&value)) > NESTING_MAX {
            *depths = Depths::default(); // the value is dropped
            return Err(failed(&format!("its value nests more than {NESTING_MAX} levels deep")));
        }
        Ok(value)
    }
}

/// The bindings of one expression, by slot.
struct Bound<'b, 'a> {
    activation: &'b Activation<'a>,
    names: &'b [Name],
}

impl<'a> Bindings<'a> for Bound<'_, 'a> {
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>> {
        let Activation { inputs, authorizer, .. } = self.activation;
        let value = match self.names.get(slot)? {
            Name::Object => Value::of_tree(inputs.object),
            Name::OldObject => Value::of_tree(inputs.old_object),
            Name::NamespaceObject => Value::of_tree(inputs.namespace),
            Name::Request => Value::of_tree(inputs.request),
            Name::Params => Value::of_tree(inputs.params),
            Name::Variables => Value::Map(Map::Made(Arc::new(Entries::default().of_object(VARIABLES)))),
            Name::Authorizer => authorizer.as_ref()?.0.clone(),
            Name::RequestResource => authorizer.as_ref()?.1.clone(),
        };
        Some(Ok(value))
    }

    fn is_lazy(&self, slot: usize) -> bool {
        self.names.get(slot) == Some(&Name::Variables)
    }

    fn field(&self, _: usize, name: &str) -> Option<Outcome<Value<'a>>> {
        self.activation.variable(name)
    }
}
