//! `jsonpatch`: pointers into objects, for policies that change them.

use super::table::{overload, unfit};
use crate::cost;
use crate::error::Outcome;
use crate::functions::{Function, Library, Since};
use crate::value::Value;

/// Kubernetes calls it `kubernetes.jsonpatch`. Only the environment of mutating policies has it.
pub static LIBRARY: Library = Library {
    name: "kubernetes.jsonpatch",
    since: Since::Never,
    functions: &[Function {
        name: "jsonpatch.escapeKey",
        overloads: &[overload("string_jsonpatch_escapeKey_string", "(string): string", cost::COPIED, escape_key)],
    }],
};

fn escape_key<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(key)] => Ok(key.replace('~', "~0").replace('/', "~1").into()),
        _ => unfit(),
    }
}
