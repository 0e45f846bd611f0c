//! Plain and quoted scalars, which may continue over several lines.

use super::cursor::Space;
use super::{Scanner, TokenKind, YamlFault};

impl Scanner<'_> {
    pub(super) fn plain(&mut self) -> Result<TokenKind, YamlFault> {
        let (mut text, mut space) = (String::new(), Space::default());
        let indent = self.indent + 1;
        loop {
            if self.cursor.is_document_mark() || self.cursor.byte(0) == b'#' {
                break;
            }
            while !self.cursor.is_gap(0) && !self.ends_plain() {
                space.fold(&mut text);
                self.cursor.read(&mut text);
            }
            if !(self.cursor.is_blank() || self.cursor.is_break(0)) {
                break;
            }
            if space.read(&mut self.cursor, |column| (column as isize) < indent) {
                return Err(self.fault("found a tab character that violates indentation"));
            }
            if !self.is_flow() && (self.cursor.column as isize) < indent {
                break;
            }
        }
        if space.has_break {
            self.key_allowed = true;
        }
        Ok(TokenKind::Scalar { text, is_plain: true })
    }

    fn ends_plain(&self) -> bool {
        match self.cursor.byte(0) {
            b':' => self.cursor.is_gap(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.is_flow(),
            _ => false,
        }
    }

    pub(super) fn quoted(&mut self, quote: u8) -> Result<TokenKind, YamlFault> {
        self.cursor.skip(1);
        let (mut text, mut space) = (String::new(), Space::default());
        loop {
            if self.cursor.is_document_mark() {
                return Err(self.fault("found unexpected document indicator"));
            }
            if self.cursor.is_end() {
                return Err(self.fault("found unexpected end of stream"));
            }
            while !self.cursor.is_gap(0) {
                let next = self.cursor.byte(0);
                if next == quote {
                    if quote == b'"' || self.cursor.byte(1) != quote {
                        break;
                    }
                    self.cursor.skip(1);
                } else if next == b'\\' && quote == b'"' {
                    if self.cursor.is_break(1) {
                        self.cursor.skip(1);
                        self.cursor.skip_break();
                        space.has_break = true;
                        break;
                    }
                    self.escape(&mut text)?;
                    continue;
                }
                self.cursor.read(&mut text);
            }
            if self.cursor.byte(0) == quote {
                break;
            }
            let is_joined = space.has_break;
            space.read(&mut self.cursor, |_| false);
            if is_joined {
                // The line break itself was escaped.
                text.push_str(&space.rest);
                space = Space::default();
            } else {
                space.fold(&mut text);
            }
        }
        self.cursor.skip(1);
        Ok(TokenKind::Scalar { text, is_plain: false })
    }

    fn escape(&mut self, text: &mut String) -> Result<(), YamlFault> {
        let simple = match self.cursor.byte(1) {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{b}',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'e' => '\u{1b}',
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            same @ (b' ' | b'"' | b'\'' | b'\\') => char::from(same),
            b'x' => return self.code(2, text),
            b'u' => return self.code(4, text),
            b'U' => return self.code(8, text),
            _ => return Err(self.fault("found unknown escape character")),
        };
        self.cursor.skip(2);
        text.push(simple);
        Ok(())
    }

    fn code(&mut self, digits: usize, text: &mut String) -> Result<(), YamlFault> {
        self.cursor.skip(2);
        let mut code = 0;
        for place in 0..digits {
            let digit = char::from(self.cursor.byte(place)).to_digit(16);
            let digit = digit.ok_or_else(|| self.fault("did not find expected hexdecimal number"))?;
            code = code << 4 | digit;
        }
        let wrong = || self.fault("found invalid Unicode character escape code");
        text.push(char::from_u32(code).ok_or_else(wrong)?);
        self.cursor.skip(digits);
        Ok(())
    }
}
