//! Block scalars: indented texts after `|` or `>`.

use super::{Scanner, TokenKind, YamlFault};

/// The treatment of the line breaks at the end.
#[derive(Clone, Copy, PartialEq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    pub(super) fn block(&mut self, is_literal: bool) -> Result<TokenKind, YamlFault> {
        self.cursor.skip(1);
        let (chomp, increment) = self.block_header()?;
        let mut indent = match increment {
            0 => 0,
            more => more + usize::try_from(self.indent).unwrap_or(0),
        };
        let (mut text, mut first, mut rest) = (String::new(), String::new(), String::new());
        self.block_breaks(&mut indent, &mut rest)?;
        let mut was_blank = false;
        while self.cursor.column == indent && !self.cursor.is_end() {
            let is_blank = self.cursor.is_blank();
            if !is_literal && !was_blank && !is_blank && first == "\n" {
                if rest.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&first);
            }
            text.push_str(&rest);
            first.clear();
            rest.clear();
            was_blank = is_blank;
            while !self.cursor.is_line_end() {
                self.cursor.read(&mut text);
            }
            self.cursor.read_break(&mut first);
            self.block_breaks(&mut indent, &mut rest)?;
        }
        if chomp != Chomp::Strip {
            text.push_str(&first);
        }
        if chomp == Chomp::Keep {
            text.push_str(&rest);
        }
        Ok(TokenKind::Scalar { text, is_plain: false })
    }

    /// Reads the rest of the line after the indicator.
    fn block_header(&mut self) -> Result<(Chomp, usize), YamlFault> {
        let (mut chomp, mut increment) = (None, None);
        loop {
            match self.cursor.byte(0) {
                b'+' if chomp.is_none() => chomp = Some(Chomp::Keep),
                b'-' if chomp.is_none() => chomp = Some(Chomp::Strip),
                b'0' if increment.is_none() => {
                    return Err(self.fault("found an indentation indicator equal to 0"));
                }
                digit @ b'1'..=b'9' if increment.is_none() => increment = Some(usize::from(digit - b'0')),
                _ => break,
            }
            self.cursor.skip(1);
        }
        self.rest_of_line()?;
        Ok((chomp.unwrap_or(Chomp::Clip), increment.unwrap_or(0)))
    }

    /// Skips blanks, a comment, and the end of the line.
    pub(super) fn rest_of_line(&mut self) -> Result<(), YamlFault> {
        self.cursor.skip_blanks();
        if self.cursor.byte(0) == b'#' {
            self.cursor.skip_comment();
        }
        if !self.cursor.is_line_end() {
            return Err(self.fault("did not find expected comment or line break"));
        }
        self.cursor.skip_break();
        Ok(())
    }

    /// Reads indentation and empty lines. An indent of 0 becomes that of the first line that is not empty.
    fn block_breaks(&mut self, indent: &mut usize, breaks: &mut String) -> Result<(), YamlFault> {
        let mut widest = 0;
        loop {
            let is_before = |column: usize| *indent == 0 || column < *indent;
            while is_before(self.cursor.column) && self.cursor.byte(0) == b' ' {
                self.cursor.skip(1);
            }
            widest = widest.max(self.cursor.column);
            if is_before(self.cursor.column) && self.cursor.byte(0) == b'\t' {
                return Err(self.fault("found a tab character where an indentation space is expected"));
            }
            if !self.cursor.is_break(0) {
                break;
            }
            self.cursor.read_break(breaks);
        }
        if *indent == 0 {
            *indent = widest.max(usize::try_from(self.indent + 1).unwrap_or(0)).max(1);
        }
        Ok(())
    }
}
