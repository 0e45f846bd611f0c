//! A position in a text, with lines and columns as YAML 1.1 counts them.

/// A text and the position up to which it was read. All bytes beyond its end are 0, which no text contains.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// The number of characters before this position.
    pub index: usize,
    /// The number of line breaks before this position.
    pub line: usize,
    /// The number of characters since the last of them.
    pub column: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, index: 0, line: 0, column: 0 }
    }

    /// Returns the byte at an offset from here.
    pub fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub fn is_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub fn is_blank(&self) -> bool {
        matches!(self.byte(0), b' ' | b'\t')
    }

    /// Returns the number of bytes of the line break at an offset from here; 0 when there is none.
    fn break_bytes(&self, ahead: usize) -> usize {
        match (self.byte(ahead), self.byte(ahead + 1)) {
            (b'\r', b'\n') | (0xc2, 0x85) => 2,
            (b'\r' | b'\n', _) => 1,
            (0xe2, 0x80) if matches!(self.byte(ahead + 2), 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    /// Returns whether a line ends at an offset from here.
    pub fn is_break(&self, ahead: usize) -> bool {
        self.break_bytes(ahead) > 0
    }

    pub fn is_line_end(&self) -> bool {
        self.is_end() || self.is_break(0)
    }

    /// Returns whether a word ends at an offset from here.
    pub fn is_gap(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t') || self.at + ahead >= self.text.len() || self.is_break(ahead)
    }

    /// Returns whether a line that marks a document begins here.
    pub fn is_document_mark(&self) -> bool {
        let three = [self.byte(0), self.byte(1), self.byte(2)];
        self.column == 0 && matches!(&three, b"---" | b"...") && self.is_gap(3)
    }

    /// Returns whether a character of names is here.
    pub fn is_name(&self) -> bool {
        matches!(self.byte(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    pub fn is_byte_order_mark(&self) -> bool {
        [self.byte(0), self.byte(1), self.byte(2)] == [0xef, 0xbb, 0xbf]
    }

    /// Returns the character here.
    fn character(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    /// Skips characters.
    pub fn skip(&mut self, characters: usize) {
        for _ in 0..characters {
            let Some(character) = self.character() else { return };
            self.at += character.len_utf8();
            self.index += 1;
            self.column += 1;
        }
    }

    /// Reads a character.
    pub fn read(&mut self, out: &mut String) {
        out.extend(self.character());
        self.skip(1);
    }

    pub fn skip_blanks(&mut self) {
        while self.is_blank() {
            self.skip(1);
        }
    }

    /// Skips the rest of a line.
    pub fn skip_comment(&mut self) {
        while !self.is_line_end() {
            self.skip(1);
        }
    }

    /// Skips a line break, if one is here.
    pub fn skip_break(&mut self) {
        let bytes = self.break_bytes(0);
        if bytes > 0 {
            self.index += if self.byte(0) == b'\r' { bytes } else { 1 };
            self.at += bytes;
            self.line += 1;
            self.column = 0;
        }
    }

    /// Reads a line break, if one is here: Unicode separators as they are, others as `\n`.
    pub fn read_break(&mut self, out: &mut String) {
        match self.break_bytes(0) {
            0 => {}
            3 => out.extend(self.character()),
            _ => out.push('\n'),
        }
        self.skip_break();
    }

    /// Counts the end of the text as the end of a line.
    pub fn end_line(&mut self) {
        if self.column != 0 {
            self.column = 0;
            self.line += 1;
        }
    }
}

/// Line breaks and blanks within a scalar, which are kept until their meaning is known.
#[derive(Default)]
pub(super) struct Space {
    /// The blanks on one line.
    pub blanks: String,
    /// The first line break.
    pub first: String,
    /// The later ones.
    pub rest: String,
    /// Whether a line has ended.
    pub has_break: bool,
}

impl Space {
    /// Reads blanks and line breaks. `is_tab_wrong` returns whether a line that begins at a column must not begin with
    /// a tab. Stops at a line that does, and returns true.
    pub fn read(&mut self, cursor: &mut Cursor<'_>, is_tab_wrong: impl Fn(usize) -> bool) -> bool {
        loop {
            if cursor.is_blank() {
                if !self.has_break {
                    cursor.read(&mut self.blanks);
                } else if cursor.byte(0) == b'\t' && is_tab_wrong(cursor.column) {
                    return true;
                } else {
                    cursor.skip(1);
                }
            } else if cursor.is_break(0) {
                if self.has_break {
                    cursor.read_break(&mut self.rest);
                } else {
                    self.blanks.clear();
                    cursor.read_break(&mut self.first);
                    self.has_break = true;
                }
            } else {
                return false;
            }
        }
    }

    /// Writes the line breaks and blanks between two words in their final form: a single line break becomes a space.
    pub fn fold(&mut self, out: &mut String) {
        if !self.has_break {
            out.push_str(&self.blanks);
        } else if self.first != "\n" {
            out.push_str(&self.first);
            out.push_str(&self.rest);
        } else if self.rest.is_empty() {
            out.push(' ');
        } else {
            out.push_str(&self.rest);
        }
        *self = Self::default();
    }
}
