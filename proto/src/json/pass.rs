//! Going through a text that a parser has accepted before.

use super::{parse, scan};
use crate::value::{Str, Value};

/// A position in a text that a parser has accepted before. Everything answers `None` where the text turns out not to be
/// JSON.
pub(crate) struct Pass<'a> {
    /// The text.
    pub(crate) bytes: &'a [u8],
    /// The position.
    pub(crate) at: usize,
}

impl Pass<'_> {
    /// The next byte that is no space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Passes the bracket that opens a list or object, and the one that closes it if there is nothing within: whether
    /// that is so.
    pub(crate) fn is_empty(&mut self, close: u8) -> Option<bool> {
        self.at += 1;
        let empty = self.peek()? == close;
        self.at += usize::from(empty);
        Some(empty)
    }

    /// Passes what follows a member or item: whether it was the last one.
    pub(crate) fn ends(&mut self, close: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += 1;
        (next == b',' || next == close).then_some(next == close)
    }

    /// Passes a member's key and the colon behind it.
    pub(crate) fn key(&mut self) -> Option<Str> {
        let key = self.string()?;
        (self.peek()? == b':').then(|| self.at += 1)?;
        Some(key)
    }

    /// Passes a string.
    pub(crate) fn string(&mut self) -> Option<Str> {
        if self.peek()? != b'"' {
            return None;
        }
        let from = self.at;
        let (end, escapes) = scan::string_end(self.bytes, from)?;
        self.at = end;
        match escapes {
            false => Str::from_utf8(self.bytes.get(from + 1..end - 1)?).ok(),
            true => parse(&self.bytes[from..end]).ok()?.as_str().map(Into::into),
        }
    }

    /// Passes a value of any kind.
    pub(crate) fn value(&mut self) -> Option<Value> {
        let from = self.at;
        self.at = scan::value_end(self.bytes, from)?;
        parse(&self.bytes[from..self.at]).ok()
    }
}
