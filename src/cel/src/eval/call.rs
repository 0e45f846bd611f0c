//! Calls of functions, and their errors.

use super::evaluator::{Evaluator, known};
use super::{Bindings, is_final};
use crate::environment::OverloadDecl;
use crate::error::{Error, Outcome};
use crate::functions::{self, Overload};
use crate::limits::SHOWN_VALUE_BYTES_MAX;
use crate::number::shortest;
use crate::plan::PlannedCall;
use crate::types::Type;
use crate::value::Value;

impl<'a, B: Bindings<'a> + ?Sized> Evaluator<'a, '_, B> {
    pub(super) fn call(&mut self, call: &'a PlannedCall) -> Outcome<Value<'a>> {
        match &call.arguments[..] {
            [only] => {
                let arguments = [self.eval(only)];
                self.called(call, arguments)
            }
            [first, second] if !stops_early(call) => {
                let arguments = [self.eval(first), self.eval(second)];
                self.called(call, arguments)
            }
            several => {
                let mut arguments = Vec::with_capacity(several.len());
                for (at, argument) in several.iter().enumerate() {
                    let argument = self.eval(argument);
                    if argument.is_err() && at + 1 < several.len() {
                        // The arguments after it are not evaluated, and the call costs nothing.
                        return argument;
                    }
                    arguments.push(argument);
                }
                self.called_with(call, arguments)
            }
        }
    }

    fn called<const N: usize>(
        &mut self,
        call: &'a PlannedCall,
        arguments: [Outcome<Value<'a>>; N],
    ) -> Outcome<Value<'a>> {
        if arguments.iter().any(is_final) {
            return Err(Error::CostLimit);
        }
        if let Some(error) = arguments.iter().find_map(|argument| argument.as_ref().err()).cloned() {
            let known: Vec<Value<'a>> = arguments.iter().map(known).collect();
            self.charge(cost(call, &known, &Value::Null))?;
            return Err(error);
        }
        let arguments = arguments.map(|argument| argument.unwrap_or(Value::Null));
        self.apply(call, &arguments)
    }

    fn called_with(&mut self, call: &'a PlannedCall, arguments: Vec<Outcome<Value<'a>>>) -> Outcome<Value<'a>> {
        if arguments.iter().any(is_final) {
            return Err(Error::CostLimit);
        }
        if let Some(Err(error)) = arguments.last() {
            let known: Vec<Value<'a>> = arguments.iter().map(known).collect();
            let error = error.clone();
            self.charge(cost(call, &known, &Value::Null))?;
            return Err(error);
        }
        let arguments = arguments.into_iter().collect::<Outcome<Vec<Value<'a>>>>()?;
        self.apply(call, &arguments)
    }

    fn apply(&mut self, call: &'a PlannedCall, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
        let outcome = call_with(call, arguments);
        let cost = match &outcome {
            Ok(value) => cost(call, arguments, value),
            Err(_) => cost(call, arguments, &Value::Null),
        };
        self.charge(cost)?;
        outcome
    }
}

/// Returns whether the arguments after a failed one are not evaluated. They are not if the types of the arguments
/// determine the overload at evaluation.
fn stops_early(call: &PlannedCall) -> bool {
    !call.is_resolved && call.overloads.len() > 1 && shared(call).is_none()
}

/// Returns the implementation that all overloads share. `None` if each has its own.
fn shared(call: &PlannedCall) -> Option<functions::Native> {
    match call.overloads.first()?.native?.call {
        functions::Call::Shared(native) => Some(native),
        _ => None,
    }
}

/// Returns the cost of a call.
fn cost(call: &PlannedCall, arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    let overload = match call.overload() {
        Some(overload) => Some(overload),
        None => named_cost(call, arguments),
    };
    overload.map_or(1, |overload| (overload.cost.actual)(arguments, result))
}

/// Returns the overload whose cost applies although only the name of the function is known. `None` if there is none.
fn named_cost(call: &PlannedCall, arguments: &[Value<'_>]) -> Option<&'static Overload> {
    let named = || call.overloads.iter().filter(|overload| overload.native.is_some_and(|native| native.cost.by_name));
    named().find(|overload| fits(overload, arguments)).or_else(|| named().next())?.native
}

/// Calls the function.
pub(crate) fn call_with<'a>(call: &PlannedCall, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    if let Some(native) = shared(call) {
        return native(arguments);
    }
    let chosen = match (call.is_resolved, &call.overloads[..]) {
        (_, [only]) => Some(only),
        (true, [first, ..]) => Some(first),
        (_, several) => several.iter().find(|overload| fits(overload, arguments)),
    };
    match chosen.and_then(|overload| Some((overload, overload.native?))) {
        Some((overload, native)) => match invoke(call, native, arguments) {
            Err(error) if error == Error::no_such_overload() && !fits(overload, arguments) => {
                Err(if call.prepared.is_some() { error } else { unfit(call, arguments) })
            }
            outcome => outcome,
        },
        None => Err(unfit(call, arguments)),
    }
}

