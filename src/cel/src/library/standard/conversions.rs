//! Conversions between types.

use super::conversion::convert;
use super::{native, shared};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::Function;
use crate::types::Type;
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    Function { name: "type", overloads: &[shared("type", "(A): type(A)", cost::DEFAULT, to_type)] },
    Function {
        name: "bool",
        overloads: &[
            native("bool_to_bool", "(bool): bool", cost::DEFAULT, same),
            native("string_to_bool", "(string): bool", cost::DEFAULT, to_bool),
        ],
    },
    Function {
        name: "bytes",
        overloads: &[
            native("bytes_to_bytes", "(bytes): bytes", cost::DEFAULT, same),
            native("string_to_bytes", "(string): bytes", cost::ENCODED, to_bytes),
        ],
    },
    Function {
        name: "double",
        overloads: &[
            native("double_to_double", "(double): double", cost::DEFAULT, same),
            native("int64_to_double", "(int): double", cost::DEFAULT, to_double),
            native("string_to_double", "(string): double", cost::DEFAULT, to_double),
            native("uint64_to_double", "(uint): double", cost::DEFAULT, to_double),
        ],
    },
    Function {
        name: "duration",
        overloads: &[
            native("duration_to_duration", "(duration): duration", cost::DEFAULT, same),
            native("int64_to_duration", "(int): duration", cost::DEFAULT, to_duration),
            native("string_to_duration", "(string): duration", cost::DEFAULT, to_duration),
        ],
    },
    Function { name: "dyn", overloads: &[shared("to_dyn", "(A): dyn", cost::DEFAULT, same)] },
    Function {
        name: "int",
        overloads: &[
            native("int64_to_int64", "(int): int", cost::DEFAULT, same),
            native("double_to_int64", "(double): int", cost::DEFAULT, to_int),
            native("duration_to_int64", "(duration): int", cost::DEFAULT, to_int),
            native("string_to_int64", "(string): int", cost::DEFAULT, to_int),
            native("timestamp_to_int64", "(timestamp): int", cost::DEFAULT, to_int),
            native("uint64_to_int64", "(uint): int", cost::DEFAULT, to_int),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            native("string_to_string", "(string): string", cost::DEFAULT, same),
            native("bool_to_string", "(bool): string", cost::DEFAULT, to_string),
            native("bytes_to_string", "(bytes): string", cost::DECODED, to_string),
            native("double_to_string", "(double): string", cost::DEFAULT, to_string),
            native("duration_to_string", "(duration): string", cost::DEFAULT, to_string),
            native("int64_to_string", "(int): string", cost::DEFAULT, to_string),
            native("timestamp_to_string", "(timestamp): string", cost::DEFAULT, to_string),
            native("uint64_to_string", "(uint): string", cost::DEFAULT, to_string),
        ],
    },
    Function {
        name: "timestamp",
        overloads: &[
            native("timestamp_to_timestamp", "(timestamp): timestamp", cost::DEFAULT, same),
            native("int64_to_timestamp", "(int): timestamp", cost::DEFAULT, to_timestamp),
            native("string_to_timestamp", "(string): timestamp", cost::DEFAULT, to_timestamp),
        ],
    },
    Function {
        name: "uint",
        overloads: &[
            native("uint64_to_uint64", "(uint): uint", cost::DEFAULT, same),
            native("double_to_uint64", "(double): uint", cost::DEFAULT, to_uint),
            native("int64_to_uint64", "(int): uint", cost::DEFAULT, to_uint),
            native("string_to_uint64", "(string): uint", cost::DEFAULT, to_uint),
        ],
    },
];

fn only<'v, 'a>(arguments: &'v [Value<'a>]) -> Outcome<&'v Value<'a>> {
    match arguments {
        [value] => Ok(value),
        _ => Err(Error::no_such_overload()),
    }
}

fn same<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    only(arguments).cloned()
}

fn to_type<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    only(arguments).map(|value| Value::Type(value.type_of()))
}

fn to_bool<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Bool)
}

fn to_bytes<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Bytes)
}

fn to_double<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Double)
}

fn to_duration<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Duration)
}

fn to_int<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Int)
}

fn to_string<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::String)
}

fn to_timestamp<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Timestamp)
}

fn to_uint<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    convert(only(arguments)?, &Type::Uint)
}
