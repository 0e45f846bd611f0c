//! Macros: calls that expand to loops and tests of presence.

use std::sync::Arc;

use super::ast::{Call, Entry, Expr, ExprId, ExprKind, Item, Loop, Select};
use super::build::Builder;
use crate::value::Value;

/// The accumulator variable of loops that macros create.
pub const ACCUMULATOR: &str = "@result";
/// Its former name, which is still reserved.
const OLD_ACCUMULATOR: &str = "__result__";
/// The variable of a loop without iterations.
const UNUSED: &str = "#unused";

/// The variable of a list that is sorted.
const SORTED: &str = "@__sortBy_input__";

/// The result of expanding a call.
pub(super) enum Expanded {
    /// The expansion of a macro.
    Expr(Expr),
    /// The call is no macro.
    Not(Option<Expr>, Vec<Expr>),
    /// The call is a macro with an error at this part.
    Error(ExprId, String),
}

type Wrong = (ExprId, String);
type Made = Result<Expr, Wrong>;

/// Expands one call. The parts of the expansion get the position of the call's parenthesis.
pub(super) struct Macros<'m, 't, 'a> {
    builder: &'m mut Builder<'t, 'a>,
    call: ExprId,
}

impl<'m, 't, 'a> Macros<'m, 't, 'a> {
    pub fn new(builder: &'m mut Builder<'t, 'a>, call: ExprId) -> Self {
        Self { builder, call }
    }

    pub fn expand(mut self, function: &str, receiver: Option<Expr>, arguments: Vec<Expr>) -> Expanded {
        let dialect = self.builder.dialect;
        let two = dialect.two_variables;
        let made = match (function, receiver, arguments) {
            (_, receiver, arguments) if !dialect.macros => return Expanded::Not(receiver, arguments),
            ("has", None, arguments) if arguments.len() == 1 => self.has(arguments),
            ("existsOne", Some(range), arguments) if arguments.len() == 2 && dialect.exists_one => {
                self.quantify(function, range, arguments)
            }
            ("all" | "exists" | "exists_one", Some(range), arguments) if arguments.len() == 2 => {
                self.quantify(function, range, arguments)
            }
            ("all" | "exists" | "exists_one" | "existsOne", Some(range), arguments) if arguments.len() == 3 && two => {
                self.quantify(function, range, arguments)
            }
            ("map", Some(range), arguments) if matches!(arguments.len(), 2 | 3) => self.map(range, arguments),
            ("filter", Some(range), arguments) if arguments.len() == 2 => self.filter(range, arguments),
            ("transformList", Some(range), arguments) if matches!(arguments.len(), 3 | 4) && two => {
                self.transform(range, arguments, TransformOutput::List)
            }
            ("transformMap", Some(range), arguments) if matches!(arguments.len(), 3 | 4) && two => {
                self.transform(range, arguments, TransformOutput::Map)
            }
            ("transformMapEntry", Some(range), arguments) if matches!(arguments.len(), 3 | 4) && two => {
                self.transform(range, arguments, TransformOutput::Entries)
            }
            ("optMap" | "optFlatMap", Some(target), arguments) if arguments.len() == 2 && dialect.optional_syntax => {
                self.optional(function, target, arguments)
            }
            ("sortBy", Some(range), arguments) if arguments.len() == 2 && dialect.sort_by => {
                self.sort_by(range, arguments)
            }
            ("bind", Some(receiver), arguments)
                if arguments.len() == 3 && dialect.bind && is_named(&receiver, "cel") =>
            {
                self.bind(arguments)
            }
            (_, receiver, arguments) => return Expanded::Not(receiver, arguments),
        };
        match made {
            Ok(expr) => Expanded::Expr(expr),
            Err((at, text)) => Expanded::Error(at, text),
        }
    }

    fn make(&mut self, kind: ExprKind) -> Expr {
        let offset = self.builder.positions.offset(self.call);
        Expr { id: self.builder.positions.add(offset), kind }
    }

