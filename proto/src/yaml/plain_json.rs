//! YAML that is JSON: the parser of JSON reads it ten times as fast.
//!
//! Clients send most configurations in JSON. Some JSON means something else in YAML, or is an error there: repeated
//! keys, fractions, long keys, control characters. Such texts are left to the parser of YAML.

use crate::json;
use crate::limits::{YAML_JSON_DEPTH_MAX, YAML_JSON_KEY_BYTES_MAX};
use crate::value::Value;

/// Returns the value of a text in plain JSON, with sorted maps. `None` if the text has to be read as YAML.
pub(super) fn parse(text: &[u8]) -> Option<Value> {
    let members = Survey::new(text.strip_suffix(b"\n").unwrap_or(text)).members()?;
    let mut value = json::parse(text).ok()?;
    // A repeated key replaces the first one, so that there are fewer members than colons.
    (integers_only(&value)? == members).then(|| value.sort_members())?;
    Some(value)
}

/// Returns the number of members of a value and of all parts of it. `None` if there is a number with a fraction or of
/// more than 64 bits.
fn integers_only(value: &Value) -> Option<usize> {
    match value {
        Value::Object(map) => map.iter().try_fold(map.len(), |sum, (_, part)| Some(sum + integers_only(part)?)),
        Value::Array(items) => items.iter().try_fold(0, |sum, part| Some(sum + integers_only(part)?)),
        Value::Float(_) | Value::Hole(_) => None,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Str(_) => Some(0),
    }
}

/// Reads a text byte by byte.
struct Survey<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// The number of members of maps.
    members: usize,
}

impl<'a> Survey<'a> {
    const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, depth: 0, members: 0 }
    }

    /// Returns the number of members of all maps. `None` if the text is not a map, or has something that YAML may read
    /// in another way than JSON. Whether the text is JSON is not checked.
    fn members(mut self) -> Option<usize> {
        (self.text.first() == Some(&b'{')).then_some(())?;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    self.depth += 1;
                    (self.depth <= YAML_JSON_DEPTH_MAX).then_some(())?;
                }
                b'}' | b']' => self.depth = self.depth.checked_sub(1)?,
                b'-' if self.text.get(self.at) == Some(&b'0') => return None,
                b' '..=b'~' => {}
                _ => return None,
            }
        }
        Some(self.members)
    }

    /// Skips the rest of a string, and the colon after a key.
    fn string(&mut self) -> Option<()> {
        let start = self.at;
        loop {
            let byte = self.text.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => self.escape()?,
                b' '..=b'~' => {}
                _ => return None,
            }
        }
        let length = self.at - start;
        let rest = self.text.get(self.at..)?;
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        if rest.get(spaces) == Some(&b':') {
            self.members += 1;
            (length <= YAML_JSON_KEY_BYTES_MAX).then_some(())?;
        }
        Some(())
    }

    /// Skips the rest of an escape. `None` for those that YAML does not have, and for halves of characters.
    fn escape(&mut self) -> Option<()> {
        match self.text.get(self.at..)? {
            [b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.at += 1,
            [b'u', b'd' | b'D', ..] => return None,
            [b'u', ..] => self.at += 1,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse_as_yaml;
    use super::*;

    /// Pseudorandom numbers (xorshift64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 33) as usize % limit
        }

        fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
            choices[self.below(choices.len())]
        }

        fn space(&mut self, out: &mut String) {
            out.push_str(self.of(&["", "", "", "", "", "", " ", "  ", "", "", "", "\t"]));
        }

        fn string(&mut self, out: &mut String) {
            out.push('"');
            for _ in 0..self.below(4) {
                out.push_str(self.of(&[
                    "a",
                    "b c",
                    " ",
                    "<<",
                    "#",
                    ": ",
                    "- ",
                    "&x",
                    "*x",
                    "!",
                    "%",
                    "'",
                    "{",
                    "}",
                    "[",
                    ",",
                    "~",
                    "null",
                    "yes",
                    "1e3",
                    "\\\"",
                    "\\\\",
                    "\\n",
                    "\\t",
                    "\\b",
                    "\\f",
                    "\\r",
                    "\\u003c",
                    "\\u0041",
                    "\\u0000",
                    "\\ud83d\\ude00",
                    "\\ud83d",
                    "\\/",
                    "\\x41",
                    "\u{e9}",
                    "\u{7f}",
                    "\u{85}",
                    "\u{feff}",
                    "\n",
                ]));
            }
            out.push('"');
        }

        fn value(&mut self, depth: usize, out: &mut String) {
            self.space(out);
            match self.below(if depth == 0 { 4 } else { 7 }) {
                0 => out.push_str(self.of(&["true", "false", "null", "nul", "True", "~", "yes"])),
                1 => out.push_str(self.of(&[
                    "0",
                    "1",
                    "-7",
                    "-0",
                    "01",
                    "0x1f",
                    "0o7",
                    "1_000",
                    "9223372036854775807",
                    "9223372036854775808",
                    "-9223372036854775808",
                    "1.0",
                    "1.5",
                    "1e3",
                    "-1E-2",
                    "12345678901234567890123",
                    ".5",
                    "+1",
                    "1.",
                    "2020-01-01",
                    "12:30",
                ])),
                2 | 3 => self.string(out),
                4 => self.many(b"[]", depth, out),
                _ => self.many(b"{}", depth, out),
            }
            self.space(out);
        }

        fn many(&mut self, around: &[u8; 2], depth: usize, out: &mut String) {
            out.push(char::from(around[0]));
            for item in 0..self.below(4) {
                if item > 0 {
                    out.push(',');
                }
                if around[0] == b'{' {
                    self.string(out);
                    self.space(out);
                    out.push(':');
                }
                self.value(depth - 1, out);
            }
            if self.below(40) == 0 {
                out.push(',');
            }
            out.push(char::from(around[1]));
        }
    }

    #[test]
    fn plain_texts_are_read_as_by_the_yaml_parser() {
        let (mut random, mut plain) = (Random(88_172_645_463_325_252), 0);
        for _ in 0..40_000 {
            let mut text = String::new();
            random.many(b"{}", 3, &mut text);
            text.push_str(random.of(&["", "\n", "", "\n\n", " ", " #", "\n---\n", "x"]));
            let Some(value) = parse(text.as_bytes()) else { continue };
            plain += 1;
            let slowly = parse_as_yaml(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(json::to_vec(&value), json::to_vec(&slowly.value), "{text}");
            assert_eq!((value, slowly.duplicates.len()), (slowly.value, 0), "{text}");
        }
        assert!(plain > 4_000, "{plain}");
    }

    #[test]
    fn texts_that_yaml_reads_differently_are_not_plain() {
        let long = format!(r#"{{"{}":1}}"#, "k".repeat(1_024));
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        let texts = [
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"b":1}}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e3}"#,
            r#"{"a":-0}"#,
            "{\"a\":\t1}",
            r#"{"a":"\ud83d\ude00"}"#,
            r#"{"a":"\/"}"#,
            "{\"a\":\n1}",
            "[1]",
            "a: 1",
            "{a: 1}",
            "",
            &long,
            &deep,
        ];
        for text in texts {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert!(parse(br#"{"b":{"d":"\u003c","c":[]},"a":-12}"#).is_some());
    }
}
