//! Evaluation of the parts of a plan.

use std::sync::Arc;

use super::call::{entry_error, item_error, range_error};
use super::{Bindings, is_final};
use crate::cost::{self, LIST, MAP, OBJECT};
use crate::environment::Provider;
use crate::error::{Error, Outcome};
use crate::plan::{Gather, Item, Loop, Plan};
use crate::value::{Entries, List, Map, Text, Value, equal};

/// One evaluation.
pub(super) struct Evaluator<'a, 'b, B: ?Sized> {
    pub variables: &'b B,
    pub inits: &'a [Option<Plan>],
    /// The variables of loops. `None` for an accumulator that has not been created yet.
    pub locals: Vec<Option<Outcome<Value<'a>>>>,
    pub cost: u64,
    limit: u64,
    provider: &'b dyn Provider,
}

impl<'a, 'b, B: Bindings<'a> + ?Sized> Evaluator<'a, 'b, B> {
    pub fn new(
        variables: &'b B,
        inits: &'a [Option<Plan>],
        locals: usize,
        limit: u64,
        provider: &'b dyn Provider,
    ) -> Self {
        Self { variables, inits, locals: vec![None; locals], cost: 0, limit, provider }
    }

    pub fn charge(&mut self, cost: u64) -> Outcome<()> {
        self.cost = self.cost.wrapping_add(cost);
        if self.cost > self.limit { Err(Error::CostLimit) } else { Ok(()) }
    }

    pub fn eval(&mut self, plan: &'a Plan) -> Outcome<Value<'a>> {
        match plan {
            Plan::Const(value) => Ok(constant(value)),
            Plan::Path(path) => self.path(path, true),
            Plan::Logic(operands, decider) => self.logic(operands, *decider),
            Plan::Equal(operands, wanted) => self.equal(operands, *wanted),
            Plan::NotFalse(operand) => self.not_false(operand),
            Plan::Or(operands, is_value) => self.or(operands, *is_value),
            Plan::Call(call) => self.call(call),
            Plan::In(operand, constants) => self.eval(operand).map(|value| Value::Bool(constants.has(&value))),
            Plan::List(items) => self.list(items),
            Plan::Map(entries) => self.map(entries),
            Plan::Object(name, fields) => self.object(name, fields),
            Plan::Loop(each) => self.each(each),
            Plan::Gather(gather) => self.gather(gather),
        }
    }

    fn logic(&mut self, operands: &'a [Plan; 2], decider: bool) -> Outcome<Value<'a>> {
        let mut error = None;
        for operand in operands {
            match self.eval(operand) {
                Ok(Value::Bool(truth)) if truth == decider => return Ok(Value::Bool(decider)),
                Ok(Value::Bool(_)) => {}
                Err(Error::CostLimit) => return Err(Error::CostLimit),
                Ok(_) => {
                    error.get_or_insert(Error::no_such_overload());
                }
                Err(found) => {
                    error.get_or_insert(found);
                }
            }
        }
        error.map_or(Ok(Value::Bool(!decider)), Err)
    }

    fn equal(&mut self, operands: &'a [Plan; 2], wanted: bool) -> Outcome<Value<'a>> {
        let (left, right) = (self.eval(&operands[0]), self.eval(&operands[1]));
        if is_final(&left) || is_final(&right) {
            return Err(Error::CostLimit);
        }
        let rule = if wanted { cost::EQUALITY } else { cost::INEQUALITY };
        let sizes = [known(&left), known(&right)];
        self.charge(if is_cheap(&sizes) { 1 } else { (rule.actual)(&sizes, &Value::Null) })?;
        match (equal(&left?, &right?), wanted) {
            (Ok(truth), _) => Ok(Value::Bool(truth == wanted)),
            (Err(error), true) => Err(error),
            (Err(_), false) => Ok(Value::Bool(true)),
        }
    }

    fn not_false(&mut self, operand: &'a Plan) -> Outcome<Value<'a>> {
        let outcome = self.eval(operand);
        if is_final(&outcome) {
            return outcome;
        }
        self.charge(1)?;
        Ok(Value::Bool(!matches!(outcome, Ok(Value::Bool(false)))))
    }

    fn or(&mut self, operands: &'a [Plan; 2], is_value: bool) -> Outcome<Value<'a>> {
        match self.eval(&operands[0])? {
            Value::Optional(None) => self.eval(&operands[1]),
            Value::Optional(Some(value)) if is_value => Ok((*value).clone()),
            other => Ok(other),
        }
    }

    /// Returns the value of an item. `None` if the item is left out.
    fn item(&mut self, item: &'a Item, error: impl Fn(&Value<'a>) -> Error) -> Outcome<Option<Value<'a>>> {
        let value = self.eval(&item.value)?;
        if !item.is_optional {
            return Ok(Some(value));
        }
        match value {
            Value::Optional(value) => Ok(value.map(|value| (*value).clone())),
            other => Err(error(&other)),
        }
    }

    fn list(&mut self, items: &'a [Item]) -> Outcome<Value<'a>> {
        let mut values = Vec::with_capacity(items.len());
        let mut gathered = Ok(());
        for item in items {
            match self.item(item, item_error) {
                Ok(value) => values.extend(value),
                Err(error) => {
                    gathered = Err(error);
                    break;
                }
            }
        }
        self.made(LIST, gathered)?;
        Ok(Value::list(values))
    }

    /// Adds the cost of creating a value, which is the same if the creation fails.
    fn made(&mut self, cost: u64, gathered: Outcome<()>) -> Outcome<()> {
        if is_final(&gathered) {
            return gathered;
        }
        self.charge(cost)?;
        gathered
    }

    fn map(&mut self, entries: &'a [(Plan, Item)]) -> Outcome<Value<'a>> {
        let mut made = Entries::default();
        let gathered = entries.iter().try_for_each(|(key, item)| {
            let key = self.eval(key)?;
            match self.item(item, |value| entry_error(&key, value))? {
                Some(_) if matches!(key, Value::Bytes(_)) => Err(Error::new("unsupported key type: bytes")),
                Some(value) => {
                    made.insert(key, value);
                    Ok(())
                }
                None => {
                    made.remove(&key);
                    Ok(())
                }
            }
        });
        self.made(MAP, gathered)?;
        Ok(Value::Map(Map::Made(Arc::new(made))))
    }

    fn object(&mut self, object: &str, fields: &'a [(Arc<str>, Item)]) -> Outcome<Value<'a>> {
        let mut made = Entries::default();
        let gathered = fields.iter().try_for_each(|(name, item)| {
            let name = Value::String(Text::Borrowed(name));
            match self.item(item, |value| entry_error(&name, value))? {
                Some(value) => made.insert(name, value),
                None => made.remove(&name),
            }
            Ok(())
        });
        self.made(OBJECT, gathered)?;
        self.provider.make(object, Value::Map(Map::Made(Arc::new(made))))
    }

    fn each(&mut self, each: &'a Loop) -> Outcome<Value<'a>> {
        let range = self.eval(&each.range)?;
        self.locals[each.accumulator] = None;
        match (range, each.second) {
            (Value::List(list), None) => {
                for item in list.iter() {
                    if !self.turn(each, item)? {
                        break;
                    }
                }
            }
            (Value::Map(map), None) => {
                for (key, _) in map.iter() {
                    if !self.turn(each, Ok(key))? {
                        break;
                    }
                }
            }
            (Value::List(list), Some(second)) => {
                for (at, item) in list.iter().enumerate() {
                    self.locals[second] = Some(item);
                    if !self.turn(each, Ok(Value::Int(at as i64)))? {
                        break;
                    }
                }
            }
            (Value::Map(map), Some(second)) => {
                for (key, value) in map.iter() {
                    self.locals[second] = Some(value);
                    if !self.turn(each, Ok(key))? {
                        break;
                    }
                }
            }
            (other, second) => return Err(range_error(&other, second.is_some())),
        }
        self.eval(&each.result)
    }

    /// Runs one iteration of a loop. Returns whether to continue.
    fn turn(&mut self, each: &'a Loop, item: Outcome<Value<'a>>) -> Outcome<bool> {
        self.locals[each.variable] = Some(item);
        match self.eval(&each.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(Error::CostLimit) => return Err(Error::CostLimit),
            _ => {}
        }
        let next = self.eval(&each.step);
        if is_final(&next) {
            return Err(Error::CostLimit);
        }
        self.locals[each.accumulator] = Some(next);
        Ok(true)
    }

    /// Returns the value of an accumulator, which is created on first use.
    pub fn accumulator(&mut self, at: usize) -> Outcome<Value<'a>> {
        if let Some(outcome) = &self.locals[at] {
            return outcome.clone();
        }
        let made = match &self.inits[at] {
            Some(init) => self.eval(init),
            None => Err(Error::no_such_overload()),
        };
        if !is_final(&made) {
            self.locals[at] = Some(made.clone());
        }
        made
    }

    /// Adds to an accumulator in place, since nothing else refers to it.
    fn gather(&mut self, gather: &'a Gather) -> Outcome<Value<'a>> {
        let so_far = self.accumulator(gather.accumulator);
        if is_final(&so_far) {
            return so_far;
        }
        self.charge(1)?;
        drop(so_far);
        let mut added = Vec::with_capacity(gather.added.len());
        for part in &gather.added {
            added.push(self.eval(part));
        }
        if added.iter().any(is_final) {
            return Err(Error::CostLimit);
        }
        self.charge(1)?;
        let so_far = self.locals[gather.accumulator].take().unwrap_or_else(|| Err(Error::no_such_overload()))?;
        let added = added.into_iter().collect::<Outcome<Vec<Value<'a>>>>()?;
        if gather.is_list { append(so_far, added) } else { insert(so_far, added) }
    }
}

fn append<'a>(so_far: Value<'a>, added: Vec<Value<'a>>) -> Outcome<Value<'a>> {
    let mut added = added.into_iter();
    match (so_far, added.next()) {
        (Value::List(List::Made(mut items)), Some(Value::List(more))) => match Arc::get_mut(&mut items) {
            Some(place) => {
                for item in more.iter() {
                    place.push(item?);
                }
                Ok(Value::List(List::Made(items)))
            }
            None => Ok(Value::List(List::join(List::Made(items), more))),
        },
        (Value::List(items), Some(Value::List(more))) => Ok(Value::List(List::join(items, more))),
        _ => Err(Error::no_such_overload()),
    }
}

fn insert<'a>(so_far: Value<'a>, added: Vec<Value<'a>>) -> Outcome<Value<'a>> {
    let Value::Map(map) = so_far else { return Err(Error::no_such_overload()) };
    let mut entries = match map {
        Map::Made(entries) => entries,
        other => Arc::new(other.iter().map(|(key, value)| Ok((key, value?))).collect::<Outcome<Entries<'a>>>()?),
    };
    let place = Arc::make_mut(&mut entries);
    let mut put = |key: Value<'a>, value: Value<'a>| {
        if place.get(&key).is_some() {
            return Err(Error::new(format!("insert failed: key {} already exists", super::call::shown(&key))));
        }
        place.insert(key, value);
        Ok(())
    };
    let mut added = added.into_iter();
    match (added.next(), added.next()) {
        (Some(key), Some(value)) => put(key, value)?,
        (Some(Value::Map(more)), None) => {
            for (key, value) in more.iter() {
                put(key, value?)?;
            }
        }
        _ => return Err(Error::no_such_overload()),
    }
    Ok(Value::Map(Map::Made(entries)))
}

/// Returns a constant of the plan; borrows its text.
pub(super) fn constant<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(Text::Borrowed(text)),
        other => other.clone(),
    }
}

/// Returns the value from which the cost of a call is computed. An error counts as a value of size 1.
pub(super) fn known<'a>(outcome: &Outcome<Value<'a>>) -> Value<'a> {
    match outcome {
        Ok(value) => value.clone(),
        Err(_) => Value::Null,
    }
}

/// Returns whether a comparison costs 1 because one side is no text, list or map.
fn is_cheap(values: &[Value<'_>; 2]) -> bool {
    values
        .iter()
        .any(|value| matches!(value, Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)))
        && !values.iter().any(|value| value.size() == Some(0))
}
