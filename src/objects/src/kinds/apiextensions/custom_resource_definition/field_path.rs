//! Field paths in definitions: `.spec.replicas`, `.metadata['a.b']`.

use flotilla_proto::value::Value;

use super::parts::{self, ADDITIONAL};

/// A field that a path leads to.
#[derive(Debug, PartialEq)]
pub struct Found<'a> {
    /// The names from the root to the field.
    pub names: Vec<String>,
    /// The schema of the field; absent where the schema does not describe the field.
    pub schema: Option<&'a Value>,
}

const UNKNOWN: &str = "does not refer to a valid field";
const END: &str = "unexpected end of JSON path";

/// Follows a path through a schema. `brackets` allows names in brackets. `Err` is the reason why the path leads to no
/// field.
pub fn find<'a>(path: &str, schema: &'a Value, brackets: bool) -> Result<Found<'a>, String> {
    let mut found = Found { names: Vec::new(), schema: Some(schema) };
    let mut rest = path;
    while let Some(token) = next(&mut rest) {
        match token {
            "." => {
                let name = next(&mut rest).ok_or(END)?;
                found.step(name.to_owned())?;
            }
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = next(&mut rest).ok_or(END)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                found.step(unescape(inner)?)?;
                match next(&mut rest).ok_or(END)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

/// Takes the next delimiter, quoted text or name off `rest`.
fn next<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = *rest;
    let first = text.chars().next()?;
    let end = match first {
        '.' | '[' | ']' => 1,
        '\'' => {
            let bytes = text.as_bytes();
            (1..bytes.len()).find(|&at| bytes[at] == b'\'' && bytes[at - 1] != b'\\').map_or(text.len(), |at| at + 1)
        }
        _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
    };
    let (token, left) = text.split_at(end);
    *rest = left;
    Some(token)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        out.push(match escaped {
            None => c,
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(itself @ ('\'' | '\\')) => itself,
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
        });
    }
    Ok(out)
}

impl Found<'_> {
    fn step(&mut self, name: String) -> Result<(), String> {
        let schema = self.schema.ok_or(UNKNOWN)?;
        self.schema = if parts::is_filled(schema, "properties") {
            Some(parts::property(schema, &name).ok_or(UNKNOWN)?)
        } else if parts::has(schema, ADDITIONAL) {
            parts::additional(schema)
        } else {
            return Err(UNKNOWN.to_owned());
        };
        self.names.push(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn paths_lead_to_fields_by_dots_and_brackets() {
        let schema = value!({"properties": {
            "spec": {"properties": {"a": {"type": "string"}, "b.c": {"type": "integer"}}},
            "map": {"additionalProperties": {"type": "boolean"}},
            "open": {"additionalProperties": true}
        }});
        let kind = |path: &str, brackets: bool| {
            find(path, &schema, brackets).map(|found| found.schema.map_or("", parts::kind).to_owned())
        };
        let fine = [
            (".spec.a", "string"),
            (".spec['b.c']", "integer"),
            (".map.x", "boolean"),
            (".map['it\\'s']", "boolean"),
            (".open.x", ""),
        ];
        for (path, expected) in fine {
            assert_eq!(kind(path, true), Ok(expected.to_owned()), "{path}");
        }
        let bad = [
            ("spec", "expected [ or . but got: spec"),
            (".", "unexpected end of JSON path"),
            (".spec.z", "does not refer to a valid field"),
            (".spec.a.b", "does not refer to a valid field"),
            (".spec[0]", "expected single quoted string but got 0"),
            (".spec['a'", "unexpected end of JSON path"),
            (".spec['a'.", "expected ] but got ."),
            (".open.x.y", "does not refer to a valid field"),
        ];
        for (path, why) in bad {
            assert_eq!(kind(path, true), Err(why.to_owned()), "{path}");
        }
        assert_eq!(kind(".spec['a']", false), Err("array notation is not allowed".to_owned()));
    }
}
