//! Optional values.

use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::{Call, Function, Library, Native, Overload, Since};
use crate::value::Value;

/// Version 2 of the extension.
pub static LIBRARY: Library = Library {
    name: "optional",
    since: Since::Minor(28),
    functions: &[
        Function { name: "optional.of", overloads: &[native("optional_of", "(V): optional(V)", of)] },
        Function {
            name: "optional.ofNonZeroValue",
            overloads: &[native("optional_ofNonZeroValue", "(V): optional(V)", of_non_zero)],
        },
        Function { name: "optional.none", overloads: &[native("optional_none", "(): optional(V)", none)] },
        Function { name: "value", overloads: &[native("optional_value", "optional(V).(): V", value)] },
        Function { name: "hasValue", overloads: &[native("optional_hasValue", "optional(V).(): bool", has_value)] },
        Function {
            name: "or",
            overloads: &[planned("optional_or_optional", "optional(V).(optional(V)): optional(V)")],
        },
        Function { name: "orValue", overloads: &[planned("optional_orValue_value", "optional(V).(V): V")] },
        Function { name: "_?._", overloads: &[planned("select_optional_field", "(dyn, string): optional(V)")] },
        Function {
            name: "_[?_]",
            overloads: &[
                planned("list_optindex_optional_int", "(list(V), int): optional(V)"),
                planned("optional_list_optindex_optional_int", "(optional(list(V)), int): optional(V)"),
                planned("map_optindex_optional_value", "(map(K, V), K): optional(V)"),
                planned("optional_map_optindex_optional_value", "(optional(map(K, V)), K): optional(V)"),
            ],
        },
        Function {
            name: "_[_]",
            overloads: &[
                planned("optional_list_index_int", "(optional(list(V)), int): optional(V)"),
                planned("optional_map_index_value", "(optional(map(K, V)), K): optional(V)"),
            ],
        },
        Function { name: "last", overloads: &[native("list_last", "list(V).(): optional(V)", last)] },
        Function { name: "first", overloads: &[native("list_first", "list(V).(): optional(V)", first)] },
        Function {
            name: "optional.unwrap",
            overloads: &[native("optional_unwrap", "(list(optional(V))): list(V)", unwrap)],
        },
        Function {
            name: "unwrapOpt",
            overloads: &[native("optional_unwrapOpt", "list(optional(V)).(): list(V)", unwrap)],
        },
    ],
};

const fn native(id: &'static str, signature: &'static str, call: Native) -> Overload {
    Overload { id, signature, cost: cost::DEFAULT, call: Call::Native(call) }
}

const fn planned(id: &'static str, signature: &'static str) -> Overload {
    Overload { id, signature, cost: cost::DEFAULT, call: Call::Planned }
}

fn of<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [value] => Ok(Value::some(value.clone())),
        _ => Err(Error::no_such_overload()),
    }
}

fn of_non_zero<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [value] if value.is_zero() => Ok(Value::none()),
        other => of(other),
    }
}

fn none<'a>(_: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(Value::none())
}

fn value<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(Error::new("optional.none() dereference")),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn first<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::List(list)] => list.get(0).map_or(Ok(Value::none()), |item| item.map(Value::some)),
        _ => Err(Error::no_such_overload()),
    }
}

fn last<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::List(list)] => {
            let at = list.len().checked_sub(1);
            at.and_then(|at| list.get(at)).map_or(Ok(Value::none()), |item| item.map(Value::some))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn unwrap<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(list)] = arguments else { return Err(Error::no_such_overload()) };
    let mut values = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(value) => values.extend(value.map(|value| (*value).clone())),
            _ => return Err(Error::new("value is not optional")),
        }
    }
    Ok(Value::list(values))
}