    fn literal(&mut self, value: Value<'static>) -> Expr {
        self.make(ExprKind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.make(ExprKind::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, arguments: Vec<Expr>) -> Expr {
        self.make(ExprKind::Call(Box::new(Call { function: function.into(), receiver: None, arguments })))
    }

    fn member(&mut self, function: &str, receiver: Expr) -> Expr {
        let call = Call { function: function.into(), receiver: Some(receiver), arguments: Vec::new() };
        self.make(ExprKind::Call(Box::new(call)))
    }

    fn list(&mut self, items: Vec<Expr>) -> Expr {
        let items = items.into_iter().map(|value| Item { value, is_optional: false }).collect();
        self.make(ExprKind::List(items))
    }

    fn has(&mut self, arguments: Vec<Expr>) -> Made {
        let [argument] = fixed(arguments)?;
        let id = argument.id;
        match argument.kind {
            ExprKind::Select(select) => {
                let select = Select { is_test: true, ..*select };
                Ok(self.make(ExprKind::Select(Box::new(select))))
            }
            _ => Err((id, "invalid argument to has() macro".to_owned())),
        }
    }

    /// Returns the variables of a loop, and the arguments after them.
    fn variables(&self, mut arguments: Vec<Expr>, count: usize, wrong: &str) -> Result<(Variables, Vec<Expr>), Wrong> {
        let rest = arguments.split_off(count.min(arguments.len()));
        let mut names = Vec::new();
        for argument in &arguments {
            names.push(argument.as_ident().cloned().ok_or_else(|| (argument.id, wrong.to_owned()))?);
        }
        if let ([first, second], [_, argument]) = (&names[..], &arguments[..])
            && first == second
        {
            return Err((argument.id, format!("duplicate variable name: {first}")));
        }
        for (name, argument) in names.iter().zip(&arguments) {
            if matches!(&**name, ACCUMULATOR | OLD_ACCUMULATOR) {
                return Err((argument.id, "iteration variable overwrites accumulator variable".to_owned()));
            }
        }
        let mut names = names.into_iter();
        let first = names.next().unwrap_or_else(|| UNUSED.into());
        Ok((Variables { first, second: names.next() }, rest))
    }

    fn quantify(&mut self, function: &str, range: Expr, arguments: Vec<Expr>) -> Made {
        let count = arguments.len() - 1;
        let (variables, rest) = self.variables(arguments, count, "argument must be a simple name")?;
        let [predicate] = fixed(rest)?;
        let (init, condition, step, result);
        match function {
            "all" => {
                init = self.literal(Value::Bool(true));
                let so_far = self.accumulator();
                condition = self.call("@not_strictly_false", vec![so_far]);
                let so_far = self.accumulator();
                step = self.call("_&&_", vec![so_far, predicate]);
                result = self.accumulator();
            }
            "exists" => {
                init = self.literal(Value::Bool(false));
                let so_far = self.accumulator();
                let not_so_far = self.call("!_", vec![so_far]);
                condition = self.call("@not_strictly_false", vec![not_so_far]);
                let so_far = self.accumulator();
                step = self.call("_||_", vec![so_far, predicate]);
                result = self.accumulator();
            }
            _ => {
                init = self.literal(Value::Int(0));
                condition = self.literal(Value::Bool(true));
                let (so_far, one) = (self.accumulator(), self.literal(Value::Int(1)));
                let more = self.call("_+_", vec![so_far, one]);
                let so_far = self.accumulator();
                step = self.call("_?_:_", vec![predicate, more, so_far]);
                let (so_far, one) = (self.accumulator(), self.literal(Value::Int(1)));
                result = self.call("_==_", vec![so_far, one]);
            }
        }
        Ok(self.looped(range, variables, init, condition, step, result))
    }

    fn looped(
        &mut self,
        range: Expr,
        variables: Variables,
        init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
    ) -> Expr {
        let Variables { first: variable, second } = variables;
        let accumulator = ACCUMULATOR.into();
        self.make(ExprKind::Loop(Box::new(Loop {
            range,
            variable,
            second,
            accumulator,
            init,
            condition,
            step,
            result,
        })))
    }

    /// Returns a loop that gathers the values that `step` adds in the iterations for which `filter` is true.
    fn gather(&mut self, range: Expr, variables: Variables, init: Expr, step: Expr, filter: Option<Expr>) -> Expr {
        let condition = self.literal(Value::Bool(true));
        let step = match filter {
            Some(filter) => {
                let so_far = self.accumulator();
                self.call("_?_:_", vec![filter, step, so_far])
            }
            None => step,
        };
        let result = self.accumulator();
        self.looped(range, variables, init, condition, step, result)
    }

    fn map(&mut self, range: Expr, arguments: Vec<Expr>) -> Made {
        let (variables, mut rest) = self.variables(arguments, 1, "argument is not an identifier")?;
        let made = rest.pop();
        let [made] = fixed(made.into_iter().collect())?;
        let init = self.list(Vec::new());
        let (so_far, item) = (self.accumulator(), self.list(vec![made]));
        let step = self.call("_+_", vec![so_far, item]);
        Ok(self.gather(range, variables, init, step, rest.pop()))
    }

    fn filter(&mut self, range: Expr, arguments: Vec<Expr>) -> Made {
        let item = arguments[0].clone();
        let (variables, mut rest) = self.variables(arguments, 1, "argument is not an identifier")?;
        let init = self.list(Vec::new());
        let (so_far, item) = (self.accumulator(), self.list(vec![item]));
        let step = self.call("_+_", vec![so_far, item]);
        Ok(self.gather(range, variables, init, step, rest.pop()))
    }

    fn transform(&mut self, range: Expr, arguments: Vec<Expr>, output: TransformOutput) -> Made {
        let (variables, mut rest) = self.variables(arguments, 2, "argument must be a simple name")?;
        let made = rest.pop();
        let [made] = fixed(made.into_iter().collect())?;
        let so_far = self.accumulator();
        let step = match output {
            TransformOutput::List => {
                let item = self.list(vec![made]);
                self.call("_+_", vec![so_far, item])
            }
            TransformOutput::Map => {
                let key = self.ident(&variables.first);
                self.call("cel.@mapInsert", vec![so_far, key, made])
            }
            TransformOutput::Entries => self.call("cel.@mapInsert", vec![so_far, made]),
        };
        let init = match output {
            TransformOutput::List => self.list(Vec::new()),
            _ => self.make(ExprKind::Map(Vec::new())),
        };
        Ok(self.gather(range, variables, init, step, rest.pop()))
    }

    fn optional(&mut self, function: &str, target: Expr, arguments: Vec<Expr>) -> Made {
        let [name, body] = fixed(arguments)?;
        let Some(variable) = name.as_ident().cloned() else {
            return Err((name.id, format!("{function}() variable name must be a simple identifier")));
        };
        let copy = self.copy(&target);
        let has_value = self.member("hasValue", target);
        let value = self.member("value", copy);
        let bound = self.bound(variable, value, body);
        let some = if function == "optMap" { self.call("optional.of", vec![bound]) } else { bound };
        let none = self.call("optional.none", Vec::new());
        Ok(self.call("_?_:_", vec![has_value, some, none]))
    }

    fn bind(&mut self, arguments: Vec<Expr>) -> Made {
        let [name, value, body] = fixed(arguments)?;
        let Some(variable) = name.as_ident().cloned() else {
            return Err((name.id, "cel.bind() variable names must be simple identifiers".to_owned()));
        };
        Ok(self.bound(variable, value, body))
    }

    /// Expands `sortBy`: sorts a list by the keys that a loop computes from its items.
    fn sort_by(&mut self, range: Expr, arguments: Vec<Expr>) -> Made {
        if matches!(range.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Object(..)) {
            let text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err((range.id, text.to_owned()));
        }
        let input = self.ident(SORTED);
        let keys = self.map(input, arguments)?;
        let receiver = Some(self.ident(SORTED));
        let call = Call { function: "@sortByAssociatedKeys".into(), receiver, arguments: vec![keys] };
        let sorted = self.make(ExprKind::Call(Box::new(call)));
        Ok(self.bound(SORTED.into(), range, sorted))
    }

    /// Returns a loop without iterations, whose accumulator is the bound variable.
    fn bound(&mut self, accumulator: Arc<str>, init: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Value::Bool(false));
        let step = self.ident(&accumulator);
        let variable = UNUSED.into();
        let made = Loop { range, variable, second: None, accumulator, init, condition, step, result };
        self.make(ExprKind::Loop(Box::new(made)))
    }

    /// Returns a copy of the expression with new numbers.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let id = self.builder.positions.add(self.builder.positions.offset(expr.id));
        let kind = match &expr.kind {
            ExprKind::Select(select) => ExprKind::Select(Box::new(Select {
                operand: self.copy(&select.operand),
                field: select.field.clone(),
                is_test: select.is_test,
            })),
            ExprKind::Call(call) => ExprKind::Call(Box::new(Call {
                function: call.function.clone(),
                receiver: call.receiver.as_ref().map(|receiver| self.copy(receiver)),
                arguments: call.arguments.iter().map(|argument| self.copy(argument)).collect(),
            })),
            ExprKind::List(items) => ExprKind::List(
                items
                    .iter()
                    .map(|item| Item { value: self.copy(&item.value), is_optional: item.is_optional })
                    .collect(),
            ),
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|entry| {
                        let key = self.copy(&entry.key);
                        self.copy_entry(entry, key)
                    })
                    .collect(),
            ),
            ExprKind::Object(name, fields) => ExprKind::Object(
                name.clone(),
                fields.iter().map(|field| self.copy_entry(field, field.key.clone())).collect(),
            ),
            ExprKind::Loop(each) => ExprKind::Loop(Box::new(Loop {
                range: self.copy(&each.range),
                variable: each.variable.clone(),
                second: each.second.clone(),
                accumulator: each.accumulator.clone(),
                init: self.copy(&each.init),
                condition: self.copy(&each.condition),
                step: self.copy(&each.step),
                result: self.copy(&each.result),
            })),
            other => other.clone(),
        };
        Expr { id, kind }
    }

    fn copy_entry<K>(&mut self, entry: &Entry<K>, key: K) -> Entry<K> {
        let id = self.builder.positions.add(self.builder.positions.offset(self.call));
        Entry { id, key, value: self.copy(&entry.value), is_optional: entry.is_optional }
    }
}

struct Variables {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

enum TransformOutput {
    List,
    Map,
    Entries,
}

/// Converts the arguments to an array. `Err` if their number is wrong.
fn fixed<const N: usize>(arguments: Vec<Expr>) -> Result<[Expr; N], Wrong> {
    arguments.try_into().map_err(|_| (0, "wrong number of arguments".to_owned()))
}

fn is_named(receiver: &Expr, name: &str) -> bool {
    receiver.as_ident().is_some_and(|ident| &**ident == name)
}
