//! `quantity`: amounts with a suffix, exact at any size.

use std::any::Any;

use flotilla_proto::quantity::{self, Amount, Format, Quantity as Stated};

use super::table::{overload, unfit};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Kubernetes calls it `kubernetes.quantity`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.quantity",
    since: Since::Minor(28),
    functions: &[
        Function {
            name: "quantity",
            overloads: &[overload("string_to_quantity", "(string): kubernetes.Quantity", cost::READ, read)],
        },
        Function {
            name: "isQuantity",
            overloads: &[overload("is_quantity_string", "(string): bool", cost::READ, is_quantity)],
        },
        Function {
            name: "sign",
            overloads: &[overload("quantity_sign", "(kubernetes.Quantity): int", cost::NOMINAL, sign)],
        },
        Function {
            name: "isGreaterThan",
            overloads: &[overload(
                "quantity_is_greater_than",
                "kubernetes.Quantity.(kubernetes.Quantity): bool",
                cost::NOMINAL,
                is_greater,
            )],
        },
        Function {
            name: "isLessThan",
            overloads: &[overload(
                "quantity_is_less_than",
                "kubernetes.Quantity.(kubernetes.Quantity): bool",
                cost::NOMINAL,
                is_less,
            )],
        },
        Function {
            name: "compareTo",
            overloads: &[overload(
                "quantity_compare_to",
                "kubernetes.Quantity.(kubernetes.Quantity): int",
                cost::NOMINAL,
                compare_to,
            )],
        },
        Function {
            name: "asApproximateFloat",
            overloads: &[overload("quantity_get_float", "kubernetes.Quantity.(): double", cost::NOMINAL, as_float)],
        },
        Function {
            name: "asInteger",
            overloads: &[overload("quantity_get_int", "kubernetes.Quantity.(): int", cost::NOMINAL, as_integer)],
        },
        Function {
            name: "isInteger",
            overloads: &[overload("quantity_is_integer", "kubernetes.Quantity.(): bool", cost::NOMINAL, is_integer)],
        },
        Function {
            name: "add",
            overloads: &[
                overload(
                    "quantity_add",
                    "kubernetes.Quantity.(kubernetes.Quantity): kubernetes.Quantity",
                    cost::NOMINAL,
                    add,
                ),
                overload("quantity_add_int", "kubernetes.Quantity.(int): kubernetes.Quantity", cost::NOMINAL, add),
            ],
        },
        Function {
            name: "sub",
            overloads: &[
                overload(
                    "quantity_sub",
                    "kubernetes.Quantity.(kubernetes.Quantity): kubernetes.Quantity",
                    cost::NOMINAL,
                    sub,
                ),
                overload("quantity_sub_int", "kubernetes.Quantity.(int): kubernetes.Quantity", cost::NOMINAL, sub),
            ],
        },
    ],
};

/// A quantity.
#[derive(Clone, Debug)]
struct Quantity {
    stated: Stated,
    /// Whether it was computed. In the reference a computed quantity can be compared with others, but others cannot be
    /// compared with it.
    is_computed: bool,
}

impl Quantity {
    fn read(text: &str) -> Result<Self, quantity::Error> {
        Stated::parse(text).map(|stated| Self { stated, is_computed: false })
    }

    fn of_int(number: i64) -> Self {
        let amount = Amount::Int { value: number, scale: 0 };
        Self { stated: Stated::of(amount, Format::DecimalExponent), is_computed: false }
    }

    const fn amount(&self) -> &Amount {
        self.stated.amount()
    }
}

impl Opaque for Quantity {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.Quantity")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn Any).downcast_ref::<Self>().filter(|other| !other.is_computed)?;
        Some(self.amount().compare(other.amount()).is_eq())
    }

    fn text(&self) -> String {
        self.stated.to_string()
    }
}

/// Reads a quantity.
///
/// # Errors
/// If the text is not a quantity.
pub fn parse(text: &str) -> Outcome<Value<'static>> {
    Quantity::read(text).map(Value::opaque).map_err(|error| Error::new(error.to_string()))
}

fn read<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => parse(text),
        _ => unfit(),
    }
}

fn is_quantity<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(Stated::parse(text).is_ok().into()),
        _ => unfit(),
    }
}

fn one<'v>(arguments: &'v [Value<'_>]) -> Outcome<&'v Quantity> {
    match arguments {
        [quantity] => quantity.as_opaque().ok_or_else(Error::no_such_overload),
        _ => Err(Error::no_such_overload()),
    }
}

fn order(arguments: &[Value<'_>]) -> Outcome<std::cmp::Ordering> {
    let [a, b] = arguments else { return Err(Error::no_such_overload()) };
    match (a.as_opaque::<Quantity>(), b.as_opaque::<Quantity>()) {
        (Some(a), Some(b)) => Ok(a.amount().compare(b.amount())),
        _ => Err(Error::no_such_overload()),
    }
}

fn sign<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(Value::Int(one(arguments)?.amount().sign().into()))
}

fn is_greater<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(order(arguments)?.is_gt().into())
}

fn is_less<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(order(arguments)?.is_lt().into())
}

fn compare_to<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(Value::Int(order(arguments)? as i64))
}

fn as_float<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(Value::Double(one(arguments)?.amount().as_float()))
}

fn as_integer<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let integer = one(arguments)?.amount().as_integer();
    integer.map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
}

fn is_integer<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(one(arguments)?.amount().as_integer().is_some().into())
}

fn add<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    sum(arguments, false)
}

fn sub<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    sum(arguments, true)
}

/// Returns the sum or the difference in the format of the first operand, or of the second if the first is zero.
fn sum<'a>(arguments: &[Value<'a>], is_difference: bool) -> Outcome<Value<'a>> {
    let [a, b] = arguments else { return unfit() };
    let number;
    let (a, b) = match (a.as_opaque::<Quantity>(), b) {
        (Some(a), Value::Int(int)) => {
            number = Quantity::of_int(*int);
            (a, &number)
        }
        (Some(a), b) => (a, b.as_opaque::<Quantity>().ok_or_else(Error::no_such_overload)?),
        _ => return unfit(),
    };
    let format = if a.amount().sign() == 0 { b.stated.format() } else { a.stated.format() };
    let sum = if is_difference { a.amount().sub(b.amount()) } else { a.amount().add(b.amount()) };
    let amount = sum.ok_or_else(|| Error::new("quantity has too many digits"))?;
    Ok(Value::opaque(Quantity { stated: Stated::of(amount, format), is_computed: true }))
}
