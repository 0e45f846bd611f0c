//! Membership, indexes, sizes.

use super::{no_function, planned, shared};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::Function;
use crate::value::{List, Value, equal};

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "_[_]",
        overloads: &[
            planned("index_list", "(list(A), int): A", cost::DEFAULT),
            planned("index_map", "(map(A, B), A): B", cost::DEFAULT),
        ],
    },
    Function {
        name: "@in",
        overloads: &[
            shared("in_list", "(A, list(A)): bool", cost::SEARCHED, is_in),
            shared("in_map", "(A, map(A, B)): bool", cost::DEFAULT, is_in),
        ],
    },
    Function {
        name: "size",
        overloads: &[
            shared("size_bytes", "(bytes): int", cost::DEFAULT, size),
            shared("bytes_size", "bytes.(): int", cost::DEFAULT, size),
            shared("size_list", "(list(A)): int", cost::DEFAULT, size),
            shared("list_size", "list(A).(): int", cost::DEFAULT, size),
            shared("size_map", "(map(A, B)): int", cost::DEFAULT, size),
            shared("map_size", "map(A, B).(): int", cost::DEFAULT, size),
            shared("size_string", "(string): int", cost::DEFAULT, size),
            shared("string_size", "string.(): int", cost::DEFAULT, size),
        ],
    },
];

fn is_in<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [item, Value::List(list)] => contains(list, item).map(Value::Bool),
        [key, Value::Map(map)] => map.find(key).map(|found| Value::Bool(found.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

/// Returns whether an item of the list equals the value. `Err` is the first error of a comparison, but only if no item
/// is equal and the list belongs to a schema.
fn contains<'a>(list: &List<'a>, value: &Value<'a>) -> Outcome<bool> {
    let mut error = None;
    for item in list.iter() {
        match item.and_then(|item| if list.is_shaped() { equal(&item, value) } else { equal(value, &item) }) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(found) => {
                error.get_or_insert(found);
            }
        }
    }
    match error {
        Some(error) if list.is_shaped() => Err(error),
        _ => Ok(false),
    }
}

fn size<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [value] => match value.size() {
            Some(size) => Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))),
            None => Err(no_function("size", Some(value))),
        },
        _ => Err(Error::no_such_overload()),
    }
}
