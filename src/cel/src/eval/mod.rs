//! The evaluator: walks a plan over the trees of objects, and counts what it costs on the way.

mod call;
mod evaluator;
mod path;

use std::sync::Arc;

use crate::check::{Checked, NoObjects, Provider};
use crate::environment::Environment;
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
    /// The value of a variable. None if it has none, which is an error where the variable is asked for.
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>>;

    /// Whether a variable is an object whose fields are found when they are asked for, by [`Bindings::field`].
    fn is_lazy(&self, _slot: usize) -> bool {
        false
    }

    /// The field of a lazy variable. None if there is none of this name.
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

/// What an evaluation came to.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The value, or why there is none.
    pub outcome: Outcome<Value<'a>>,
    /// What it cost.
    pub cost: u64,
}

impl Program {
    /// Plans a checked expression. An error where a constant cannot be converted, or a pattern is none.
    pub fn new(checked: &Checked, environment: &Environment) -> Outcome<Self> {
        Self::planned(&checked.ast.root, Some(checked), environment, true)
    }

    /// Plans an expression that was not checked.
    pub fn unchecked(root: &Expr, environment: &Environment) -> Outcome<Self> {
        Self::planned(root, None, environment, false)
    }

    fn planned(root: &Expr, checked: Option<&Checked>, environment: &Environment, optimize: bool) -> Outcome<Self> {
        let (root, planned) = with_room(|| plan::plan(root, checked, environment, optimize))?;
        // Who knows objects is asked when they are made; a program that makes none need not keep what is known of them.
        let provider = if planned.makes_objects { environment.provider.clone() } else { Arc::new(NoObjects) };
        Ok(Self { root, locals: planned.locals, inits: planned.inits, provider })
    }

    /// Evaluates it. Stops with [`Error::CostLimit`] once it costs more than the limit.
    pub fn evaluate<'a>(&'a self, variables: &(impl Bindings<'a> + ?Sized), limit: u64) -> Evaluation<'a> {
        let mut evaluator = Evaluator::new(variables, &self.inits, self.locals, limit, &*self.provider);
        let outcome = with_room(|| evaluator.eval(&self.root));
        Evaluation { outcome, cost: evaluator.cost }
    }
}

/// Whether an error ends the evaluation, whatever absorbs others.
fn is_final<T>(outcome: &Outcome<T>) -> bool {
    matches!(outcome, Err(Error::CostLimit))
}
