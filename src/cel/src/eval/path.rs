//! Evaluation of paths: variables, and selections on them.

use super::call::shown;
use super::evaluator::{Evaluator, constant};
use super::{Bindings, is_final};
use crate::error::{Error, Outcome};
use crate::plan::{Path, Plan, Root, SelectionKey};
use crate::value::Value;

impl<'a, B: Bindings<'a> + ?Sized> Evaluator<'a, '_, B> {
    /// Evaluates a path. Without `counts_root`, only its selections cost: as upstream, in a branch of `?:` and in an
    /// index.
    pub(super) fn path(&mut self, path: &'a Path, counts_root: bool) -> Outcome<Value<'a>> {
        let outcome = self.resolve(path);
        if !counts_root || is_final(&outcome) {
            return outcome;
        }
        match (&path.root, path.is_test) {
            (Root::Choice(_), true) => self.cost = self.cost.wrapping_sub(1),
            (Root::Choice(_), false) | (_, true) => {}
            (_, false) => self.charge(1)?,
        }
        outcome
    }

    fn resolve(&mut self, path: &'a Path) -> Outcome<Value<'a>> {
        // Expressions can use a lazy variable only through its fields.
        let lazy = match path.root {
            Root::Variable(slot, _) if self.variables.is_lazy(slot) => Some(slot),
            _ => None,
        };
        let root = self.root(&path.root)?;
        if path.selections.is_empty() {
            return Ok(root);
        }
        let (mut value, mut is_optional) = match root {
            Value::Optional(None) if path.is_test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::none()),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        for (at, selection) in path.selections.iter().enumerate() {
            let tests = path.is_test && at + 1 == path.selections.len();
            is_optional |= selection.is_optional;
            let key = self.key(&selection.key);
            if is_final(&key) {
                return Err(Error::CostLimit);
            }
            let found = key.and_then(|key| match (lazy, key.as_str()) {
                (Some(slot), Some(name)) if at == 0 => Ok((self.variables.field(slot, name).transpose()?, key)),
                _ => Ok((select(&value, &key)?, key)),
            });
            // An absent field costs nothing where it may be absent.
            if !is_optional || tests || matches!(found, Ok((Some(_), _))) {
                self.charge(1)?;
            }
            let (found, key) = found?;
            if tests {
                return Ok(Value::Bool(found.is_some()));
            }
            match found {
                Some(found) => value = found,
                None if is_optional && path.is_test => return Ok(Value::Bool(false)),
                None if is_optional => return Ok(Value::none()),
                None => return Err(missing(&value, &key)),
            }
        }
        Ok(if is_optional { Value::some(value) } else { value })
    }

    fn root(&mut self, root: &'a Root) -> Outcome<Value<'a>> {
        match root {
            Root::Variable(slot, name) => {
                self.variables.get(*slot).unwrap_or_else(|| Err(Error::new(format!("no such attribute(s): {name}"))))
            }
            Root::Local(at) => self.locals[*at].clone().unwrap_or_else(|| Err(Error::no_such_overload())),
            Root::Accumulator(at) => self.accumulator(*at),
            Root::Value(plan) => self.eval(plan),
            Root::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                match self.eval(condition)? {
                    Value::Bool(true) => self.branch(yes),
                    Value::Bool(false) => self.branch(no),
                    _ => Err(Error::no_such_overload()),
                }
            }
            Root::Maybe(names) => Err(Error::new(format!("no such attribute(s): {names}"))),
        }
    }

    fn branch(&mut self, plan: &'a Plan) -> Outcome<Value<'a>> {
        match plan {
            Plan::Path(path) => self.path(path, false),
            other => self.eval(other),
        }
    }

    fn key(&mut self, key: &'a SelectionKey) -> Outcome<Value<'a>> {
        match key {
            SelectionKey::Const(value) => Ok(constant(value)),
            SelectionKey::Path(path) => self.path(path, false),
            SelectionKey::Value(plan) => self.eval(plan),
        }
    }
}

/// Returns the value at a key. `None` if there is none.
fn select<'a>(value: &Value<'a>, key: &Value<'a>) -> Outcome<Option<Value<'a>>> {
    match (value, key) {
        (Value::Map(map), Value::String(name)) => map.find_field(name),
        (Value::Map(map), key) => map.find(key),
        (Value::List(list), key) => match usize::try_from(place(key)?) {
            Ok(at) => list.get(at).transpose(),
            Err(_) => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Converts a number to an index of a list.
fn place(key: &Value<'_>) -> Outcome<i64> {
    let unsupported = || Error::new(format!("unsupported index value {} in list", shown(key)));
    match key {
        Value::Int(at) => Ok(*at),
        Value::Uint(at) => i64::try_from(*at).map_err(|_| unsupported()),
        Value::Double(at) if at.trunc() == *at && at.abs() < 9.2e18 => Ok(*at as i64),
        Value::Double(_) => Err(unsupported()),
        other => {
            let of = other.type_of();
            Err(Error::new(format!("unsupported index type '{}' in list", of.runtime_name())))
        }
    }
}

fn missing(value: &Value<'_>, key: &Value<'_>) -> Error {
    match value {
        Value::List(_) => Error::new(format!("index out of bounds: {}", shown(key))),
        _ => Error::no_such_key(shown(key)),
    }
}
