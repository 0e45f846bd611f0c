//! `format`: text with clauses to fill in, as `%s` and `%.2f`.
//!
//! [`read`] parses the clauses both for the check of a call with literal arguments and for the call itself.

use flotilla_golang::strconv::{format_float, quote};

use super::table::{bounded, unfit};
use super::text_number as number;
use crate::error::{Error, Outcome};
use crate::types::Type;
use crate::value::{Map, Value};

/// Default number of digits after the point.
const DIGITS: usize = 6;

/// A clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// `%s`: any value.
    Text,
    /// `%d`: a whole number.
    Decimal,
    /// `%f`: a double with this many digits after the point.
    Fixed(usize),
    /// `%e`: a double with an exponent. The precision is taken as its width.
    Scientific(usize),
    /// `%b`: a whole number or a bool in binary digits.
    Binary,
    /// `%x` and `%X`: a whole number, a string or bytes in hexadecimal digits.
    Hexadecimal {
        /// Whether the digits are capital letters.
        is_upper: bool,
    },
    /// `%o`: a whole number in octal digits.
    Octal,
}

impl Clause {
    /// Returns whether values of a type can fill the clause, as far as the type shows.
    pub fn takes(self, of: &Type) -> bool {
        match (self, of) {
            (_, Type::Dyn) => true,
            (Self::Text, of) => matches!(
                of,
                Type::List(_)
                    | Type::Map(_)
                    | Type::Int
                    | Type::Uint
                    | Type::Double
                    | Type::Bool
                    | Type::String
                    | Type::Timestamp
                    | Type::Bytes
                    | Type::Duration
                    | Type::Type(_)
                    | Type::Null
            ),
            (Self::Decimal | Self::Octal, of) => matches!(of, Type::Int | Type::Uint),
            (Self::Fixed(_) | Self::Scientific(_), of) => matches!(of, Type::Double | Type::String),
            (Self::Binary, of) => matches!(of, Type::Int | Type::Uint | Type::Bool),
            (Self::Hexadecimal { .. }, of) => matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
        }
    }

    /// Returns the error about a value that cannot fill the clause, given the name of its type.
    pub fn refusal(self, given: &str) -> String {
        let takes = match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hexadecimal { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{takes}, was given {given}")
    }
}

/// Parses a text: passes the text between clauses to `plain`, and the clauses with their numbers to `clause`.
///
/// # Errors
/// If a clause is invalid or has no value, or one of the functions fails.
pub fn read<T>(
    text: &str,
    values: usize,
    target: &mut T,
    plain: impl Fn(&mut T, &str) -> Result<(), String>,
    clause: impl Fn(&mut T, usize, Clause) -> Result<(), String>,
) -> Result<(), String> {
    let (mut rest, mut index) = (text, 0);
    while let Some(place) = rest.find('%') {
        plain(target, &rest[..place])?;
        rest = &rest[place + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            plain(target, "%")?;
            rest = after;
            continue;
        }
        if index >= values {
            return Err(format!("index {index} out of range"));
        }
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        let (found, after) = parse(rest).map_err(|why| format!("could not parse formatting clause: {why}"))?;
        clause(target, index, found).map_err(|why| format!("error during formatting: {why}"))?;
        (rest, index) = (after, index + 1);
    }
    plain(target, rest)
}

/// Parses the clause after a `%`. Returns the clause, and the text after it.
fn parse(text: &str) -> Result<(Clause, &str), String> {
    let (digits, rest) = precision(text).map_err(|why| format!("error while parsing precision: {why}"))?;
    let precision = digits.unwrap_or(DIGITS);
    // The reference looks at one byte, not at a character.
    let letter = char::from(rest.as_bytes().first().copied().unwrap_or_default());
    let clause = match letter {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hexadecimal { is_upper: letter == 'X' },
        'o' => Clause::Octal,
        _ => return Err(format!("unrecognized formatting clause \"{letter}\"")),
    };
    Ok((clause, &rest[1..]))
}

fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(digits) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = digits.find(|sign: char| !sign.is_ascii_digit());
    let end = end.ok_or("could not find end of precision specifier")?;
    let (digits, rest) = digits.split_at(end);
    let refused = |why: &str| {
        let shown = quote(digits);
        format!("error while converting precision to integer: strconv.Atoi: parsing {shown}: {why}")
    };
    if digits.is_empty() {
        return Err(refused("invalid syntax"));
    }
    let number: i64 = digits.parse().map_err(|_| refused("value out of range"))?;
    Ok((Some(usize::try_from(number).unwrap_or(usize::MAX)), rest))
}

