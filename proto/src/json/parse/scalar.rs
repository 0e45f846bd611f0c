//! Strings, numbers and words.

use super::{Error, Parser};
use crate::json::{self, scan};
use crate::value::{Float, Hole, Str, Value};

impl Parser<'_> {
    pub(super) fn literal(&mut self, word: &'static str, context: &'static str, value: Value) -> Result<Value, Error> {
        // Go names the letter that it expected. The first three words cover every position that differs.
        for (n, expected) in word.bytes().enumerate() {
            if self.peek_in_token() != expected {
                return Err(self.invalid(if n == 1 { context } else { literal_context(word, n) }));
            }
            self.at += 1;
        }
        Ok(value)
    }

    pub(super) fn string(&mut self) -> Result<Str, Error> {
        self.at += 1;
        let start = self.at;
        self.at = scan::plain_end(self.bytes, start);
        if self.peek()? == b'"' {
            let plain = &self.text[start..self.at];
            self.at += 1;
            return Ok(Str::from(plain));
        }
        self.string_with_escapes(start)
    }

    fn string_with_escapes(&mut self, start: usize) -> Result<Str, Error> {
        let mut out = String::from(&self.text[start..self.at]);
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(Str::from(out));
                }
                b'\\' => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                b if b < 0x20 => return Err(self.invalid("in string literal")),
                _ => {
                    let from = self.at;
                    self.at = scan::plain_end(self.bytes, from);
                    out.push_str(&self.text[from..self.at]);
                }
            }
        }
    }

    /// Reads the rest of an escape, after its backslash.
    fn escape(&mut self) -> Result<char, Error> {
        let character = match self.peek_in_token() {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.invalid("in string escape code")),
        };
        self.at += 1;
        Ok(character)
    }

    /// Reads the digits of `\u`, and the second half of a surrogate pair. A half alone becomes U+FFFD.
    fn unicode(&mut self) -> Result<char, Error> {
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = (self.peek_in_token() as char)
                .to_digit(16)
                .ok_or_else(|| self.invalid(r"in \u hexadecimal character escape"))?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    pub(super) fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        let mut whole = true;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.peek_in_token() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.invalid("in numeric literal")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            whole = false;
            self.at += 1;
            if !self.peek_in_token().is_ascii_digit() {
                return Err(self.invalid("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            whole = false;
            self.at += 1;
            if let b'+' | b'-' = self.peek_in_token() {
                self.at += 1;
            }
            if !self.peek_in_token().is_ascii_digit() {
                return Err(self.invalid("in exponent of numeric literal"));
            }
            self.digits();
        }
        let text = &self.text[start..self.at];
        if whole && let Ok(number) = text.parse() {
            return Ok(Value::Int(number));
        }
        let Some(number) = text.parse().ok().and_then(Float::new) else {
            self.overflow.get_or_insert_with(|| text.to_owned());
            return Ok(Value::Hole(Hole::Number(text.into())));
        };
        let number = Value::Float(number);
        let mut written = Vec::new();
        json::write(&number, &mut written);
        if written == text.as_bytes() {
            return Ok(number);
        }
        self.has_literals = true;
        Ok(Value::Hole(Hole::Literal(text.into())))
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}

fn literal_context(word: &str, position: usize) -> &'static str {
    match (word, position) {
        ("true", 2) => "in literal true (expecting 'u')",
        ("true", _) => "in literal true (expecting 'e')",
        ("false", 2) => "in literal false (expecting 'l')",
        ("false", 3) => "in literal false (expecting 's')",
        ("false", _) => "in literal false (expecting 'e')",
        (_, _) => "in literal null (expecting 'l')",
    }
}
