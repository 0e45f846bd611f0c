//! Complaints of strict decoding about a text: fields that its type does not have, and keys that occur more than once,
//! in the order of the text. They are found in one pass over a text that was parsed before. The pass is only needed
//! when there are some.

use std::collections::HashSet;
use std::fmt::Write;

use flotilla_golang::strconv::quote;

use crate::limits::{COMPLAINT_PATHS_BYTES_MAX, COMPLAINTS_MAX, JSON_DEPTH_MAX};
use crate::schema::{Shape, Type};

/// The type of a value, as far as the walk knows it.
#[derive(Clone, Copy)]
enum Seen<'t> {
    /// An object of a type.
    Struct(&'t Type),
    /// A value of a shape.
    Shape(&'t Shape),
    /// Any value, whose repeated keys still matter.
    Free,
    /// A value that has a decoder of its own, or is skipped.
    Skipped,
}

/// Returns the fields in a JSON text that its type does not have, and the keys that occur more than once in an object.
/// Ignores everything inside an unknown field, and inside values that have a decoder of their own. Without a type it
/// returns only repeated keys.
pub fn complaints(text: &str, of: Option<&Type>) -> Vec<String> {
    let mut walk =
        Walk { bytes: text.as_bytes(), text, at: 0, path: String::new(), depth: 0, seen: 0, complaints: Vec::new() };
    // A text that is not JSON ends the walk; its parser has reported the error.
    let _ = walk.value(of.map_or(Seen::Free, Seen::Struct));
    walk.complaints
}

struct Walk<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    path: String,
    depth: usize,
    /// The number of bytes of paths that were examined.
    seen: usize,
    complaints: Vec<String>,
}

