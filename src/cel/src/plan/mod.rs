//! Plans: expressions as they are evaluated, with names, overloads, constants and patterns resolved once.

mod fold;
mod planner;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

pub use planner::plan;

use crate::environment::OverloadDecl;
use crate::functions::{Overload, Preparation};
use crate::value::{Key, Value};

/// A part of a plan.
#[derive(Debug)]
pub enum Plan {
    /// A value that is known.
    Const(Value<'static>),
    /// A variable or another value, and selections on it.
    Path(Path),
    /// `a && b`, `a || b`: the first operand that decides; errors count only if none does. The flag is the value of an
    /// operand that decides.
    Logic(Box<[Plan; 2]>, bool),
    /// `a == b`, and `a != b`. The flag is the result for equal values.
    Equal(Box<[Plan; 2]>, bool),
    /// The condition of a loop: whether a value is anything but `false`. An error is, too.
    NotFalse(Box<Plan>),
    /// `a.or(b)`, and, with the flag, `a.orValue(b)`.
    Or(Box<[Plan; 2]>, bool),
    /// A call.
    Call(Box<PlannedCall>),
    /// Whether a value is one of some constants.
    In(Box<Plan>, Arc<Constants>),
    /// A list.
    List(Vec<Item>),
    /// A map.
    Map(Vec<(Plan, Item)>),
    /// An object of a type that the environment's provider makes.
    Object(Arc<str>, Vec<(Arc<str>, Item)>),
    /// A loop.
    Loop(Box<Loop>),
    /// An accumulator of a loop and the values that are added to it: a list, or an entry of a map.
    Gather(Box<Gather>),
}

/// A value, and successive selections on it.
#[derive(Debug)]
pub struct Path {
    /// Where it begins.
    pub root: Root,
    /// The selections.
    pub selections: Vec<Selection>,
    /// Whether it only tests whether the last field exists.
    pub is_test: bool,
}

/// Where a path begins.
#[derive(Debug)]
pub enum Root {
    /// A declared variable, by its slot.
    Variable(usize, Arc<str>),
    /// A variable of a loop.
    Local(usize),
    /// The accumulator of a loop, created on first use.
    Accumulator(usize),
    /// Any value.
    Value(Box<Plan>),
    /// `a ? b : c`
    Choice(Box<[Plan; 3]>),
    /// An unknown variable, by its possible qualified names; only in expressions that were not checked.
    Maybe(Arc<str>),
}

/// A selection.
#[derive(Debug)]
pub struct Selection {
    /// The key that it selects.
    pub key: SelectionKey,
    /// Whether it gives an optional value.
    pub is_optional: bool,
}

/// The key of a selection.
#[derive(Debug)]
pub enum SelectionKey {
    /// A field or a constant key.
    Const(Value<'static>),
    /// The value of a path.
    Path(Path),
    /// The value of an expression.
    Value(Plan),
}

/// An item of a list, or the value of an entry or a field.
#[derive(Debug)]
pub struct Item {
    /// Its value.
    pub value: Plan,
    /// Whether it is omitted if its value is an optional without a value.
    pub is_optional: bool,
}

/// A call of a function.
pub struct PlannedCall {
    /// Its name.
    pub function: Arc<str>,
    /// The possible overloads; exactly one if the types determine it.
    pub overloads: Vec<Arc<OverloadDecl>>,
    /// Whether the types determine the overload.
    pub is_resolved: bool,
    /// The prepared constant argument, if there is one.
    pub prepared: Option<Preparation>,
    /// The arguments, the receiver first.
    pub arguments: Vec<Plan>,
}

impl fmt::Debug for PlannedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedCall").field("function", &self.function).field("arguments", &self.arguments).finish()
    }
}

impl PlannedCall {
    /// Returns the overload if the types determine it. `None` otherwise, and if it has no implementation.
    pub fn overload(&self) -> Option<&'static Overload> {
        if self.is_resolved { self.overloads.first()?.native } else { None }
    }
}

/// A loop.
#[derive(Debug)]
pub struct Loop {
    /// The list or map that it iterates.
    pub range: Plan,
    /// The slot of the variable.
    pub variable: usize,
    /// The slot of the second variable.
    pub second: Option<usize>,
    /// The slot of the accumulator.
    pub accumulator: usize,
    /// The condition to continue.
    pub condition: Plan,
    /// The new value of the accumulator after an iteration.
    pub step: Plan,
    /// The result of the loop.
    pub result: Plan,
}

/// An addition to an accumulator.
#[derive(Debug)]
pub struct Gather {
    /// The slot of the accumulator.
    pub accumulator: usize,
    /// The added values: a list, the key and the value of an entry, or a map of entries.
    pub added: Vec<Plan>,
    /// Whether the accumulator is a list.
    pub is_list: bool,
}

/// A set of constants for the operator `in`.
#[derive(Debug, Default)]
pub struct Constants {
    keys: HashSet<Key<'static>>,
}

impl Constants {
    /// Returns the set of these values. `None` if one of them cannot be a key.
    pub fn of<'v>(values: impl Iterator<Item = &'v Value<'static>>) -> Option<Self> {
        let mut keys = HashSet::new();
        for value in values {
            match Key::of(value) {
                Key::Other => return None,
                key => {
                    keys.extend(key.numbers());
                    keys.insert(key);
                }
            }
        }
        Some(Self { keys })
    }

    /// Returns whether the value is one of them.
    pub fn has(&self, value: &Value<'_>) -> bool {
        !matches!(value, Value::Double(number) if number.is_nan()) && self.keys.contains(&Key::of(value))
    }
}
