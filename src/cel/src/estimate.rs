//! Estimates the cost of a checked expression from its text and from the sizes that a schema bounds.

use std::collections::HashMap;
use std::sync::Arc;

use crate::check::Checked;
use crate::cost::{CallEstimate, CostRange, LIST, MAP, Node, Nodes, OBJECT, SizeRange, SizeSource, VariableStep};
use crate::environment::OverloadDecl;
use crate::syntax::{ACCUMULATOR, Call, Expr, ExprId, ExprKind, Loop};
use crate::types::Type;
use crate::value::Value;

/// Returns the range of the cost of evaluating the expression.
pub fn estimate(checked: &Checked, sizes: &dyn SizeSource) -> CostRange {
    let mut estimator = Estimator {
        checked,
        sizes,
        paths: HashMap::new(),
        locals: Vec::new(),
        known: HashMap::new(),
        entries: HashMap::new(),
    };
    estimator.cost(&checked.ast.root)
}

/// The sizes of the entries of a list or a map.
#[derive(Clone, Copy)]
struct EntrySizes {
    is_list: bool,
    key: SizeRange,
    value: SizeRange,
}

impl EntrySizes {
    fn union(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

/// A variable of a loop.
struct Local {
    name: Arc<str>,
    path: Option<Vec<VariableStep>>,
    size: Option<SizeRange>,
    entries: Option<EntrySizes>,
}

struct Estimator<'c> {
    checked: &'c Checked,
    sizes: &'c dyn SizeSource,
    paths: HashMap<ExprId, Vec<VariableStep>>,
    locals: Vec<Local>,
    known: HashMap<ExprId, SizeRange>,
    entries: HashMap<ExprId, EntrySizes>,
}

const ONE: CostRange = CostRange::fixed(1);

impl Estimator<'_> {
    fn cost(&mut self, expr: &Expr) -> CostRange {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Unspecified => CostRange::default(),
            ExprKind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Some(vec![VariableStep::Name(name.clone())]),
                };
                self.paths.extend(path.map(|path| (expr.id, path)));
                ONE
            }
            ExprKind::Select(select) => {
                let sum = self.cost(&select.operand);
                if select.is_test {
                    return sum;
                }
                let mut path = self.path(&select.operand).unwrap_or_default();
                path.push(VariableStep::Name(select.field.clone()));
                self.paths.insert(expr.id, path);
                match self.checked.type_of(select.operand.id) {
                    Type::Map(_) | Type::Object(_) | Type::Param(_) => sum.add(ONE),
                    _ => sum,
                }
            }
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(items) => {
                let mut sum = CostRange::fixed(LIST);
                let mut size = SizeRange::new(if items.is_empty() { 0 } else { u64::MAX }, 0);
                for item in items {
                    sum = sum.add(self.cost(&item.value));
                    size = size.union(self.size_or_unknown(&item.value));
                }
                self.entries.insert(expr.id, EntrySizes { is_list: true, key: SizeRange::fixed(1), value: size });
                sum
            }
            ExprKind::Map(entries) => {
                let mut sum = CostRange::fixed(MAP);
                let none = SizeRange::new(if entries.is_empty() { 0 } else { u64::MAX }, 0);
                let mut sizes = EntrySizes { is_list: false, key: none, value: none };
                for entry in entries {
                    sum = sum.add(self.cost(&entry.key)).add(self.cost(&entry.value));
                    sizes.key = sizes.key.union(self.size_or_unknown(&entry.key));
                    sizes.value = sizes.value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, sizes);
                sum
            }
            ExprKind::Object(_, fields) => {
                fields.iter().fold(CostRange::fixed(OBJECT), |sum, field| sum.add(self.cost(&field.value)))
            }
            ExprKind::Loop(each) if is_bind(each) => self.bind(expr, each),
            ExprKind::Loop(each) => self.each(expr, each),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| *local.name == *name)
    }

    fn path(&self, expr: &Expr) -> Option<Vec<VariableStep>> {
        match expr.as_ident().and_then(|name| self.local(name)) {
            Some(local) => local.path.clone(),
            None => self.paths.get(&expr.id).cloned(),
        }
    }

    /// Returns the size of the expression's value. Returns `None` if it is unknown.
    fn size(&mut self, expr: &Expr) -> Option<SizeRange> {
        if let Some(size) = self.known.get(&expr.id) {
            return Some(*size);
        }
        let written = match &expr.kind {
            ExprKind::Literal(value) => Some(value.size().unwrap_or(1)),
            ExprKind::List(items) => Some(items.len() as u64),
            ExprKind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        };
        if let Some(size) = written {
            return Some(SizeRange::fixed(size));
        }
        let of = self.checked.type_of(expr.id);
        let node = Node { path: self.path(expr), of: of.clone(), literal: None, size: None };
        if let Some(size) = self.sizes.size(&node) {
            self.known.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(of) {
            return Some(SizeRange::fixed(1));
        }
        expr.as_ident().and_then(|name| self.local(name)?.size)
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> SizeRange {
        self.size(expr).unwrap_or(SizeRange::UNKNOWN)
    }

    fn entry_sizes(&self, expr: &Expr) -> Option<EntrySizes> {
        match self.entries.get(&expr.id) {
            Some(sizes) => Some(*sizes),
            None => expr.as_ident().and_then(|name| self.local(name)?.entries),
        }
    }

    fn copy_sizes(&mut self, to: ExprId, from: &Expr) {
        let size = self.size(from);
        self.known.extend(size.map(|size| (to, size)));
        let entries = self.entry_sizes(from);
        self.entries.extend(entries.map(|sizes| (to, sizes)));
    }

    fn node<'e>(&mut self, expr: &'e Expr) -> Node<'e> {
        let is_hidden =
            |path: &Vec<VariableStep>| matches!(path.first(), Some(VariableStep::Name(name)) if &**name == ACCUMULATOR);
        let path = self.path(expr).filter(|path| !is_hidden(path));
        let size = self.size(expr);
        Node { path, of: self.checked.type_of(expr.id).clone(), literal: expr.as_literal(), size }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> CostRange {
        if &*call.function == "dyn"
            && let [argument] = &call.arguments[..]
        {
            let cost = self.cost(argument);
            self.copy_sizes(expr.id, argument);
            return cost.add(ONE);
        }
        let mut costs = Vec::with_capacity(call.arguments.len());
        let mut nodes = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            costs.push(self.cost(argument));
            nodes.push(self.node(argument));
        }
        let overloads = self.checked.overloads(expr.id).to_vec();
        if overloads.is_empty() {
            return CostRange::default();
        }
        let mut sum = CostRange::default();
        let receiver = call.receiver.as_ref().map(|receiver| {
            sum = self.cost(receiver);
            self.node(receiver)
        });
        let mut all = CostRange::new(u64::MAX, 0);
        let mut result: Option<SizeRange> = None;
        for overload in &overloads {
            let estimate = self.overload(expr, call, overload, receiver.as_ref(), &nodes, &costs);
            all = all.union(estimate.cost);
            if let Some(size) = estimate.size {
                result = Some(result.map_or(size, |so_far| so_far.union(size)));
            }
            let step = match &*overload.id {
                "index_list" => Some(VariableStep::Items),
                "index_map" => Some(VariableStep::Values),
                _ => None,
            };
            if let (Some(step), Some(operand)) = (step, call.arguments.first()) {
                result = self.entry_sizes(operand).map(|sizes| sizes.value);
                let mut path = self.path(operand).unwrap_or_default();
                path.push(step);
                self.paths.insert(expr.id, path);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        self.known.extend(result.map(|size| (expr.id, size)));
        sum.add(all)
    }

    fn overload(
        &mut self,
        expr: &Expr,
        call: &Call,
        overload: &OverloadDecl,
        receiver: Option<&Node<'_>>,
        nodes: &[Node<'_>],
        costs: &[CostRange],
    ) -> CallEstimate {
        let unknown = |node: &Node<'_>| node.size.unwrap_or(SizeRange::UNKNOWN);
        match (&*overload.id, costs) {
            ("logical_and" | "logical_or", [left, right]) => {
                return CallEstimate::of(CostRange::new(left.min, left.add(*right).max));
            }
            ("conditional", [condition, yes, no]) => {
                let size = unknown(&nodes[1]).union(unknown(&nodes[2]));
                let sizes = self.entry_sizes(&call.arguments[1]).zip(self.entry_sizes(&call.arguments[2]));
                self.entries.extend(sizes.map(|(yes, no)| (expr.id, yes.union(no))));
                return CallEstimate::sized(condition.add(yes.union(*no)), size);
            }
            ("add_list" | "add_string" | "add_bytes", [_, _]) => {
                let sizes = self.entry_sizes(&call.arguments[0]).zip(self.entry_sizes(&call.arguments[1]));
                self.entries.extend(sizes.map(|(one, other)| (expr.id, one.union(other))));
            }
            _ => {}
        }
        let arguments = costs.iter().fold(CostRange::default(), |sum, cost| sum.add(*cost));
        let asked = Nodes { receiver, arguments: nodes, sizes: self.sizes };
        let own = overload.native.and_then(|native| (native.cost.estimate)(&asked));
        let own = own.unwrap_or(CallEstimate::of(ONE));
        CallEstimate { cost: own.cost.add(arguments), size: own.size }
    }

    fn push(
        &mut self,
        name: &Arc<str>,
        path: Option<Vec<VariableStep>>,
        size: Option<SizeRange>,
        entries: Option<EntrySizes>,
    ) {
        self.locals.push(Local { name: name.clone(), path, size, entries });
    }

    fn push_bound(&mut self, name: &Arc<str>, value: &Expr) {
        let (path, size, entries) = (self.path(value), self.size(value), self.entry_sizes(value));
        self.push(name, path, size, entries);
    }

    /// Declares a variable of a loop over `range`: its keys or indexes, or its values or items.
    fn push_part(&mut self, name: &Arc<str>, range: &Expr, is_value: bool) {
        let sizes = self.entry_sizes(range);
        let is_list =
            sizes.map_or_else(|| matches!(self.checked.type_of(range.id), Type::List(_)), |sizes| sizes.is_list);
        let size = sizes.map(|sizes| if is_value { sizes.value } else { sizes.key });
        let step = match (is_list, is_value) {
            (true, true) => VariableStep::Items,
            (true, false) => VariableStep::Indices,
            (false, true) => VariableStep::Values,
            (false, false) => VariableStep::Keys,
        };
        let mut path = self.path(range).unwrap_or_default();
        path.push(step);
        self.push(name, Some(path), size, None);
    }

    fn each(&mut self, expr: &Expr, each: &Loop) -> CostRange {
        let mut sum = self.cost(&each.range).add(self.cost(&each.init));
        let outer = self.locals.len();
        self.push_bound(&each.accumulator, &each.init);
        if let Some(second) = &each.second {
            self.push_part(&each.variable, &each.range, false);
            self.push_part(second, &each.range, true);
        } else {
            let sizes = self.entry_sizes(&each.range);
            let of = self.checked.type_of(each.range.id);
            let is_list = sizes.map_or(matches!(of, Type::List(_)), |sizes| sizes.is_list);
            self.push_part(&each.variable, &each.range, is_list);
        }
        let turn = self.cost(&each.condition);
        let turn = self.cost(&each.step).add(turn);
        self.locals.truncate(outer + 1);
        sum = sum.add(self.cost(&each.result));
        self.locals.truncate(outer);
        let count = self.size_or_unknown(&each.range);
        match &each.init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&each.init);
                self.known.extend(size.map(|size| (expr.id, size)));
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.known.insert(expr.id, count);
                let sizes = self.entry_sizes(&each.step);
                self.entries.extend(sizes.map(|sizes| (expr.id, sizes)));
            }
            _ => {}
        }
        sum.add(count.times(turn))
    }

    fn bind(&mut self, expr: &Expr, each: &Loop) -> CostRange {
        let sum = self.cost(&each.range).add(self.cost(&each.init));
        let outer = self.locals.len();
        self.push_bound(&each.accumulator, &each.init);
        let sum = sum.add(self.cost(&each.result));
        self.locals.truncate(outer);
        self.copy_sizes(expr.id, &each.result);
        sum
    }
}

/// Returns whether the loop has no iterations and only binds a name to a value.
fn is_bind(each: &Loop) -> bool {
    matches!(&each.range.kind, ExprKind::List(items) if items.is_empty())
        && matches!(each.condition.as_literal(), Some(Value::Bool(false)))
}

/// Returns whether all values of a type have the size 1.
fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Wrapper(of) => is_scalar(of),
        other => other.optional_of().is_some_and(is_scalar),
    }
}
