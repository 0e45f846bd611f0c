//! Reads scenarios: YAML, in which plain scalars have their meaning in YAML 1.1.

use std::collections::HashMap;
use std::sync::LazyLock;

use granit_parser::{Event, Parser, ScalarStyle};
use regex::Regex;

use super::json::Json;

static INT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$").unwrap()
});
static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)$").unwrap()
});

/// A list or map that has not ended, with its anchor; of a map also the key whose value comes next.
enum Open {
    List(usize, Vec<Json>),
    Map(usize, Vec<(String, Json)>, Option<String>),
}

/// Reads the first document.
///
/// # Errors
/// States the fault, and its place if the text is not YAML.
pub fn parse(text: &str) -> Result<Json, String> {
    let (mut open, mut anchors): (Vec<Open>, HashMap<usize, Json>) = (Vec::new(), HashMap::new());
    for next in Parser::new_from_str(text) {
        let (event, _) = next.map_err(|error| error.to_string())?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                (anchor, if is_plain { plain(&text)? } else { Json::text(text) })
            }
            Event::Alias(anchor) => (0, anchors.get(&anchor).cloned().ok_or("an alias without an anchor")?),
            Event::SequenceStart(_, anchor, _) => {
                open.push(Open::List(anchor, Vec::new()));
                continue;
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(Open::Map(anchor, Vec::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(anchor, items)) => (anchor, Json::List(items)),
                Some(Open::Map(anchor, members, _)) => (anchor, Json::Map(members)),
                None => return Err("an end without a beginning".into()),
            },
            _ => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List(_, items)) => items.push(value),
            Some(Open::Map(_, members, key)) => match (key.take(), value) {
                (Some(key), value) => Json::put(members, key, value),
                (None, Json::Text(name)) => *key = Some(name),
                (None, other) => return Err(format!("a key that is no text: {}", other.dump())),
            },
        }
    }
    Err("no document".into())
}

/// Returns the meaning of a plain scalar.
fn plain(text: &str) -> Result<Json, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Json::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Json::Bool(false),
        _ if INT.is_match(text) => Json::Int(int(text).ok_or_else(|| format!("{text} is too large"))?),
        _ if FLOAT.is_match(text) => {
            Json::Float(text.replace('_', "").parse().map_err(|_| format!("{text} is no number"))?)
        }
        _ => Json::text(text),
    })
}

fn int(text: &str) -> Option<i128> {
    let digits = text.replace('_', "");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, digits.trim_start_matches('+')),
    };
    let number = if let Some(binary) = digits.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()?
    } else if let Some(hexadecimal) = digits.strip_prefix("0x") {
        i128::from_str_radix(hexadecimal, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i128::from_str_radix(digits, 8).ok()?
    } else {
        // In base 60, 1:30 is 90.
        digits.split(':').try_fold(0_i128, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))?
    };
    Some(sign * number)
}