/// Fills a text with the items of a list.
pub(super) fn format<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::String(text), Value::List(list)] = arguments else { return unfit() };
    let values = list.to_vec()?;
    let mut out = String::with_capacity(text.len());
    let fill = |out: &mut String, index: usize, clause: Clause| {
        let filled = filled(clause, &values[index])?;
        out.push_str(&filled);
        bounded(out.len()).map_err(|error| error.to_string())
    };
    let plain = |out: &mut String, part: &str| {
        out.push_str(part);
        Ok(())
    };
    let read = read(text, values.len(), &mut out, plain, fill);
    bounded(out.len())?;
    read.map_err(Error::new)?;
    Ok(out.into())
}

fn filled(clause: Clause, value: &Value<'_>) -> Result<String, String> {
    let refused = || Err(clause.refusal(value.type_of().runtime_name()));
    Ok(match (clause, value) {
        (Clause::Text, value) => return text(value),
        (Clause::Decimal, Value::Int(number)) => number.to_string(),
        (Clause::Decimal, Value::Uint(number)) => number.to_string(),
        (Clause::Binary, Value::Int(number)) => number::in_digits(*number, |size| format!("{size:b}")),
        (Clause::Binary, Value::Uint(number)) => format!("{number:b}"),
        (Clause::Binary, Value::Bool(truth)) => u8::from(*truth).to_string(),
        (Clause::Octal, Value::Int(number)) => number::in_digits(*number, |size| format!("{size:o}")),
        (Clause::Octal, Value::Uint(number)) => format!("{number:o}"),
        (Clause::Hexadecimal { is_upper }, value) => {
            let digits = match value {
                Value::Int(number) => number::in_digits(*number, |size| format!("{size:x}")),
                Value::Uint(number) => format!("{number:x}"),
                Value::String(text) => number::hexadecimal(text.as_bytes()),
                Value::Bytes(bytes) => number::hexadecimal(bytes),
                _ => return refused(),
            };
            if is_upper { digits.to_ascii_uppercase() } else { digits }
        }
        (Clause::Fixed(digits), value) if let Some(number) = double(value) => number::fixed(number, digits),
        (Clause::Scientific(width), value) if let Some(number) = double(value) => number::scientific(number, width),
        _ => return refused(),
    })
}

/// Returns a double, also from a string that names one without digits, such as `NaN`.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Formats a value for `%s`.
fn text(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => format_float(*number),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| {
            "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string".to_owned()
        })?,
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(duration) => duration.to_string(),
        Value::Type(of) => of.runtime_name().to_owned(),
        Value::List(list) => {
            let items = list.iter().map(|item| member(&item.map_err(|error| error.to_string())?));
            format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        Value::Map(map) => entries(map)?,
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(Clause::Text.refusal(value.type_of().runtime_name()));
        }
    })
}

/// Formats a value inside a list or a map.
fn member(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => quote(text),
        Value::Bytes(_) => format!("b{}", quote(&text(value)?)),
        Value::Double(number) if !number.is_finite() => quote(&number::plain(*number)),
        Value::Double(number) => number::plain(*number),
        Value::Timestamp(time) => format!("timestamp({})", quote(&time.to_string())),
        Value::Duration(duration) => format!("duration({})", quote(&duration.to_string())),
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(format!("no formatting function for {}", value.type_of().runtime_name()));
        }
        value => text(value)?,
    })
}

/// Formats the entries of a map, sorted by the text of their keys.
fn entries(map: &Map<'_>) -> Result<String, String> {
    let mut entries = Vec::new();
    for (key, value) in map.iter() {
        let value = value.map_err(|error| error.to_string())?;
        let shown = match &key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => member(&key)?,
            other => {
                let of = other.type_of();
                return Err(format!("no formatting function for map key of type {}", of.runtime_name()));
            }
        };
        entries.push((shown, member(&value)?));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let shown: Vec<_> = entries.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", shown.join(", ")))
}

/// Formats a value for the error that a string was expected in its place.
pub(super) fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "0".to_owned(),
        value => text(value).unwrap_or_else(|_| value.type_of().to_string()),
    }
}
