//! Operators of order.

use std::cmp::Ordering;

use super::{no_function, shared};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::Function;
use crate::value::{Value, compare};

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "_<_",
        overloads: &[
            shared("less_bool", "(bool, bool): bool", cost::DEFAULT, is_less),
            shared("less_int64", "(int, int): bool", cost::DEFAULT, is_less),
            shared("less_int64_double", "(int, double): bool", cost::DEFAULT, is_less),
            shared("less_int64_uint64", "(int, uint): bool", cost::DEFAULT, is_less),
            shared("less_uint64", "(uint, uint): bool", cost::DEFAULT, is_less),
            shared("less_uint64_double", "(uint, double): bool", cost::DEFAULT, is_less),
            shared("less_uint64_int64", "(uint, int): bool", cost::DEFAULT, is_less),
            shared("less_double", "(double, double): bool", cost::DEFAULT, is_less),
            shared("less_double_int64", "(double, int): bool", cost::DEFAULT, is_less),
            shared("less_double_uint64", "(double, uint): bool", cost::DEFAULT, is_less),
            shared("less_string", "(string, string): bool", cost::COMPARED, is_less),
            shared("less_bytes", "(bytes, bytes): bool", cost::COMPARED, is_less),
            shared("less_timestamp", "(timestamp, timestamp): bool", cost::DEFAULT, is_less),
            shared("less_duration", "(duration, duration): bool", cost::DEFAULT, is_less),
        ],
    },
    Function {
        name: "_<=_",
        overloads: &[
            shared("less_equals_bool", "(bool, bool): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_int64", "(int, int): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_int64_double", "(int, double): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_int64_uint64", "(int, uint): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_uint64", "(uint, uint): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_uint64_double", "(uint, double): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_uint64_int64", "(uint, int): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_double", "(double, double): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_double_int64", "(double, int): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_double_uint64", "(double, uint): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_string", "(string, string): bool", cost::COMPARED, is_not_greater),
            shared("less_equals_bytes", "(bytes, bytes): bool", cost::COMPARED, is_not_greater),
            shared("less_equals_timestamp", "(timestamp, timestamp): bool", cost::DEFAULT, is_not_greater),
            shared("less_equals_duration", "(duration, duration): bool", cost::DEFAULT, is_not_greater),
        ],
    },
    Function {
        name: "_>_",
        overloads: &[
            shared("greater_bool", "(bool, bool): bool", cost::DEFAULT, is_greater),
            shared("greater_int64", "(int, int): bool", cost::DEFAULT, is_greater),
            shared("greater_int64_double", "(int, double): bool", cost::DEFAULT, is_greater),
            shared("greater_int64_uint64", "(int, uint): bool", cost::DEFAULT, is_greater),
            shared("greater_uint64", "(uint, uint): bool", cost::DEFAULT, is_greater),
            shared("greater_uint64_double", "(uint, double): bool", cost::DEFAULT, is_greater),
            shared("greater_uint64_int64", "(uint, int): bool", cost::DEFAULT, is_greater),
            shared("greater_double", "(double, double): bool", cost::DEFAULT, is_greater),
            shared("greater_double_int64", "(double, int): bool", cost::DEFAULT, is_greater),
            shared("greater_double_uint64", "(double, uint): bool", cost::DEFAULT, is_greater),
            shared("greater_string", "(string, string): bool", cost::COMPARED, is_greater),
            shared("greater_bytes", "(bytes, bytes): bool", cost::COMPARED, is_greater),
            shared("greater_timestamp", "(timestamp, timestamp): bool", cost::DEFAULT, is_greater),
            shared("greater_duration", "(duration, duration): bool", cost::DEFAULT, is_greater),
        ],
    },
    Function {
        name: "_>=_",
        overloads: &[
            shared("greater_equals_bool", "(bool, bool): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_int64", "(int, int): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_int64_double", "(int, double): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_int64_uint64", "(int, uint): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_uint64", "(uint, uint): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_uint64_double", "(uint, double): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_uint64_int64", "(uint, int): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_double", "(double, double): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_double_int64", "(double, int): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_double_uint64", "(double, uint): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_string", "(string, string): bool", cost::COMPARED, is_not_less),
            shared("greater_equals_bytes", "(bytes, bytes): bool", cost::COMPARED, is_not_less),
            shared("greater_equals_timestamp", "(timestamp, timestamp): bool", cost::DEFAULT, is_not_less),
            shared("greater_equals_duration", "(duration, duration): bool", cost::DEFAULT, is_not_less),
        ],
    },
];

fn ordered<'a>(name: &str, arguments: &[Value<'a>], holds: impl Fn(Ordering) -> bool) -> Outcome<Value<'a>> {
    match arguments {
        [a, b] if has_order(a) => compare(a, b).map(|order| Value::Bool(holds(order))),
        [a, _] => Err(no_function(name, Some(a))),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_order(value: &Value<'_>) -> bool {
    !matches!(
        value,
        Value::Null | Value::List(_) | Value::Map(_) | Value::Type(_) | Value::Optional(_) | Value::Opaque(_)
    )
}

fn is_less<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    ordered("_<_", arguments, Ordering::is_lt)
}

fn is_not_greater<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    ordered("_<=_", arguments, Ordering::is_le)
}

fn is_greater<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    ordered("_>_", arguments, Ordering::is_gt)
}

fn is_not_less<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    ordered("_>=_", arguments, Ordering::is_ge)
}
