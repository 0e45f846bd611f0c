//! Reads parts of a text as a tree, for readers that know which parts they need.

use std::ops::Range;

use super::pass::Pass;
use super::scan;
use crate::value::{Map, Value};

/// The parts of a value that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole value.
    Whole,
    /// Nothing: the member is left out.
    Nothing,
    /// Neither this member nor those after it in the same object. When the end of the object is known, they need not be
    /// scanned.
    Rest,
    /// These members of an object, or of each object in a list. Other members are kept as a whole, or left out.
    Members {
        /// The wanted parts of members, by key.
        named: &'static [(&'static str, Part)],
        /// Whether members that are not named are kept.
        others: bool,
    },
}

impl Part {
    /// Keeps only the named members of an object.
    pub const fn only(named: &'static [(&'static str, Part)]) -> Self {
        Self::Members { named, others: false }
    }

    /// Keeps all members of an object, but only these parts of the named ones.
    pub const fn but(named: &'static [(&'static str, Part)]) -> Self {
        Self::Members { named, others: true }
    }
}

/// Returns the wanted part of a JSON text that a parser has accepted before, and skips the rest. `known` is the range
/// of a value in the text whose end is known, so that the value can be skipped without a scan. `None` when the text is
/// not JSON after all.
pub fn parse_part(bytes: &[u8], part: Part, known: Range<usize>) -> Option<Value> {
    OutlineReader { pass: Pass { bytes, at: 0 }, known }.part(part)
}

struct OutlineReader<'a> {
    pass: Pass<'a>,
    /// The start and the end of a value.
    known: Range<usize>,
}

impl OutlineReader<'_> {
    /// Reads a value. The recursion is as deep as parts are named, which is never much.
    fn part(&mut self, part: Part) -> Option<Value> {
        match (part, self.pass.peek()?) {
            (Part::Members { named, others }, b'{') => self.object(named, others),
            (Part::Members { .. }, b'[') => self.list(part),
            _ => self.pass.value(),
        }
    }

    fn object(&mut self, named: &'static [(&'static str, Part)], others: bool) -> Option<Value> {
        let rest = if others { Part::Whole } else { Part::Nothing };
        let start = self.pass.at;
        let mut entries = Vec::new();
        if self.pass.is_empty(b'}')? {
            return Some(Value::object());
        }
        loop {
            let key = self.pass.written_key()?;
            let part = named.iter().find(|(name, _)| key.is(name)).map_or(rest, |(_, part)| *part);
            self.pass.peek()?;
            match part {
                Part::Rest => {
                    self.pass.at = self.object_end(start)?;
                    return Some(Map::from_entries(entries).0.into());
                }
                Part::Nothing => self.pass.at = scan::value_end(self.pass.bytes, self.pass.at)?,
                part => entries.push((key.text()?, self.part(part)?)),
            }
            if self.pass.ends(b'}')? {
                return Some(Map::from_entries(entries).0.into());
            }
        }
    }

    /// Returns the position after the object that starts here.
    fn object_end(&self, start: usize) -> Option<usize> {
        let known = (start == self.known.start).then_some(self.known.end);
        let ends = |end: &usize| *end > self.pass.at && self.pass.bytes.get(*end - 1) == Some(&b'}');
        known.filter(ends).or_else(|| scan::value_end(self.pass.bytes, start))
    }

    fn list(&mut self, part: Part) -> Option<Value> {
        let mut items = Vec::new();
        if self.pass.is_empty(b']')? {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.part(part)?);
            if self.pass.ends(b']')? {
                return Some(Value::Array(items));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    const TEXT: &[u8] =
        br#"{"kind":"Pod", "metadata":{"name":"a","managedFields":[{"f":{"}":"]"}}],"labels":{"a":"\"b"}},
        "spec":{"containers":[{"name":"c","env":[{"name":"d"}]},{"env":[],"name":"e"}],"x":1.5},"status":null}
"#;

    #[test]
    fn whole_texts_are_read_as_by_the_parser() {
        assert_eq!(parse_part(TEXT, Part::Whole, 0..0), json::parse(TEXT).ok());
        assert_eq!(parse_part(TEXT, Part::but(&[]), 0..0), json::parse(TEXT).ok());
        assert_eq!(parse_part(TEXT, Part::only(&[]), 0..0), Some(Value::object()));
    }

    #[test]
    fn parts_are_taken_and_left_out() {
        const PART: Part = Part::only(&[
            ("metadata", Part::but(&[("managedFields", Part::Nothing)])),
            ("spec", Part::only(&[("containers", Part::only(&[("name", Part::Whole)]))])),
            ("status", Part::only(&[("phase", Part::Whole)])),
        ]);
        let expected = br#"{"metadata":{"name":"a","labels":{"a":"\"b"}},
            "spec":{"containers":[{"name":"c"},{"name":"e"}]},"status":null}"#;
        assert_eq!(parse_part(TEXT, PART, 0..0), json::parse(expected).ok());
    }

    #[test]
    fn the_rest_of_an_object_is_skipped_wherever_it_ends() {
        const PART: Part = Part::only(&[
            ("metadata", Part::but(&[("managedFields", Part::Rest)])),
            ("spec", Part::only(&[("x", Part::Whole), ("containers", Part::Rest)])),
            ("status", Part::Whole),
        ]);
        let expected = json::parse(br#"{"metadata":{"name":"a"},"spec":{},"status":null}"#).ok();
        let start = TEXT.windows(8).position(|bytes| bytes == br#"{"name":"#).unwrap();
        let end = scan::value_end(TEXT, start).unwrap();
        for known in [0..0, start..end, start..TEXT.len() * 2, start..start] {
            assert_eq!(parse_part(TEXT, PART, known), expected);
        }
    }

    #[test]
    fn invalid_json_is_refused_or_skipped_without_a_panic() {
        const PART: Part =
            Part::but(&[("metadata", Part::Nothing), ("spec", Part::only(&[("containers", Part::Whole)]))]);
        for end in 0..TEXT.len() - 2 {
            assert_eq!(parse_part(&TEXT[..end], PART, 0..0), None, "{end}");
        }
        for at in 0..TEXT.len() {
            let mut text = TEXT.to_vec();
            for byte in [b'"', b'{', b']', b'\\', b',', 0xff] {
                text[at] = byte;
                let _ = parse_part(&text, PART, 0..0);
            }
        }
    }
}
