//! `semver`: versions as semver.org defines them.

use std::cmp::Ordering;
use std::fmt::Write;

use flotilla_golang::strconv::{parse_uint, quote};

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

/// A version.
#[derive(Debug)]
struct SemanticVersion {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: Vec<PrereleasePart>,
    build: Vec<String>,
}

/// A part of a prerelease. Numbers come before text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PrereleasePart {
    Number(u64),
    Text(String),
}

impl SemanticVersion {
    /// Compares two versions; ignores build metadata.
    fn order(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

impl Opaque for SemanticVersion {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.Semver")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        (other as &dyn std::any::Any).downcast_ref::<Self>().map(|other| self.order(other).is_eq())
    }

    fn text(&self) -> String {
        let mut text = format!("{}.{}.{}", self.major, self.minor, self.patch);
        for (place, part) in self.prerelease.iter().enumerate() {
            let sign = if place == 0 { '-' } else { '.' };
            let _ = match part {
                PrereleasePart::Number(number) => write!(text, "{sign}{number}"),
                PrereleasePart::Text(part) => write!(text, "{sign}{part}"),
            };
        }
        for (place, part) in self.build.iter().enumerate() {
            let _ = write!(text, "{}{part}", if place == 0 { '+' } else { '.' });
        }
        text
    }
}

fn number(text: &str, name: &str) -> Outcome<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let name = name.to_ascii_lowercase();
        return Err(Error::new(format!("Invalid character(s) found in {name} number {}", quote(text))));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(Error::new(format!("{name} number must not contain leading zeroes {}", quote(text))));
    }
    parse_uint(text).map_err(|error| Error::new(error.to_string()))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn part(text: &str) -> Outcome<PrereleasePart> {
    if text.is_empty() {
        return Err(Error::new("Prerelease is empty"));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            let why = "Numeric PreRelease version must not contain leading zeroes";
            return Err(Error::new(format!("{why} {}", quote(text))));
        }
        return parse_uint(text).map(PrereleasePart::Number).map_err(|error| Error::new(error.to_string()));
    }
    if is_word(text) {
        return Ok(PrereleasePart::Text(text.to_owned()));
    }
    Err(Error::new(format!("Invalid character(s) found in prerelease {}", quote(text))))
}

fn build(text: &str) -> Outcome<String> {
    if text.is_empty() {
        return Err(Error::new("Build meta data is empty"));
    }
    if is_word(text) {
        return Ok(text.to_owned());
    }
    Err(Error::new(format!("Invalid character(s) found in build meta data {}", quote(text))))
}

fn parse(text: &str) -> Outcome<SemanticVersion> {
    if text.is_empty() {
        return Err(Error::new("Version string empty"));
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::new("No Major.Minor.Patch elements found"));
    };
    let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
    let (rest, builds) = rest.split_once('+').map_or((rest, None), |(rest, builds)| (rest, Some(builds)));
    let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(patch, parts)| (patch, Some(parts)));
    let patch = number(patch, "Patch")?;
    let prerelease = prerelease.into_iter().flat_map(|parts| parts.split('.')).map(part).collect::<Outcome<_>>()?;
    let build = builds.into_iter().flat_map(|parts| parts.split('.')).map(build).collect::<Outcome<_>>()?;
    Ok(SemanticVersion { major, minor, patch, prerelease, build })
}

/// Parses a version that may begin with `v`, have leading zeros, and lack its last numbers.
fn parse_loosely(text: &str) -> Outcome<SemanticVersion> {
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

fn read(arguments: &[Value<'_>]) -> Outcome<Outcome<SemanticVersion>> {
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
    match (a.as_opaque::<SemanticVersion>(), b.as_opaque::<SemanticVersion>()) {
        (Some(a), Some(b)) => Ok(a.order(b)),
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
            let version = version.as_opaque().ok_or_else(Error::no_such_overload)?;
            Ok(Value::Int(number(version) as i64))
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
