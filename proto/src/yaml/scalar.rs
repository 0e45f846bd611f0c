//! What plain scalars mean in YAML 1.1, as go-yaml v2 reads them.

use crate::value::{Str, Value};

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
        return Some(text.parse().map(Value::Int).unwrap_or_else(|_| Value::Float(text.parse().unwrap_or(0.0))));
    }
    let decimal = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().any(|b| b.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if !decimal {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    let whole = number.fract() == 0.0 && number.abs() < 9.0e15;
    Some(if whole { Value::Int(number as i64) } else { Value::Float(number) })
}

/// The JSON key of a YAML key; lists and maps are none.
pub fn key(value: &Value, text: Option<&str>) -> Option<Str> {
    Some(match value {
        Value::Str(text) => text.clone(),
        Value::Bool(flag) => Str::from(if *flag { "true" } else { "false" }),
        Value::Int(number) => Str::from(number.to_string()),
        Value::Float(_) | Value::Null => Str::from(text.unwrap_or("null")),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

/// Whether a text must be quoted so that it is read as text again.
pub fn is_ambiguous(text: &str) -> bool {
    plain_value(text).is_some()
        || is_timestamp(text)
        || matches!(
            text,
            ".nan"
                | ".NaN"
                | ".NAN"
                | ".inf"
                | ".Inf"
                | ".INF"
                | "-.inf"
                | "-.Inf"
                | "-.INF"
                | "+.inf"
                | "+.Inf"
                | "+.INF"
                | "<<"
        )
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
