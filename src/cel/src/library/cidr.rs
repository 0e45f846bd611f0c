//! `cidr`: ranges of addresses.

use flotilla_golang::netip::Prefix;
use flotilla_golang::strconv::quote;

use super::ip::{self, Ip};
use super::table::{overload, unfit};
use crate::cost::{self, CallEstimate, Cost, CostRange, Nodes, SizeRange, TEXT, scaled, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Kubernetes calls it `kubernetes.net.cidr`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.net.cidr",
    since: Since::Minor(30),
    functions: &[
        Function { name: "cidr", overloads: &[overload("string_to_cidr", "(string): net.CIDR", cost::READ, cidr)] },
        Function {
            name: "containsIP",
            overloads: &[
                overload("cidr_contains_ip_string", "net.CIDR.(string): bool", CONTAINS_IP_TEXT, contains_ip),
                overload("cidr_contains_ip_ip", "net.CIDR.(net.IP): bool", CONTAINS_IP, contains_ip),
            ],
        },
        Function {
            name: "containsCIDR",
            overloads: &[
                overload("cidr_contains_cidr_string", "net.CIDR.(string): bool", CONTAINS_CIDR_TEXT, contains_cidr),
                overload("cidr_contains_cidr", "net.CIDR.(net.CIDR): bool", CONTAINS_CIDR, contains_cidr),
            ],
        },
        Function { name: "ip", overloads: &[overload("cidr_ip", "net.CIDR.(): net.IP", cost::NOMINAL, address)] },
        Function {
            name: "prefixLength",
            overloads: &[overload("cidr_prefix_length", "net.CIDR.(): int", cost::NOMINAL, length)],
        },
        Function {
            name: "masked",
            overloads: &[overload("cidr_masked", "net.CIDR.(): net.CIDR", cost::NOMINAL, masked)],
        },
        Function { name: "isCIDR", overloads: &[overload("is_cidr", "(string): bool", cost::READ, is_cidr)] },
        Function {
            name: "string",
            overloads: &[overload("cidr_to_string", "(net.CIDR): string", cost::DEFAULT, to_string)],
        },
    ],
};

/// Bytes of an address, from IPv4 to IPv6.
const ADDRESS: SizeRange = SizeRange::new(4, 16);

const CONTAINS_IP: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::of(contains_estimate(nodes, false, false))),
    actual: |arguments, _| contains_actual(arguments, false, false),
    by_name: true,
};
const CONTAINS_IP_TEXT: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::of(contains_estimate(nodes, false, true))),
    actual: |arguments, _| contains_actual(arguments, false, true),
    by_name: true,
};
const CONTAINS_CIDR: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::of(contains_estimate(nodes, true, false))),
    actual: |arguments, _| contains_actual(arguments, true, false),
    by_name: true,
};
const CONTAINS_CIDR_TEXT: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::of(contains_estimate(nodes, true, true))),
    actual: |arguments, _| contains_actual(arguments, true, true),
    by_name: true,
};

/// Estimates the cost of comparing two addresses. Before that, a range is masked, and a text is parsed.
fn contains_estimate(nodes: &Nodes<'_>, is_range: bool, is_text: bool) -> CostRange {
    let mut cost = ADDRESS.add(ADDRESS).scaled(TEXT);
    if is_range {
        cost = cost.add(ADDRESS.scaled(TEXT)).add(CostRange::fixed(1));
    }
    if is_text {
        let size = nodes.arguments.first().map_or(SizeRange::UNKNOWN, |node| nodes.size(node));
        cost = cost.add(size.scaled(TEXT));
    }
    cost
}

fn contains_actual(arguments: &[Value<'_>], is_range: bool, is_text: bool) -> u64 {
    let [range, other] = arguments else { return 1 };
    let size = size_of(range);
    let masking = if is_range { scaled(size, TEXT) + 1 } else { 0 };
    let reading = if is_text { scaled(size_of(other), TEXT) } else { 0 };
    scaled(size + size, TEXT) + masking + reading
}

/// A range of addresses.
#[derive(Debug)]
struct Cidr(Prefix);

impl Opaque for Cidr {
    fn type_of(&self) -> Type {
        Type::opaque("net.CIDR", Vec::new())
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        (other as &dyn std::any::Any).downcast_ref::<Self>().map(|other| self.0 == other.0)
    }

    fn size(&self) -> Option<u64> {
        Some(u64::from(self.0.length().div_ceil(8)))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Parses a range. As in the reference, the prefix of the error message is doubled.
fn parse(text: &str) -> Outcome<Prefix> {
    let words = "network address parse error during conversion from string";
    let prefix = Prefix::parse(text).map_err(|error| Error::new(format!("{words}: {words}: {error}")))?;
    if prefix.addr().is_v4_in_v6() {
        return Err(Error::new(format!("{words}: IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(prefix)
}

fn cidr<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => parse(text).map(|prefix| Value::opaque(Cidr(prefix))),
        _ => unfit(),
    }
}

fn is_cidr<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(parse(text).is_ok().into()),
        _ => unfit(),
    }
}

fn with<'a>(arguments: &[Value<'a>], part: impl Fn(&Prefix) -> Value<'a>) -> Outcome<Value<'a>> {
    match arguments {
        [range] => range.as_opaque().map(|Cidr(prefix)| part(prefix)).ok_or_else(Error::no_such_overload),
        _ => unfit(),
    }
}

fn contains_ip<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [range, other] = arguments else { return unfit() };
    let Cidr(range) = range.as_opaque().ok_or_else(Error::no_such_overload)?;
    let contains = match other {
        // The reference does not report here why a text is not an address.
        Value::String(text) => range.contains(&ip::parse(text).map_err(|_| Error::no_such_overload())?),
        other => range.contains(&other.as_opaque::<Ip>().ok_or_else(Error::no_such_overload)?.0),
    };
    Ok(contains.into())
}

fn contains_cidr<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [range, other] = arguments else { return unfit() };
    let Cidr(range) = range.as_opaque().ok_or_else(Error::no_such_overload)?;
    let parsed;
    let inner = match other {
        Value::String(text) => {
            parsed = parse(text)?;
            &parsed
        }
        other => &other.as_opaque::<Cidr>().ok_or_else(Error::no_such_overload)?.0,
    };
    Ok((range.length() <= inner.length() && range.contains(inner.addr())).into())
}

fn address<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |prefix| Value::opaque(Ip(prefix.addr().clone())))
}

fn length<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |prefix| Value::Int(prefix.length().into()))
}

fn masked<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |prefix| Value::opaque(Cidr(prefix.masked())))
}

fn to_string<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |prefix| prefix.to_string().into())
}
