//! The values of plain scalars in YAML 1.1, as go-yaml v2 reads them.

use flotilla_golang::strconv::quote;

use super::events::OWN_TAGS;
use crate::base64;
use crate::value::{Float, Hole, Str, Value};

/// The value of a scalar.
pub enum Scalar {
    /// A value of JSON.
    Value(Value),
    /// A whole float. JSON does not distinguish it from an integer, but keys do.
    Whole(i64),
    /// A float that JSON cannot write.
    Infinite {
        /// Its name in Go.
        name: &'static str,
        /// Its text as a key.
        key: &'static str,
    },
}

/// The value of a plain text, and the last part of the tag that it would have.
type Read = (Scalar, &'static str);

/// Returns the value of a scalar. It is a string if it is quoted and has no tag, or has a tag without a meaning here.
///
/// # Errors
/// Fails, in the words of go-yaml, when the value is of another type than its tag says.
pub fn resolve(text: &str, is_plain: bool, tag: Option<&str>) -> Result<Scalar, String> {
    let as_text = || Scalar::Value(text.into());
    let Some(tag) = tag else {
        return Ok(if is_plain { plain(text).map_or_else(as_text, |(value, _)| value) } else { as_text() });
    };
    let Some(kind) = tag.strip_prefix(OWN_TAGS) else { return Ok(as_text()) };
    match kind {
        "binary" => return binary(text).map(Scalar::Value),
        "bool" | "int" | "float" | "null" | "timestamp" => {}
        _ => return Ok(as_text()),
    }
    let (value, found) =
        plain(text).unwrap_or_else(|| (as_text(), if is_timestamp(text) { "timestamp" } else { "str" }));
    if found == kind || (kind, found) == ("float", "int") {
        return Ok(value);
    }
    Err(format!("cannot decode !!{found} `{text}` as a !!{kind}"))
}

fn binary(text: &str) -> Result<Value, String> {
    let bytes = base64::decode(text).map_err(|_| "!!binary value contains invalid base64 data")?;
    // Each byte that is not a character becomes a replacement character.
    let mut decoded = String::new();
    for part in bytes.utf8_chunks() {
        decoded.push_str(part.valid());
        decoded.extend(part.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded.into())
}

/// Returns the value of a plain text. Returns `None` if it is a string.
fn plain(text: &str) -> Option<Read> {
    let value = |value: Value, tag| Some((Scalar::Value(value), tag));
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return value(Value::Null, "null"),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return value(true.into(), "bool");
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return value(false.into(), "bool");
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Some((Scalar::Infinite { name: "+Inf", key: ".inf" }, "float"));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Some((Scalar::Infinite { name: "-Inf", key: "-.inf" }, "float")),
        ".nan" | ".NaN" | ".NAN" => return Some((Scalar::Infinite { name: "NaN", key: ".nan" }, "float")),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let bare = text.replace('_', "");
    match number(&bare)? {
        number @ Value::Hole(_) => value(number, "int"),
        number @ Value::Int(_) if !bare.contains(['.', 'e', 'E']) || bare.contains(['x', 'X']) => value(number, "int"),
        Value::Int(number) => Some((Scalar::Whole(number), "float")),
        number => value(number, "float"),
    }
}

/// Returns a number. Returns `None` for other text, and for numbers that are too large for any type.
fn number(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => Some((16, &digits[2..])),
        Some("0b" | "0B") => Some((2, &digits[2..])),
        Some("0o" | "0O") => Some((8, &digits[2..])),
        Some(two) if two.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) => Some((8, &digits[1..])),
        _ => None,
    };
    // go-yaml itself takes `0b` away, and the digits may have a sign of their own.
    let may_have_sign = text.starts_with("0b");
    let radix = radix.filter(|(_, digits)| may_have_sign || !digits.starts_with(['+', '-']));
    if let Some((radix, digits)) = radix {
        let signed = if negative {
            i64::from_str_radix(&format!("-{digits}"), radix)
        } else {
            i64::from_str_radix(digits, radix)
        };
        if let Ok(number) = signed {
            return Some(Value::Int(number));
        }
    }
    // A number that only fits into an unsigned type keeps its digits: readers of its value make it a float, and
    // quantities use the digits.
    let has_sign = digits.len() < text.len() || radix.is_some_and(|(_, digits)| digits.starts_with(['+', '-']));
    let unsigned = match radix {
        Some((radix, digits)) => u64::from_str_radix(digits, radix).ok(),
        None => digits.parse().ok(),
    };
    if let Some(number) = unsigned.filter(|&number| !has_sign && i64::try_from(number).is_err()) {
        return Some(Value::Hole(Hole::Literal(number.to_string().into())));
    }
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map(Value::Int).ok().or_else(|| float(text).map(Value::Float));
    }
    let decimal = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().any(|b| b.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if !decimal {
        return None;
    }
    let number = float(text)?;
    let whole = number.get().fract() == 0.0 && number.get().abs() < 9.0e15;
    Some(if whole { Value::Int(number.get() as i64) } else { Value::Float(number) })
}

