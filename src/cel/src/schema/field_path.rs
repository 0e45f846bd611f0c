//! `fieldPath` of a rule: the field that its error names.

use std::borrow::Cow;
use std::fmt::Write;

use super::structural::Schema;

/// Why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    NoField,
    /// The path ends where a name must follow.
    #[error("unexpected end of JSON path")]
    End,
    /// Brackets around text that is not a quoted name.
    #[error("expected single quoted string but got {0}")]
    Unquoted(String),
    /// A `\` before a character that it does not escape.
    #[error("invalid string literal: invalid escape char {0}")]
    Escape(String),
    /// A `[` without its `]`.
    #[error("expected ] but got {0}")]
    Bracket(String),
    /// Neither `.` nor `[`.
    #[error("expected [ or . but got: {0}")]
    Sign(String),
}

/// Takes the next part of a path: a delimiter, a quoted name with its quotes, or all text before the next delimiter.
fn next<'p>(rest: &mut &'p str) -> Option<&'p str> {
    let bytes = rest.as_bytes();
    let end = match bytes.first()? {
        b'.' | b'[' | b']' => 1,
        b'\'' => {
            let closes = |place: &usize| bytes[*place] == b'\'' && bytes[place - 1] != b'\\';
            (1..bytes.len()).find(closes).map_or(bytes.len(), |place| place + 1)
        }
        _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
    };
    let (part, after) = rest.split_at(end);
    *rest = after;
    Some(part)
}

/// Parses a path in a schema; returns it in the form of errors, without a leading point.
///
/// # Errors
/// If it is invalid, or leads to no field.
pub fn normalize(path: &str, schema: &Schema) -> Result<String, Error> {
    let (mut rest, mut place, mut out) = (path, schema, String::new());
    while let Some(part) = next(&mut rest) {
        let name: Cow<'_, str> = match part {
            "." => next(&mut rest).ok_or(Error::End)?.into(),
            "[" => {
                let quoted = next(&mut rest).ok_or(Error::End)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                unescape(inner.ok_or_else(|| Error::Unquoted(quoted.to_owned()))?)?.into()
            }
            other => return Err(Error::Sign(other.to_owned())),
        };
        if !place.properties.is_empty() {
            let point = if out.is_empty() { "" } else { "." };
            let _ = write!(out, "{point}{name}");
            place = place.property(&name).ok_or(Error::NoField)?;
        } else {
            let _ = write!(out, "[{name}]");
            place = place.additional.as_deref().ok_or(Error::NoField)?;
        }
        if part == "[" {
            match next(&mut rest).ok_or(Error::End)? {
                "]" => {}
                other => return Err(Error::Bracket(other.to_owned())),
            }
        }
    }
    Ok(out)
}

fn unescape(text: &str) -> Result<String, Error> {
    let (mut out, mut signs) = (String::with_capacity(text.len()), text.chars());
    while let Some(sign) = signs.next() {
        let escaped = if sign == '\\' { signs.next() } else { None };
        out.push(match escaped {
            None => sign,
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(plain @ ('\'' | '\\')) => plain,
            Some(other) => return Err(Error::Escape(format!("\\{other}"))),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn paths_lead_to_places_of_the_schema() {
        let schema = Schema::of(&value!({"type": "object", "properties": {
            "a": {"type": "integer"},
            "a'b": {"type": "integer"},
            "b": {"type": "object", "properties": {"x-y": {"type": "integer"}, "x.y": {"type": "integer"}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                "z": {"type": "integer"}}}}}}));
        for (path, expected) in [
            (".a", Ok("a")),
            (".b.x-y", Ok("b.x-y")),
            (".b['x.y']", Ok("b.x.y")),
            ("['a\\'b']", Ok("a'b")),
            (".m['k'].z", Ok("m[k].z")),
            (".m.k.z", Ok("m[k].z")),
            ("a", Err(Error::Sign("a".to_owned()))),
            (".c", Err(Error::NoField)),
            (".a.b", Err(Error::NoField)),
            (".", Err(Error::End)),
            (".b[0]", Err(Error::Unquoted("0".to_owned()))),
            (".b['x-y'", Err(Error::End)),
        ] {
            assert_eq!(normalize(path, &schema), expected.map(str::to_owned), "{path}");
        }
    }
}
