//! The evaluator: evaluates a plan on the trees of objects, and counts the cost.

mod call;
mod evaluator;
mod path;

use std::sync::Arc;

use crate::check::Checked;
use crate::environment::{Environment, NoObjects, Provider};
use crate::error::{Error, Outcome};
use crate::plan::{self, Plan};
use crate::stack::with_room;
use crate::syntax::Expr;
use crate::value::Value;

pub(crate) use call::{call_with, is_map_key};
use evaluator::Evaluator;

/// An expression that is ready to be evaluated.
#[derive(Debug)]
pub struct Program {
    root: Plan,
    locals: usize,
    inits: Vec<Option<Plan>>,
    provider: Arc<dyn Provider>,
}

/// The values of variables, by their slots.
pub trait Bindings<'a> {
    /// Returns the value of a variable. `None` if it has no value, which is an error when the variable is used.
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>>;

    /// Returns whether a variable is an object whose fields are looked up on use, by [`Bindings::field`].
    fn is_lazy(&self, _slot: usize) -> bool {
        false
    }

    /// Returns a field of a lazy variable. `None` if the variable has no such field.
    fn field(&self, _slot: usize, _name: &str) -> Option<Outcome<Value<'a>>> {
        None
    }
}

impl<'a> Bindings<'a> for [Value<'a>] {
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>> {
        <[Value<'a>]>::get(self, slot).cloned().map(Ok)
    }
}

impl<'a, const N: usize> Bindings<'a> for [Value<'a>; N] {
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>> {
        self.as_slice().get(slot).cloned().map(Ok)
    }
}

impl<'a> Bindings<'a> for [Option<Value<'a>>] {
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>> {
        <[Option<Value<'a>>]>::get(self, slot).cloned().flatten().map(Ok)
    }
}

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The value, or the error.
    pub outcome: Outcome<Value<'a>>,
    /// The actual cost.
    pub cost: u64,
}

impl Program {
    /// Plans a checked expression. `Err` if a constant cannot be converted, or a pattern is invalid.
    pub fn new(checked: &Checked, environment: &Environment) -> Outcome<Self> {
        Self::planned(&checked.ast.root, Some(checked), environment, true)
    }

    /// Plans an expression that was not checked.
    pub fn unchecked(root: &Expr, environment: &Environment) -> Outcome<Self> {
        Self::planned(root, None, environment, false)
    }

    fn planned(root: &Expr, checked: Option<&Checked>, environment: &Environment, optimize: bool) -> Outcome<Self> {
        let (root, planned) = with_room(|| plan::plan(root, checked, environment, optimize))?;
        // The provider is needed only to construct objects; a program that constructs none need not keep it alive.
        let provider = if planned.makes_objects { environment.provider.clone() } else { Arc::new(NoObjects) };
        Ok(Self { root, locals: planned.locals, inits: planned.inits, provider })
    }

    /// Evaluates the expression. Stops with [`Error::CostLimit`] once it costs more than the limit.
    pub fn evaluate<'a>(&'a self, variables: &(impl Bindings<'a> + ?Sized), limit: u64) -> Evaluation<'a> {
        let mut evaluator = Evaluator::new(variables, &self.inits, self.locals, limit, &*self.provider);
        let outcome = with_room(|| evaluator.eval(&self.root));
        Evaluation { outcome, cost: evaluator.cost }
    }
}

/// Returns whether an error ends the evaluation and cannot be absorbed.
fn is_final<T>(outcome: &Outcome<T>) -> bool {
    matches!(outcome, Err(Error::CostLimit))
}
