//! Converts checked expressions to plans.

use std::sync::Arc;

use super::{Gather, Item, Loop, Path, Plan, PlannedCall, Root, Selection, SelectionKey, fold};
use crate::check::{Checked, Reference};
use crate::environment::{Environment, OverloadDecl};
use crate::error::{Error, Outcome};
use crate::syntax::{self, Expr, ExprKind, Item as Element};
use crate::value::Value;

/// The parts of a plan besides its root.
#[derive(Debug, Default)]
pub struct Planned {
    /// Number of variables of loops.
    pub locals: usize,
    /// Initial values of accumulators, by their slots among the variables of loops.
    pub inits: Vec<Option<Plan>>,
    /// Whether it constructs objects.
    pub makes_objects: bool,
}

/// Plans an expression. `Err` if a constant cannot be converted, or a pattern is invalid.
///
/// `checked` is the result of the checker. If it is `None`, the expression is planned by names alone.
pub fn plan(
    root: &Expr,
    checked: Option<&Checked>,
    environment: &Environment,
    optimize: bool,
) -> Outcome<(Plan, Planned)> {
    let mut planner = Planner { checked, environment, optimize, scopes: Vec::new(), planned: Planned::default() };
    let root = planner.plan(root)?;
    Ok((root, planner.planned))
}

struct Planner<'p> {
    checked: Option<&'p Checked>,
    environment: &'p Environment,
    optimize: bool,
    /// Variables of loops, the innermost last.
    scopes: Vec<(Arc<str>, Root)>,
    planned: Planned,
}

type Made = Outcome<Plan>;