fn invoke<'a>(call: &PlannedCall, native: &'static Overload, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match native.call {
        functions::Call::Native(native) | functions::Call::Shared(native) => native(arguments),
        functions::Call::Prepared { argument, prepare, call: native } => match &call.prepared {
            Some(prepared) => native(prepared, arguments),
            None => {
                let value = arguments.get(argument).ok_or_else(Error::no_such_overload)?;
                native(&prepare(value)?, arguments)
            }
        },
        functions::Call::Planned => Err(Error::no_such_overload()),
    }
}

fn unfit(call: &PlannedCall, arguments: &[Value<'_>]) -> Error {
    let name = &call.function;
    if call.overloads.iter().all(|overload| overload.native.is_none()) {
        return match arguments.first() {
            Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)) => Error::no_such_overload(),
            _ => Error::new(format!("no such overload: {name}")),
        };
    }
    if &**name == "matches" {
        return Error::new("no such overload: matches");
    }
    let types: Vec<String> = arguments.iter().map(|value| value.type_of().runtime_name().to_owned()).collect();
    Error::new(format!("no such overload: {name}({})", types.join(", ")))
}

/// Returns whether an overload accepts the arguments, as far as values show their types.
fn fits(overload: &OverloadDecl, arguments: &[Value<'_>]) -> bool {
    let wanted = &overload.signature.arguments;
    wanted.len() == arguments.len() && wanted.iter().zip(arguments).all(|(of, value)| is_of(value, of))
}

fn is_of(value: &Value<'_>, of: &Type) -> bool {
    match (of, value) {
        (Type::Dyn | Type::Any | Type::Param(_) | Type::Error, _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Type(_), Value::Type(_)) => true,
        (Type::List(element), Value::List(list)) => {
            list.get(0).is_none_or(|first| first.is_ok_and(|first| is_of(&first, element)))
        }
        (Type::Map(entry), Value::Map(map)) => map
            .iter()
            .next()
            .is_none_or(|(key, value)| is_of(&key, &entry.0) && value.is_ok_and(|value| is_of(&value, &entry.1))),
        (Type::Wrapper(of), value) => matches!(value, Value::Null) || is_of(value, of),
        (Type::Opaque(_), Value::Optional(_)) => of.optional_of().is_some(),
        (Type::Opaque(_) | Type::Object(_), Value::Opaque(value)) => {
            value.type_of().runtime_name() == of.runtime_name()
        }
        _ => false,
    }
}

/// Returns whether a value may be a key of a map literal.
pub(crate) fn is_map_key(value: &Value<'_>) -> bool {
    !matches!(value, Value::Bytes(_))
}

/// Formats a value for errors, up to a bound: very many places may share its parts, so that its full text can be huge.
pub(super) fn shown(value: &Value<'_>) -> String {
    let mut text = String::new();
    show(value, &mut text);
    text
}

fn show(value: &Value<'_>, out: &mut String) {
    if out.len() > SHOWN_VALUE_BYTES_MAX {
        return;
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        Value::Double(number) => out.push_str(&shortest(*number)),
        Value::String(text) => out.push_str(text),
        Value::Type(of) => out.push_str(&of.to_string()),
        Value::Opaque(value) => out.push_str(&value.text()),
        Value::Optional(None) => out.push_str("optional.none()"),
        Value::Optional(Some(value)) => {
            out.push_str("optional(");
            show(value, out);
            out.push(')');
        }
        Value::Timestamp(time) => out.push_str(&time.to_string()),
        Value::Duration(span) => out.push_str(&crate::library::standard::duration_text(*span)),
        Value::Bytes(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                if out.len() > SHOWN_VALUE_BYTES_MAX {
                    break;
                }
                out.push_str(if at > 0 { ", " } else { "" });
                show_outcome(&item, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (at, (key, value)) in map.iter().enumerate() {
                if out.len() > SHOWN_VALUE_BYTES_MAX {
                    break;
                }
                out.push_str(if at > 0 { ", " } else { "" });
                show(&key, out);
                out.push_str(": ");
                show_outcome(&value, out);
            }
            out.push('}');
        }
    }
}

fn show_outcome(outcome: &Outcome<Value<'_>>, out: &mut String) {
    match outcome {
        Ok(value) => show(value, out),
        Err(error) => out.push_str(&error.to_string()),
    }
}

pub(super) fn item_error(value: &Value<'_>) -> Error {
    Error::new(format!("cannot initialize optional list element from non-optional value {}", shown(value)))
}

pub(super) fn entry_error(key: &Value<'_>, value: &Value<'_>) -> Error {
    Error::new(format!("cannot initialize optional entry '{}' from non-optional value {}", shown(key), shown(value)))
}

/// Returns the error of a loop over a value that is neither a list nor a map, with Go's names of types.
pub(super) fn range_error(value: &Value<'_>, of_two: bool) -> Error {
    let name = match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        _ => "ref.Val",
    };
    Error::new(if of_two {
        format!("unsupported comprehension range type: {name}")
    } else {
        format!("got '{name}', expected iterable type")
    })
}
