//! Functions of strings.

use flotilla_golang::regexp::Regexp;

use super::shared;
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::{Call, Function, Overload, Preparation};
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "contains",
        overloads: &[shared("contains_string", "string.(string): bool", cost::CONTAINED, contains)],
    },
    Function {
        name: "endsWith",
        overloads: &[shared("ends_with_string", "string.(string): bool", cost::AFFIX, ends_with)],
    },
    Function {
        name: "startsWith",
        overloads: &[shared("starts_with_string", "string.(string): bool", cost::AFFIX, starts_with)],
    },
    Function {
        name: "matches",
        overloads: &[
            Overload {
                id: "matches",
                signature: "(string, string): bool",
                cost: cost::DEFAULT,
                call: Call::Prepared { argument: 1, prepare, call: matches },
            },
            Overload {
                id: "matches_string",
                signature: "string.(string): bool",
                cost: cost::MATCHED,
                call: Call::Prepared { argument: 1, prepare, call: matches },
            },
        ],
    },
];

fn strings<'a>(arguments: &[Value<'a>], holds: impl Fn(&str, &str) -> bool) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => Err(Error::no_such_overload()),
    }
}

fn contains<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    strings(arguments, |text, part| text.contains(part))
}

fn ends_with<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    strings(arguments, |text, part| text.ends_with(part))
}

fn starts_with<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    strings(arguments, |text, part| text.starts_with(part))
}

fn prepare(pattern: &Value<'_>) -> Outcome<Preparation> {
    let pattern = pattern.as_str().ok_or_else(Error::no_such_overload)?;
    let compiled = Regexp::new(pattern).map_err(|error| Error::new(error.to_string()))?;
    Ok(Box::new(compiled))
}

fn matches<'a>(pattern: &Preparation, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match (pattern.downcast_ref::<Regexp>(), arguments) {
        (Some(pattern), [Value::String(text), _]) => Ok(Value::Bool(pattern.is_match(text))),
        _ => Err(Error::no_such_overload()),
    }
}
