//! Operators of numbers, strings, lists and times. A result that does not fit 64 bits is an error.

use super::{no_function, shared};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::Function;
use crate::value::{Duration, Timestamp, Value, add_lists};

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "_+_",
        overloads: &[
            shared("add_bytes", "(bytes, bytes): bytes", cost::JOINED, add),
            shared("add_double", "(double, double): double", cost::DEFAULT, add),
            shared("add_duration_duration", "(duration, duration): duration", cost::DEFAULT, add),
            shared("add_duration_timestamp", "(duration, timestamp): timestamp", cost::DEFAULT, add),
            shared("add_timestamp_duration", "(timestamp, duration): timestamp", cost::DEFAULT, add),
            shared("add_int64", "(int, int): int", cost::DEFAULT, add),
            shared("add_list", "(list(A), list(A)): list(A)", cost::LISTS_JOINED, add),
            shared("add_string", "(string, string): string", cost::JOINED, add),
            shared("add_uint64", "(uint, uint): uint", cost::DEFAULT, add),
        ],
    },
    Function {
        name: "_/_",
        overloads: &[
            shared("divide_double", "(double, double): double", cost::DEFAULT, divide),
            shared("divide_int64", "(int, int): int", cost::DEFAULT, divide),
            shared("divide_uint64", "(uint, uint): uint", cost::DEFAULT, divide),
        ],
    },
    Function {
        name: "_%_",
        overloads: &[
            shared("modulo_int64", "(int, int): int", cost::DEFAULT, modulo),
            shared("modulo_uint64", "(uint, uint): uint", cost::DEFAULT, modulo),
        ],
    },
    Function {
        name: "_*_",
        overloads: &[
            shared("multiply_double", "(double, double): double", cost::DEFAULT, multiply),
            shared("multiply_int64", "(int, int): int", cost::DEFAULT, multiply),
            shared("multiply_uint64", "(uint, uint): uint", cost::DEFAULT, multiply),
        ],
    },
    Function {
        name: "-_",
        overloads: &[
            shared("negate_double", "(double): double", cost::DEFAULT, negate),
            shared("negate_int64", "(int): int", cost::DEFAULT, negate),
        ],
    },
    Function {
        name: "_-_",
        overloads: &[
            shared("subtract_double", "(double, double): double", cost::DEFAULT, subtract),
            shared("subtract_duration_duration", "(duration, duration): duration", cost::DEFAULT, subtract),
            shared("subtract_int64", "(int, int): int", cost::DEFAULT, subtract),
            shared("subtract_timestamp_duration", "(timestamp, duration): timestamp", cost::DEFAULT, subtract),
            shared("subtract_timestamp_timestamp", "(timestamp, timestamp): duration", cost::DEFAULT, subtract),
            shared("subtract_uint64", "(uint, uint): uint", cost::DEFAULT, subtract),
        ],
    },
];

const INT_OVERFLOW: Error = Error::Text(std::borrow::Cow::Borrowed("integer overflow"));
const UINT_OVERFLOW: Error = Error::Text(std::borrow::Cow::Borrowed("unsigned integer overflow"));

fn int<'a>(number: Option<i64>) -> Outcome<Value<'a>> {
    number.map(Value::Int).ok_or(INT_OVERFLOW)
}

fn uint<'a>(number: Option<u64>) -> Outcome<Value<'a>> {
    number.map(Value::Uint).ok_or(UINT_OVERFLOW)
}

fn duration<'a>(nanos: Option<i64>) -> Outcome<Value<'a>> {
    nanos.map(|nanos| Value::Duration(Duration::new(nanos))).ok_or(INT_OVERFLOW)
}

/// Returns the error about operands that an operator does not accept. If it does not take the type of the first one,
/// the error is that this type has no such operator.
fn unfit<'a>(name: &str, arguments: &[Value<'a>], takes: impl Fn(&Value<'a>) -> bool) -> Outcome<Value<'a>> {
    match arguments.first() {
        Some(first) if takes(first) => Err(Error::no_such_overload()),
        _ => Err(no_function(name, arguments.first())),
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn add<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => Ok(Value::string([&**a, &**b].concat())),
        [Value::Bytes(a), Value::Bytes(b)] => Ok(Value::bytes([&**a, &**b].concat())),
        [Value::List(a), Value::List(b)] => add_lists(a, b),
        [Value::Duration(a), Value::Duration(b)] => duration(a.nanos().checked_add(b.nanos())),
        [Value::Timestamp(time), Value::Duration(span)] | [Value::Duration(span), Value::Timestamp(time)] => {
            later(*time, span.nanos())
        }
        _ => unfit("_+_", arguments, |first| {
            is_number(first)
                || matches!(
                    first,
                    Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Duration(_) | Value::Timestamp(_)
                )
        }),
    }
}

fn later<'a>(time: Timestamp, nanos: i64) -> Outcome<Value<'a>> {
    let seconds = time.seconds().checked_add(nanos.div_euclid(1_000_000_000)).ok_or(INT_OVERFLOW)?;
    let later = Timestamp::new(seconds, i64::from(time.nanos()) + nanos.rem_euclid(1_000_000_000))
        .at_offset(time.minutes_east());
    if later.is_in_range() { Ok(Value::Timestamp(later)) } else { Err(Error::new("timestamp overflow")) }
}

fn subtract<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.nanos().checked_sub(b.nanos())),
        [Value::Timestamp(time), Value::Duration(span)] => {
            later(*time, span.nanos().checked_neg().ok_or(INT_OVERFLOW)?)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            let seconds = a.seconds().checked_sub(b.seconds()).and_then(|seconds| seconds.checked_mul(1_000_000_000));
            let nanos = i64::from(a.nanos()) - i64::from(b.nanos());
            duration(seconds.and_then(|seconds| seconds.checked_add(nanos)))
        }
        _ => unfit("_-_", arguments, |first| {
            is_number(first) || matches!(first, Value::Duration(_) | Value::Timestamp(_))
        }),
    }
}

fn multiply<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => unfit("_*_", arguments, is_number),
    }
}

fn divide<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(Error::new("division by zero")),
        [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_div(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => unfit("_/_", arguments, is_number),
    }
}

fn modulo<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(Error::new("modulus by zero")),
        [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_rem(*b)),
        _ => unfit("_%_", arguments, |first| matches!(first, Value::Int(_) | Value::Uint(_))),
    }
}

fn negate<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Int(number)] => int(number.checked_neg()),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        [Value::Duration(span)] => duration(span.nanos().checked_neg()),
        _ => Err(no_function("-_", arguments.first())),
    }
}
