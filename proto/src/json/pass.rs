//! Reads a text that a parser has accepted before.

use super::{parse, scan};
use crate::value::{Str, Value};

/// A position in a text that a parser has accepted before. All methods return `None` when the text is not JSON after
/// all.
pub(crate) struct Pass<'a> {
    /// The text.
    pub(crate) bytes: &'a [u8],
    /// The position.
    pub(crate) at: usize,
}

impl<'a> Pass<'a> {
    /// Returns the next byte that is not a space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Passes the bracket that opens a list or object; if that is empty, also the bracket that closes it. Returns
    /// whether it is empty.
    pub(crate) fn is_empty(&mut self, close: u8) -> Option<bool> {
        self.at += 1;
        let empty = self.peek()? == close;
        self.at += usize::from(empty);
        Some(empty)
    }

    /// Passes the sign after a member or item. Returns whether the member or item was the last one.
    pub(crate) fn ends(&mut self, close: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += 1;
        (next == b',' || next == close).then_some(next == close)
    }

    /// Passes a member's key and the colon after it. Returns the key.
    pub(crate) fn key(&mut self) -> Option<Str> {
        self.written_key()?.text()
    }

    /// The same as [`Pass::key`], for readers that compare the key with known ones.
    pub(crate) fn written_key(&mut self) -> Option<Written<'a>> {
        let key = self.string()?;
        (self.peek()? == b':').then(|| self.at += 1)?;
        Some(key)
    }

    /// Passes a string.
    fn string(&mut self) -> Option<Written<'a>> {
        if self.peek()? != b'"' {
            return None;
        }
        let from = self.at;
        let (end, escapes) = scan::string_end(self.bytes, from)?;
        self.at = end;
        Some(Written { quoted: self.bytes.get(from..end)?, escapes })
    }

    /// Passes a value of any kind, and returns it.
    pub(crate) fn value(&mut self) -> Option<Value> {
        if self.peek()? == b'"' {
            return self.string()?.text().map(Value::Str);
        }
        let from = self.at;
        self.at = scan::value_end(self.bytes, from)?;
        parse(&self.bytes[from..self.at]).ok()
    }
}

/// A string in its written form.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    /// The string with its quotes.
    quoted: &'a [u8],
    escapes: bool,
}

impl Written<'_> {
    /// Returns the string.
    pub(crate) fn text(self) -> Option<Str> {
        match self.escapes {
            false => Str::from_utf8(self.quoted.get(1..self.quoted.len() - 1)?).ok(),
            true => parse(self.quoted).ok()?.as_str().map(Into::into),
        }
    }

    /// Returns whether it is the given string.
    pub(crate) fn is(self, text: &str) -> bool {
        match self.escapes {
            false => self.quoted.len() == text.len() + 2 && self.quoted[1..].starts_with(text.as_bytes()),
            true => self.text().is_some_and(|own| own == text),
        }
    }
}
