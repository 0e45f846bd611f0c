//! Paths of fields in definitions, such as `.spec.replicas` and `.metadata['a.b']`. Reads the names in a path, and
//! checks the `fieldPath` of a rule, which is the field that the error of the rule names.

use std::borrow::Cow;
use std::fmt::Write;

use super::structural::Schema;

/// The reason why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    NoField,
    /// The path ends where a name must follow.
    #[error("unexpected end of JSON path")]
    End,
    /// Brackets in a path that must have none.
    #[error("array notation is not allowed")]
    Brackets,
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

/// Reads the names of a path from left to right. No name follows an error.
///
/// A name in brackets is returned before its `]` is checked: a caller that looks the name up reports an unknown name
/// first, and a missing bracket afterwards.
#[derive(Debug)]
pub struct Names<'p> {
    rest: &'p str,
    /// Whether names may stand in brackets.
    may_be_quoted: bool,
    /// Whether the `]` of the last name follows.
    is_open: bool,
}

impl<'p> Names<'p> {
    /// Begins at the start of a path. `may_be_quoted` allows names in brackets.
    pub const fn of(path: &'p str, may_be_quoted: bool) -> Self {
        Names { rest: path, may_be_quoted, is_open: false }
    }

    /// Takes the next part of the path: a delimiter, a quoted name with its quotes, or all text before the next
    /// delimiter.
    fn part(&mut self) -> Option<&'p str> {
        let bytes = self.rest.as_bytes();
        let end = match bytes.first()? {
            b'.' | b'[' | b']' => 1,
            b'\'' => {
                let closes = |place: &usize| bytes[*place] == b'\'' && bytes[place - 1] != b'\\';
                (1..bytes.len()).find(closes).map_or(bytes.len(), |place| place + 1)
            }
            _ => self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len()),
        };
        let (part, after) = self.rest.split_at(end);
        self.rest = after;
        Some(part)
    }

    fn name(&mut self) -> Result<Option<Cow<'p, str>>, Error> {
        if std::mem::take(&mut self.is_open) {
            match self.part().ok_or(Error::End)? {
                "]" => {}
                other => return Err(Error::Bracket(other.to_owned())),
            }
        }
        match self.part() {
            None => Ok(None),
            Some(".") => Ok(Some(self.part().ok_or(Error::End)?.into())),
            Some("[") if !self.may_be_quoted => Err(Error::Brackets),
            Some("[") => {
                let quoted = self.part().ok_or(Error::End)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                self.is_open = true;
                Ok(Some(unescape(inner.ok_or_else(|| Error::Unquoted(quoted.to_owned()))?)?.into()))
            }
            Some(other) => Err(Error::Sign(other.to_owned())),
        }
    }
}

impl<'p> Iterator for Names<'p> {
    type Item = Result<Cow<'p, str>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.name();
        if name.is_err() {
            *self = Names::of("", false);
        }
        name.transpose()
    }
}

/// Parses a path and looks its fields up in a schema. Returns the path as errors show it, without a leading dot.
///
/// # Errors
/// If it is invalid, or leads to no field.
pub fn normalize(path: &str, schema: &Schema) -> Result<String, Error> {
    let (mut place, mut out) = (schema, String::new());
    for name in Names::of(path, true) {
        let name = name?;
        if !place.properties.is_empty() {
            let point = if out.is_empty() { "" } else { "." };
            let _ = write!(out, "{point}{name}");
            place = place.property(&name).ok_or(Error::NoField)?;
        } else {
            let _ = write!(out, "[{name}]");
            place = place.additional.as_deref().ok_or(Error::NoField)?;
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
    fn paths_lead_to_fields_of_the_schema() {
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
