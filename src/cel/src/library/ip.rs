//! `ip`: addresses of hosts.

use flotilla_golang::netip::Addr;
use flotilla_golang::strconv::quote;

use super::table::{overload, unfit};
use crate::cost::{self, CallEstimate, Cost, TEXT, scaled, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Kubernetes calls it `kubernetes.net.ip`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.net.ip",
    since: Since::Minor(30),
    functions: &[
        Function { name: "ip", overloads: &[overload("string_to_ip", "(string): net.IP", cost::READ, ip)] },
        Function { name: "family", overloads: &[overload("ip_family", "net.IP.(): int", cost::NOMINAL, family)] },
        Function {
            name: "ip.isCanonical",
            overloads: &[overload("ip_is_canonical", "(string): bool", READ_TWICE, is_canonical)],
        },
        Function {
            name: "isUnspecified",
            overloads: &[overload("ip_is_unspecified", "net.IP.(): bool", cost::NOMINAL, is_unspecified)],
        },
        Function {
            name: "isLoopback",
            overloads: &[overload("ip_is_loopback", "net.IP.(): bool", cost::NOMINAL, is_loopback)],
        },
        Function {
            name: "isLinkLocalMulticast",
            overloads: &[overload("ip_is_link_local_multicast", "net.IP.(): bool", cost::NOMINAL, is_link_multicast)],
        },
        Function {
            name: "isLinkLocalUnicast",
            overloads: &[overload("ip_is_link_local_unicast", "net.IP.(): bool", cost::NOMINAL, is_link_unicast)],
        },
        Function {
            name: "isGlobalUnicast",
            overloads: &[overload("ip_is_global_unicast", "net.IP.(): bool", cost::NOMINAL, is_global_unicast)],
        },
        Function { name: "isIP", overloads: &[overload("is_ip", "(string): bool", cost::READ, is_ip)] },
        Function {
            name: "string",
            overloads: &[overload("ip_to_string", "(net.IP): string", cost::DEFAULT, to_string)],
        },
    ],
};

/// One pass to read, and one to compare.
const READ_TWICE: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::of(nodes.first_size().scaled(2.0 * TEXT))),
    actual: |arguments, _| arguments.first().map_or(1, |text| scaled(size_of(text), 2.0 * TEXT)),
    by_name: true,
};

/// An IP address without a zone. It is not an IPv4-mapped IPv6 address.
#[derive(Debug)]
pub struct Ip(pub Addr);

impl Opaque for Ip {
    fn type_of(&self) -> Type {
        Type::opaque("net.IP", Vec::new())
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        (other as &dyn std::any::Any).downcast_ref::<Self>().map(|other| self.0 == other.0)
    }

    fn size(&self) -> Option<u64> {
        Some(u64::from(self.0.bits() / 8))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Reads an address.
///
/// # Errors
/// If it is no address, has a zone, or is an IPv4-mapped IPv6 address.
pub fn parse(text: &str) -> Outcome<Addr> {
    let addr = Addr::parse(text).map_err(|error| {
        Error::new(format!("IP Address {} parse error during conversion from string: {error}", quote(text)))
    })?;
    if !addr.zone().is_empty() {
        return Err(Error::new(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    if addr.is_v4_in_v6() {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(addr)
}

fn ip<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => parse(text).map(|addr| Value::opaque(Ip(addr))),
        _ => unfit(),
    }
}

fn is_ip<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(parse(text).is_ok().into()),
        _ => unfit(),
    }
}

fn is_canonical<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok((parse(text)?.to_string() == **text).into()),
        _ => unfit(),
    }
}

fn with<'a>(arguments: &[Value<'a>], part: impl Fn(&Addr) -> Value<'a>) -> Outcome<Value<'a>> {
    match arguments {
        [ip] => ip.as_opaque().map(|Ip(addr)| part(addr)).ok_or_else(Error::no_such_overload),
        _ => unfit(),
    }
}

fn family<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| Value::Int(if addr.is_v4() { 4 } else { 6 }))
}

fn is_unspecified<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| addr.is_unspecified().into())
}

fn is_loopback<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| addr.is_loopback().into())
}

fn is_link_multicast<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| addr.is_link_local_multicast().into())
}

fn is_link_unicast<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| addr.is_link_local_unicast().into())
}

fn is_global_unicast<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| addr.is_global_unicast().into())
}

fn to_string<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |addr| addr.to_string().into())
}