impl Planner<'_> {
    fn plan(&mut self, expr: &Expr) -> Made {
        match &expr.kind {
            ExprKind::Unspecified => Err(Error::new("unsupported expr")),
            ExprKind::Literal(value) => Ok(Plan::Const(value.clone())),
            ExprKind::Ident(name) => self.ident(expr, name),
            ExprKind::Select(select) => self.select(expr, select),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(items) => self.list(items),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Object(name, fields) => self.object(name, fields),
            ExprKind::Loop(each) => self.each(each),
        }
    }

    fn reference(&self, expr: &Expr) -> Option<&Reference> {
        self.checked.and_then(|checked| checked.reference(expr.id))
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Made {
        if let Some(Reference::Ident(name, constant)) = self.reference(expr) {
            let (name, constant) = (name.clone(), constant.clone());
            return match constant {
                Some(value) => Ok(Plan::Const(value)),
                None => self.named(&name),
            };
        }
        self.maybe(name)
    }

    fn local(&self, name: &str) -> Option<Root> {
        let (_, root) = self.scopes.iter().rev().find(|(each, _)| **each == *name)?;
        match root {
            Root::Local(at) => Some(Root::Local(*at)),
            Root::Accumulator(at) => Some(Root::Accumulator(*at)),
            _ => None,
        }
    }

    fn named(&self, name: &str) -> Made {
        let root = match (self.local(name), self.environment.slot(name)) {
            (Some(root), _) => root,
            (None, Some(slot)) => Root::Variable(slot, name.into()),
            (None, None) => {
                let of = self.environment.type_named(name);
                return of
                    .map(|of| Plan::Const(Value::Type(of)))
                    .ok_or_else(|| Error::new(format!("reference to undefined type: {name}")));
            }
        };
        Ok(Plan::Path(Path { root, selections: Vec::new(), is_test: false }))
    }

    /// Plans a name in an expression that was not checked. If nothing has this name, its evaluation is an error.
    fn maybe(&self, name: &str) -> Made {
        let candidates = self.environment.candidates(name);
        if let Some(root) = candidates.iter().find_map(|name| self.local(name)) {
            return Ok(Plan::Path(Path { root, selections: Vec::new(), is_test: false }));
        }
        if let Some(name) = candidates.iter().find(|name| self.environment.slot(name).is_some()) {
            return self.named(name);
        }
        if let Some(of) = candidates.iter().find_map(|name| self.environment.type_named(name)) {
            return Ok(Plan::Const(Value::Type(of)));
        }
        let root = Root::Maybe(candidates.join(", ").into());
        Ok(Plan::Path(Path { root, selections: Vec::new(), is_test: false }))
    }

    fn select(&mut self, expr: &Expr, select: &syntax::Select) -> Made {
        if let Some(Reference::Ident(..)) = self.reference(expr) {
            return self.ident(expr, "");
        }
        if self.checked.is_none()
            && let Some(name) = expr.qualified_name()
            && self.local(name.split('.').next().unwrap_or("")).is_none()
            && self
                .environment
                .candidates(&name)
                .iter()
                .any(|name| self.environment.slot(name).is_some() || self.environment.type_named(name).is_some())
        {
            return self.maybe(&name);
        }
        let operand = self.plan(&select.operand)?;
        let key = SelectionKey::Const(Value::string(select.field.clone()));
        let mut path = into_path(operand);
        path.selections.push(Selection { key, is_optional: false });
        if select.is_test {
            path.is_test = true;
        }
        Ok(Plan::Path(path))
    }

    fn call(&mut self, expr: &Expr, call: &syntax::Call) -> Made {
        let (receiver, function, overloads, is_resolved) = self.function(expr, call);
        let mut arguments = Vec::with_capacity(call.arguments.len() + 1);
        if let Some(receiver) = receiver {
            arguments.push(self.plan(receiver)?);
        }
        let gathers = self.gathers(call, &function);
        for argument in &call.arguments {
            arguments.push(self.plan(argument)?);
        }
        if let Some(accumulator) = gathers {
            arguments.remove(0);
            let is_list = &*function == "_+_";
            return Ok(Plan::Gather(Box::new(Gather { accumulator, added: arguments, is_list })));
        }
        match (&*function, arguments.len()) {
            ("_&&_" | "_||_", 2) => Ok(Plan::Logic(pair(arguments), &*function == "_||_")),
            ("_?_:_", 3) => {
                let root = Root::Choice(triple(arguments));
                Ok(Plan::Path(Path { root, selections: Vec::new(), is_test: false }))
            }
            ("_==_" | "_!=_", 2) => Ok(Plan::Equal(pair(arguments), &*function == "_==_")),
            ("_[_]", 2) => Ok(index(arguments, false)),
            ("_?._" | "_[?_]", 2) => Ok(index(arguments, true)),
            ("@not_strictly_false", 1) => Ok(Plan::NotFalse(Box::new(arguments.remove(0)))),
            ("or" | "orValue", 2) => Ok(Plan::Or(pair(arguments), &*function == "orValue")),
            _ => {
                let call = PlannedCall { function, overloads, is_resolved, prepared: None, arguments };
                fold::call(call, self.optimize)
            }
        }
    }

    /// Returns the slot of the accumulator to which the call adds. `None` if the call does anything else.
    fn gathers(&self, call: &syntax::Call, function: &str) -> Option<usize> {
        let first = call.arguments.first()?.as_ident()?;
        let adds = match function {
            "_+_" => matches!(call.arguments.get(1).map(|each| &each.kind), Some(ExprKind::List(_))),
            "cel.@mapInsert" => true,
            _ => false,
        };
        match self.local(first) {
            Some(Root::Accumulator(at)) if adds && **first == *syntax::ACCUMULATOR => Some(at),
            _ => None,
        }
    }

    /// Returns the function that a call means, its receiver, and the possible overloads.
    fn function<'e>(
        &self,
        expr: &Expr,
        call: &'e syntax::Call,
    ) -> (Option<&'e Expr>, Arc<str>, Vec<Arc<OverloadDecl>>, bool) {
        let receiver = call.receiver.as_ref();
        if let Some(checked) = self.checked {
            let meant = checked.overloads(expr.id);
            let function = self.environment.function(&call.function);
            return match (meant, function) {
                ([only], _) => (receiver, call.function.clone(), vec![only.clone()], true),
                (_, Some(function)) => (receiver, call.function.clone(), function.overloads.clone(), false),
                (meant, None) => (receiver, call.function.clone(), meant.to_vec(), false),
            };
        }
        let find = |name: &str| {
            self.environment.candidates(name).into_iter().find_map(|name| self.environment.function(&name))
        };
        let qualified = receiver.and_then(Expr::qualified_name).map(|prefix| format!("{prefix}.{}", call.function));
        if let Some(function) = qualified.and_then(|name| find(&name)) {
            return (None, function.name.clone(), function.overloads.clone(), false);
        }
        match find(&call.function) {
            Some(function) => (receiver, function.name.clone(), function.overloads.clone(), false),
            None => (receiver, call.function.trim_start_matches('.').into(), Vec::new(), false),
        }
    }

    fn list(&mut self, items: &[Element]) -> Made {
        let items = items
            .iter()
            .map(|item| Ok(Item { value: self.plan(&item.value)?, is_optional: item.is_optional }))
            .collect::<Outcome<Vec<Item>>>()?;
        Ok(if self.optimize { fold::list(items) } else { Plan::List(items) })
    }

    fn map(&mut self, entries: &[syntax::Entry<Expr>]) -> Made {
        let entries = entries
            .iter()
            .map(|entry| {
                let key = self.plan(&entry.key)?;
                Ok((key, Item { value: self.plan(&entry.value)?, is_optional: entry.is_optional }))
            })
            .collect::<Outcome<Vec<(Plan, Item)>>>()?;
        Ok(if self.optimize { fold::map(entries) } else { Plan::Map(entries) })
    }

    fn object(&mut self, name: &Arc<str>, fields: &[syntax::Entry<Arc<str>>]) -> Made {
        let candidates = self.environment.candidates(name);
        let Some(name) = candidates.iter().find(|name| self.environment.has_object(name)) else {
            return Err(Error::new(format!("unknown type: {name}")));
        };
        let fields = fields
            .iter()
            .map(|field| {
                let value = self.plan(&field.value)?;
                Ok((field.key.clone(), Item { value, is_optional: field.is_optional }))
            })
            .collect::<Outcome<Vec<_>>>()?;
        self.planned.makes_objects = true;
        Ok(Plan::Object(name.as_str().into(), fields))
    }

    fn new_local(&mut self) -> usize {
        self.planned.inits.push(None);
        self.planned.locals += 1;
        self.planned.locals - 1
    }

    fn each(&mut self, each: &syntax::Loop) -> Made {
        let init = self.plan(&each.init)?;
        let range = self.plan(&each.range)?;
        let accumulator = self.new_local();
        self.planned.inits[accumulator] = Some(init);
        let outer = self.scopes.len();
        self.scopes.push((each.accumulator.clone(), Root::Accumulator(accumulator)));
        let variable = self.new_local();
        self.scopes.push((each.variable.clone(), Root::Local(variable)));
        let second = each.second.as_ref().map(|name| {
            let at = self.new_local();
            self.scopes.push((name.clone(), Root::Local(at)));
            at
        });
        let condition = self.plan(&each.condition)?;
        let step = self.plan(&each.step)?;
        self.scopes.truncate(outer + 1);
        let result = self.plan(&each.result)?;
        self.scopes.truncate(outer);
        Ok(Plan::Loop(Box::new(Loop { range, variable, second, accumulator, condition, step, result })))
    }
}

/// Converts a plan to a path that begins with it, unless it is one already.
fn into_path(plan: Plan) -> Path {
    match plan {
        Plan::Path(path) if !path.is_test => path,
        other => Path { root: Root::Value(Box::new(other)), selections: Vec::new(), is_test: false },
    }
}

fn index(arguments: Vec<Plan>, is_optional: bool) -> Plan {
    let [operand, key] = *pair(arguments);
    let key = match key {
        Plan::Const(value) if is_key(&value) => SelectionKey::Const(value),
        Plan::Path(path) if !path.is_test => SelectionKey::Path(path),
        other => SelectionKey::Value(other),
    };
    let mut path = into_path(operand);
    path.selections.push(Selection { key, is_optional });
    Plan::Path(path)
}

fn is_key(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
}

fn pair(arguments: Vec<Plan>) -> Box<[Plan; 2]> {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or(Plan::Const(Value::Null));
    Box::new([next(), next()])
}

fn triple(arguments: Vec<Plan>) -> Box<[Plan; 3]> {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or(Plan::Const(Value::Null));
    Box::new([next(), next(), next()])
}