fn float(text: &str) -> Option<Float> {
    text.parse().ok().and_then(Float::new)
}

/// Returns the JSON key of a YAML key. Returns `None` for lists, maps and null.
pub fn key(value: &Value) -> Option<Str> {
    Some(match value {
        Value::Str(text) => text.clone(),
        Value::Bool(flag) => Str::from(if *flag { "true" } else { "false" }),
        Value::Int(number) => Str::from(number.to_string()),
        Value::Float(number) => Str::from(shortest(number.get())),
        Value::Hole(Hole::Literal(text)) => float(text).map(|number| Str::from(shortest(number.get())))?,
        Value::Null | Value::Array(_) | Value::Object(_) | Value::Hole(_) => return None,
    })
}

/// Returns a value in Go's own syntax.
pub fn go_syntax(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Str(text) => quote(text),
        Value::Array(items) => format!("[]interface {{}}{{{}}}", joined(items.iter().map(go_syntax).collect())),
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| format!("{}:{}", quote(key), go_syntax(value)));
            format!("map[interface {{}}]interface {{}}{{{}}}", joined(members.collect()))
        }
        Value::Null | Value::Hole(Hole::Deep | Hole::Number(_)) => "interface {}(nil)".to_owned(),
        scalar => key(scalar).unwrap_or_default().to_string(),
    }
}

/// Returns a float in the fewest digits, as Go does: with an exponent below 1e-4 and from 1e6 on.
pub fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        _ => number.to_string(),
    }
}

/// Returns whether a text must be quoted so that it is read as a string again.
pub fn is_ambiguous(text: &str) -> bool {
    plain(text).is_some() || is_timestamp(text) || is_sexagesimal(text) || text == "<<"
}

/// Returns whether go-yaml reads a plain text as a time.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    digits == 4
        && bytes.get(4) == Some(&b'-')
        && bytes.get(5).is_some_and(u8::is_ascii_digit)
        && text[5..].bytes().all(|b| b.is_ascii_digit() || b"-:.TtZz+ ".contains(&b))
}

/// Returns whether YAML 1.1 reads a plain text as a number to the base of 60, which times of day look like.
fn is_sexagesimal(text: &str) -> bool {
    let Some((whole, rest)) = text.strip_prefix(['-', '+']).unwrap_or(text).split_once(':') else { return false };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let (sixties, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_sixtieth = |part: &str| match part.as_bytes() {
        [low] => low.is_ascii_digit(),
        [high, low] => (b'0'..=b'5').contains(high) && low.is_ascii_digit(),
        _ => false,
    };
    whole.starts_with(|first: char| first.is_ascii_digit())
        && is_number(whole)
        && is_number(fraction)
        && sixties.split(':').all(is_sixtieth)
}

/// Returns a float as go-yaml writes it. Whole ones that fit into 64 bits are written as integers.
pub fn float_text(number: f64) -> String {
    let whole = number.to_string();
    if whole.parse::<u64>().is_ok() { whole } else { shortest(number) }
}
