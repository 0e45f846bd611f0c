//! `find` and `findAll`: parts of strings that match a pattern.

use flotilla_golang::regexp::Regexp;

use super::table::strings;
use crate::cost::{CallEstimate, Cost, CostRange, Nodes, REGEX, SizeRange, TEXT, scaled, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Call, Function, Library, Overload, Preparation, Since};
use crate::value::Value;

/// Kubernetes calls it `kubernetes.regex`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.regex",
    since: Since::Always,
    functions: &[
        Function {
            name: "find",
            overloads: &[Overload {
                id: "string_find_string",
                signature: "string.(string): string",
                cost: MATCHED,
                call: Call::Prepared { argument: 1, prepare, call: find },
            }],
        },
        Function {
            name: "findAll",
            overloads: &[
                Overload {
                    id: "string_find_all_string",
                    signature: "string.(string): list(string)",
                    cost: MATCHED,
                    call: Call::Prepared { argument: 1, prepare, call: find_all },
                },
                Overload {
                    id: "string_find_all_string_int",
                    signature: "string.(string, int): list(string)",
                    cost: MATCHED,
                    call: Call::Prepared { argument: 1, prepare, call: find_all },
                },
            ],
        },
    ],
};

/// One pass over the text for each part that the pattern may have.
const MATCHED: Cost = Cost {
    estimate,
    actual: |arguments, _| match arguments {
        [text, pattern, ..] => {
            scaled(size_of(text).saturating_add(1), TEXT).saturating_mul(scaled(size_of(pattern), REGEX))
        }
        _ => 1,
    },
    by_name: true,
};

fn estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let (text, pattern) = (nodes.receiver?, nodes.arguments.first()?);
    let size = nodes.size(text);
    let passes = nodes.size(pattern).scaled(REGEX);
    let cost: CostRange = size.add(SizeRange::fixed(1)).scaled(TEXT).multiply(passes);
    Some(CallEstimate::sized(cost, SizeRange::new(0, size.max)))
}

/// Compiles a pattern.
///
/// # Errors
/// If it is invalid, with Go's message.
pub fn compile(pattern: &Value<'_>) -> Outcome<Regexp> {
    let pattern = pattern.as_str().ok_or_else(Error::no_such_overload)?;
    Regexp::new(pattern).map_err(|error| Error::new(error.to_string()))
}

fn prepare(pattern: &Value<'_>) -> Outcome<Preparation> {
    Ok(Box::new(compile(pattern)?))
}

fn find<'a>(pattern: &Preparation, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match (pattern.downcast_ref::<Regexp>(), arguments) {
        (Some(pattern), [Value::String(text), _]) => Ok(Value::string(pattern.find(text).unwrap_or_default())),
        _ => Err(Error::no_such_overload()),
    }
}

fn find_all<'a>(pattern: &Preparation, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let Some(pattern) = pattern.downcast_ref::<Regexp>() else { return Err(Error::no_such_overload()) };
    match arguments {
        [Value::String(text), _] => Ok(strings(pattern.find_all(text))),
        [Value::String(text), _, Value::Int(most)] => {
            let most = usize::try_from(*most).unwrap_or(usize::MAX);
            Ok(strings(pattern.find_all(text).take(most)))
        }
        _ => Err(Error::no_such_overload()),
    }
}