impl Walk<'_> {
    fn value(&mut self, seen: Seen<'_>) -> Option<()> {
        let is_full = self.complaints.len() >= COMPLAINTS_MAX || self.seen > COMPLAINT_PATHS_BYTES_MAX;
        if is_full || self.depth >= JSON_DEPTH_MAX {
            return if is_full { None } else { self.skip() };
        }
        self.depth += 1;
        let next = self.peek()?;
        let walked = self.inside(next, seen);
        self.depth -= 1;
        walked
    }

    fn inside(&mut self, next: u8, seen: Seen<'_>) -> Option<()> {
        match (next, seen) {
            (b'{', Seen::Struct(_) | Seen::Free | Seen::Shape(Shape::Struct(_) | Shape::Map(_))) => self.object(seen),
            (b'[', Seen::Shape(Shape::List(list))) => self.list(Seen::Shape(&list.item)),
            (b'[', Seen::Free) => self.list(Seen::Free),
            _ => self.skip(),
        }
    }

    fn object(&mut self, seen: Seen<'_>) -> Option<()> {
        let seen = if let Seen::Shape(Shape::Struct(of)) = seen { Seen::Struct(of) } else { seen };
        let (mut keys, mut fields, mut next) = (HashSet::new(), 0_u128, 0);
        self.at += 1;
        let length = self.path.len();
        while self.peek()? != b'}' {
            let key = self.key()?;
            let is_repeated = |is_first: bool| (!is_first).then_some("duplicate field");
            let (complaint, inner) = match seen {
                Seen::Struct(of) => match of.position(&key, next) {
                    Some(at) => {
                        let is_first = fields & (1 << at) == 0;
                        fields |= 1 << at;
                        next = at + 1;
                        (is_repeated(is_first), Seen::Shape(&of.fields[at].shape))
                    }
                    None => (Some("unknown field"), Seen::Skipped),
                },
                Seen::Shape(Shape::Map(map)) => (is_repeated(keys.insert(key.clone())), Seen::Shape(&map.value)),
                _ => (is_repeated(keys.insert(key.clone())), Seen::Free),
            };
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if let Some(complaint) = complaint {
                self.tell(complaint);
            }
            self.value(inner)?;
            self.path.truncate(length);
            if self.peek()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(())
    }

    fn list(&mut self, of: Seen<'_>) -> Option<()> {
        self.at += 1;
        let length = self.path.len();
        let mut index = 0;
        while self.peek()? != b']' {
            let _ = write!(self.path, "[{index}]");
            self.value(of)?;
            self.path.truncate(length);
            index += 1;
            if self.peek()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(())
    }

    /// Keeps a complaint about the present path, unless it was made before.
    fn tell(&mut self, what: &str) {
        self.seen += self.path.len();
        let complaint = format!("{what} {}", quote(&self.path));
        if self.complaints.len() < COMPLAINTS_MAX && !self.complaints.contains(&complaint) {
            self.complaints.push(complaint);
        }
    }

    /// Returns the next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.bytes.get(self.at)? {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Reads a key and the colon after it.
    fn key(&mut self) -> Option<String> {
        let start = self.at;
        self.string()?;
        let text = self.text.get(start..self.at)?;
        let key = match text.get(1..text.len() - 1)? {
            plain if !plain.contains('\\') => plain.to_owned(),
            _ => super::parse(text.as_bytes()).ok()?.as_str()?.to_owned(),
        };
        (self.peek()? == b':').then(|| self.at += 1)?;
        Some(key)
    }

    /// Skips a string.
    fn string(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    /// Skips a value of any depth.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                    let length = self.bytes[self.at..].iter().take_while(|byte| is_word(byte)).count();
                    self.at += (length > 0).then_some(length)?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn of(group: &str, version: &str, kind: &str, text: &str) -> String {
        complaints(text, catalogue::kind(group, version, kind).map(|kind| &*kind.of)).join(", ")
    }

    #[test]
    fn errors_are_in_the_order_of_the_text() {
        let text = r#"{"foo":1,"metadata":{"name":"w","x":1,"name":"w"},"data":{"a":"1","a":"2"},"bar":{"z":1,"z":2}}"#;
        assert_eq!(
            of("", "v1", "ConfigMap", text),
            r#"unknown field "foo", unknown field "metadata.x", duplicate field "metadata.name", "#.to_owned()
                + r#"duplicate field "data.a", unknown field "bar""#
        );
        let text = r#"{"spec":{"containers":[{"name":"a"},{"\u006eame":"b","name":"c","y":[{"q":1}],"env":[{"z":2}]}],
            "containers":[{"w":{}}]},"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}},"v":1}]},
            "foo":1,"foo":2}"#;
        assert_eq!(
            of("", "v1", "Pod", text),
            r#"duplicate field "spec.containers[1].name", unknown field "spec.containers[1].y", "#.to_owned()
                + r#"unknown field "spec.containers[1].env[0].z", duplicate field "spec.containers", "#
                + r#"unknown field "spec.containers[0].w", unknown field "metadata.managedFields[0].v", "#
                + r#"unknown field "foo""#
        );
    }

    #[test]
    fn without_a_type_repeated_keys_are_reported() {
        let text = r#"{"b":{"x":[{"y":1,"y":2}],"x":3},"a":1,"a":{"b":1},"":1,"":2}"#;
        assert_eq!(
            complaints(text, None),
            [
                r#"duplicate field "b.x[0].y""#,
                r#"duplicate field "b.x""#,
                r#"duplicate field "a""#,
                r#"duplicate field """#
            ]
        );
    }

    #[test]
    fn there_are_a_hundred_complaints_at_most() {
        let many: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":[[[1,\"\\\"]\"]]]")).collect();
        let complaints = of("", "v1", "ConfigMap", &format!("{{{}}}", many.join(",")));
        assert_eq!(complaints.matches("unknown field").count(), COMPLAINTS_MAX);
        assert!(complaints.ends_with("\"k99\""), "{complaints}");
    }

    #[test]
    fn texts_that_nest_too_deeply_are_not_checked() {
        let deep = format!("{{\"x\":{}1{},\"y\":1}}", "[".repeat(9000), "]".repeat(9000));
        assert_eq!(of("", "v1", "ConfigMap", &deep), r#"unknown field "x", unknown field "y""#);
    }
}
