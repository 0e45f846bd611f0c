//! What plain scalars mean in YAML 1.1, as go-yaml v2 reads them.

use crate::value::{Float, Str, Value};

/// The value of a scalar; quoted ones are text. `tag` is the last part of an explicit tag, as `str` or `int`.
pub fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Value {
    match tag {
        Some("str") => return Value::from(text),
        Some("binary") => return Value::from(text),
        _ if !plain && tag.is_none() => return Value::from(text),
        _ => {}
    }
    plain_value(text).unwrap_or_else(|| Value::from(text))
}

/// What a plain text means, unless it is text.
fn plain_value(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Some(true.into()),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(false.into());
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    number(&text.replace('_', ""))
}

/// What JSON has no word for, as Go names it: the value of a scalar that is infinite or no number.
pub fn infinity(text: &str, plain: bool, tag: Option<&str>) -> Option<Infinity> {
    if !plain && tag.is_none() || matches!(tag, Some("str" | "binary")) {
        return None;
    }
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(Infinity { name: "+Inf", key: ".inf" }),
        "-.inf" | "-.Inf" | "-.INF" => Some(Infinity { name: "-Inf", key: "-.inf" }),
        ".nan" | ".NaN" | ".NAN" => Some(Infinity { name: "NaN", key: ".nan" }),
        _ => None,
    }
}

/// A float that JSON cannot write.
#[derive(Clone, Copy)]
pub struct Infinity {
    /// What Go calls it.
    pub name: &'static str,
    /// The text that it is as a key.
    pub key: &'static str,
}

/// A number; text that is written as one, but too large for any, is text.
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
    if let Some((radix, digits)) = radix
        && let Ok(number) = i64::from_str_radix(digits, radix)
    {
        return Some(Value::Int(if negative { -number } else { number }));
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

/// The JSON key of a YAML key; lists and maps are none.
pub fn key(value: &Value, text: Option<&str>) -> Option<Str> {
    Some(match value {
        Value::Str(text) => text.clone(),
        Value::Bool(flag) => Str::from(if *flag { "true" } else { "false" }),
        Value::Int(number) => Str::from(number.to_string()),
        Value::Float(number) => Str::from(shortest(number.get())),
        Value::Null => Str::from(text.unwrap_or("null")),
        Value::Array(_) | Value::Object(_) | Value::Hole(_) => return None,
    })
}

/// A float as Go writes it in the fewest digits: with an exponent below 1e-4 and from 1e6 on.
fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        _ => number.to_string(),
    }
}

/// Whether a text must be quoted so that it is read as text again.
pub fn is_ambiguous(text: &str) -> bool {
    plain_value(text).is_some() || is_timestamp(text) || infinity(text, true, None).is_some() || text == "<<"
}

/// Whether go-yaml takes a plain text for a time.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    digits == 4
        && bytes.get(4) == Some(&b'-')
        && bytes.get(5).is_some_and(u8::is_ascii_digit)
        && text[5..].bytes().all(|b| b.is_ascii_digit() || b"-:.TtZz+ ".contains(&b))
}
