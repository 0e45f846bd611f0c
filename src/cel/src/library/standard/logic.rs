//! Operators of logic. The planner implements them, since they evaluate their operands one after the other.

use super::{planned, shared};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::Function;
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    Function { name: "_?_:_", overloads: &[planned("conditional", "(bool, A, A): A", cost::DEFAULT)] },
    Function { name: "_&&_", overloads: &[planned("logical_and", "(bool, bool): bool", cost::DEFAULT)] },
    Function { name: "_||_", overloads: &[planned("logical_or", "(bool, bool): bool", cost::DEFAULT)] },
    Function { name: "!_", overloads: &[shared("logical_not", "(bool): bool", cost::DEFAULT, not)] },
    Function {
        name: "@not_strictly_false",
        overloads: &[planned("not_strictly_false", "(bool): bool", cost::DEFAULT)],
    },
    Function { name: "_==_", overloads: &[planned("equals", "(A, A): bool", cost::EQUALITY)] },
    Function { name: "_!=_", overloads: &[planned("not_equals", "(A, A): bool", cost::INEQUALITY)] },
];

fn not<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::Bool(truth)] => Ok(Value::Bool(!truth)),
        _ => Err(Error::no_such_overload()),
    }
}
