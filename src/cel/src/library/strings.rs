//! Functions of strings beyond the standard ones.

use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::{Call, Function, Library, Overload, Since};
use crate::value::Value;

/// What Kubernetes knows as version 2 of the extension.
pub static LIBRARY: Library = Library {
    name: "strings",
    since: Since::Always,
    functions: &[
        Function {
            name: "lowerAscii",
            overloads: &[Overload {
                id: "string_lower_ascii",
                signature: "string.(): string",
                cost: cost::COPIED,
                call: Call::Native(lower_ascii),
            }],
        },
        Function {
            name: "charAt",
            overloads: &[Overload {
                id: "string_char_at_int",
                signature: "string.(int): string",
                cost: cost::DEFAULT,
                call: Call::Native(char_at),
            }],
        },
    ],
};

fn lower_ascii<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(Value::string(text.to_ascii_lowercase())),
        _ => Err(Error::no_such_overload()),
    }
}

fn char_at<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::String(text), Value::Int(at)] = arguments else { return Err(Error::no_such_overload()) };
    let out_of_range = || Error::new(format!("index out of range: {at}"));
    let place = usize::try_from(*at).map_err(|_| out_of_range())?;
    match text.chars().nth(place) {
        Some(found) => Ok(Value::string(found.to_string())),
        None if place == text.chars().count() => Ok(Value::string("")),
        None => Err(out_of_range()),
    }
}
