//! `semver`: versions as semver.org defines them.

use std::cmp::Ordering;

use flotilla_golang::semver::{SemanticVersion, SemanticVersionError};

use super::table::{overload, unfit};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Kubernetes calls it `kubernetes.Semver`, version 1.
pub static LIBRARY: Library = Library {
    name: "kubernetes.Semver",
    since: Since::Minor(33),
    functions: &[
        Function {
            name: "semver",
            overloads: &[
                overload("string_to_semver", "(string): kubernetes.Semver", cost::READ, semver),
                overload("string_bool_to_semver", "(string, bool): kubernetes.Semver", cost::READ, semver),
            ],
        },
        Function {
            name: "isSemver",
            overloads: &[
                overload("is_semver_string", "(string): bool", cost::READ, is_semver),
                overload("is_semver_string_bool", "(string, bool): bool", cost::READ, is_semver),
            ],
        },
        Function {
            name: "isGreaterThan",
            overloads: &[overload(
                "semver_is_greater_than",
                "kubernetes.Semver.(kubernetes.Semver): bool",
                cost::NOMINAL,
                is_greater,
            )],
        },
        Function {
            name: "isLessThan",
            overloads: &[overload(
                "semver_is_less_than",
                "kubernetes.Semver.(kubernetes.Semver): bool",
                cost::NOMINAL,
                is_less,
            )],
        },
        Function {
            name: "compareTo",
            overloads: &[overload(
                "semver_compare_to",
                "kubernetes.Semver.(kubernetes.Semver): int",
                cost::NOMINAL,
                compare_to,
            )],
        },
        Function {
            name: "major",
            overloads: &[overload("semver_major", "kubernetes.Semver.(): int", cost::NOMINAL, major)],
        },
        Function {
            name: "minor",
            overloads: &[overload("semver_minor", "kubernetes.Semver.(): int", cost::NOMINAL, minor)],
        },
        Function {
            name: "patch",
            overloads: &[overload("semver_patch", "kubernetes.Semver.(): int", cost::NOMINAL, patch)],
        },
    ],
};

/// A version as a value of expressions.
#[derive(Debug)]
struct VersionValue(SemanticVersion);

impl Opaque for VersionValue {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.Semver")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        (other as &dyn std::any::Any).downcast_ref::<Self>().map(|other| self.0.precedence(&other.0).is_eq())
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

fn parse(text: &str) -> Outcome<VersionValue> {
    text.parse().map(VersionValue).map_err(|error: SemanticVersionError| Error::new(error.to_string()))
}

/// Parses a version that may begin with `v`, have leading zeros, and lack its last numbers.
fn parse_loosely(text: &str) -> Outcome<VersionValue> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|part| part.contains(['+', '-'])) {
            return Err(Error::new("short version cannot contain PreRelease/Build meta data"));
        }
        parts.resize(3, "0".to_owned());
    }
    parse(&parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let bare = part.trim_start_matches('0');
    if bare.starts_with(|sign: char| sign.is_ascii_digit()) { bare.to_owned() } else { format!("0{bare}") }
}

fn read(arguments: &[Value<'_>]) -> Outcome<Outcome<VersionValue>> {
    match arguments {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(parse(text)),
        [Value::String(text), Value::Bool(true)] => Ok(parse_loosely(text)),
        _ => Err(Error::no_such_overload()),
    }
}

fn semver<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    read(arguments)?.map(Value::opaque)
}

fn is_semver<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    Ok(read(arguments)?.is_ok().into())
}

fn order(arguments: &[Value<'_>]) -> Outcome<Ordering> {
    let [a, b] = arguments else { return Err(Error::no_such_overload()) };
    match (a.as_opaque::<VersionValue>(), b.as_opaque::<VersionValue>()) {
        (Some(a), Some(b)) => Ok(a.0.precedence(&b.0)),
        _ => Err(Error::no_such_overload()),
    }
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

fn number_of<'a>(arguments: &[Value<'a>], number: impl Fn(&SemanticVersion) -> u64) -> Outcome<Value<'a>> {
    match arguments {
        [version] => {
            let version: &VersionValue = version.as_opaque().ok_or_else(Error::no_such_overload)?;
            Ok(Value::Int(number(&version.0) as i64))
        }
        _ => unfit(),
    }
}

fn major<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    number_of(arguments, |version| version.major)
}

fn minor<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    number_of(arguments, |version| version.minor)
}

fn patch<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    number_of(arguments, |version| version.patch)
}
