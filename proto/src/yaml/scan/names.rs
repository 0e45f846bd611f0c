//! Anchors, tags and directives.

use super::{Scanner, TokenKind, YamlFault};

impl Scanner<'_> {
    fn name(&mut self, out: &mut String) {
        while self.cursor.is_name() {
            self.cursor.read(out);
        }
    }

    /// Reads the name of an anchor or alias.
    pub(super) fn anchor(&mut self) -> Result<String, YamlFault> {
        self.cursor.skip(1);
        let mut name = String::new();
        self.name(&mut name);
        let ends = self.cursor.is_gap(0) || b"?:,]}%@`".contains(&self.cursor.byte(0));
        if name.is_empty() || !ends {
            return Err(self.fault("did not find expected alphabetic or numeric character"));
        }
        Ok(name)
    }

    pub(super) fn tag(&mut self) -> Result<TokenKind, YamlFault> {
        let (mut handle, mut suffix) = (String::new(), String::new());
        if self.cursor.byte(1) == b'<' {
            self.cursor.skip(2);
            self.uri(false, &mut suffix)?;
            if self.cursor.byte(0) != b'>' {
                return Err(self.fault("did not find the expected '>'"));
            }
            self.cursor.skip(1);
        } else {
            handle = self.handle(false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                self.uri(false, &mut suffix)?;
            } else {
                suffix.push_str(&handle[1..]);
                self.uri(true, &mut suffix)?;
                handle.truncate(1);
                if suffix.is_empty() {
                    std::mem::swap(&mut handle, &mut suffix);
                }
            }
        }
        if !self.cursor.is_gap(0) {
            return Err(self.fault("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::Tag { handle, suffix })
    }

    /// Reads `!`, `!!` or `!name!`; in a tag also `!name`, which is not a handle.
    fn handle(&mut self, is_directive: bool) -> Result<String, YamlFault> {
        let mut handle = String::new();
        if self.cursor.byte(0) != b'!' {
            return Err(self.fault("did not find expected '!'"));
        }
        self.cursor.read(&mut handle);
        self.name(&mut handle);
        if self.cursor.byte(0) == b'!' {
            self.cursor.read(&mut handle);
        } else if is_directive && handle != "!" {
            return Err(self.fault("did not find expected '!'"));
        }
        Ok(handle)
    }

    fn uri(&mut self, has_head: bool, out: &mut String) -> Result<(), YamlFault> {
        let mut is_empty = !has_head;
        while self.cursor.is_name() || b";/?:@&=+$,.!~*'()[]%".contains(&self.cursor.byte(0)) {
            if self.cursor.byte(0) == b'%' {
                self.escaped(out)?;
            } else {
                self.cursor.read(out);
            }
            is_empty = false;
        }
        if is_empty { Err(self.fault("did not find expected tag URI")) } else { Ok(()) }
    }

    /// Reads a character that is written as escaped bytes.
    fn escaped(&mut self, out: &mut String) -> Result<(), YamlFault> {
        let mut bytes = Vec::new();
        loop {
            let digit = |ahead: usize| char::from(self.cursor.byte(ahead)).to_digit(16);
            let octet = match (self.cursor.byte(0), digit(1), digit(2)) {
                (b'%', Some(high), Some(low)) => (high << 4 | low) as u8,
                _ => return Err(self.fault("did not find URI escaped octet")),
            };
            let is_trailing = octet & 0xc0 == 0x80;
            if bytes.is_empty() && (is_trailing || octet > 0xf7) {
                return Err(self.fault("found an incorrect leading UTF-8 octet"));
            }
            if !bytes.is_empty() && !is_trailing {
                return Err(self.fault("found an incorrect trailing UTF-8 octet"));
            }
            bytes.push(octet);
            self.cursor.skip(3);
            let length = match bytes[0] {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            if bytes.len() == length {
                out.push_str(&String::from_utf8_lossy(&bytes));
                return Ok(());
            }
        }
    }

    pub(super) fn directive(&mut self) -> Result<TokenKind, YamlFault> {
        self.cursor.skip(1);
        let mut name = String::new();
        self.name(&mut name);
        if name.is_empty() {
            return Err(self.fault("could not find expected directive name"));
        }
        if !self.cursor.is_gap(0) {
            return Err(self.fault("found unexpected non-alphabetical character"));
        }
        let directive = match name.as_str() {
            "YAML" => {
                self.cursor.skip_blanks();
                let major = self.number()?;
                if self.cursor.byte(0) != b'.' {
                    return Err(self.fault("did not find expected digit or '.' character"));
                }
                self.cursor.skip(1);
                TokenKind::Version(major, self.number()?)
            }
            "TAG" => {
                self.cursor.skip_blanks();
                let (handle, mut prefix) = (self.handle(true)?, String::new());
                if !self.cursor.is_blank() {
                    return Err(self.fault("did not find expected whitespace"));
                }
                self.cursor.skip_blanks();
                self.uri(false, &mut prefix)?;
                if !self.cursor.is_gap(0) {
                    return Err(self.fault("did not find expected whitespace or line break"));
                }
                TokenKind::Handle { handle, prefix }
            }
            _ => return Err(self.fault("found unknown directive name")),
        };
        self.rest_of_line()?;
        Ok(directive)
    }

    fn number(&mut self) -> Result<u32, YamlFault> {
        let (mut number, mut digits) = (0, 0);
        while let digit @ b'0'..=b'9' = self.cursor.byte(0) {
            digits += 1;
            if digits > 2 {
                return Err(self.fault("found extremely long version number"));
            }
            number = number * 10 + u32::from(digit - b'0');
            self.cursor.skip(1);
        }
        if digits == 0 { Err(self.fault("did not find expected version number")) } else { Ok(number) }
    }
}
