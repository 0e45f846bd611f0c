//! Splits text into tokens. Reports and skips characters that form no token.

use super::token::{Token, TokenKind};
use crate::source::{Issues, TextPosition};

/// The tokens of a text, including those that the parser skips.
#[derive(Debug)]
pub struct Tokens<'a> {
    /// All tokens, the end of the text last.
    pub all: Vec<Token<'a>>,
    /// The tokens that the parser sees, as indexes into `all`.
    pub seen: Vec<u32>,
}

/// The result of matching a token.
enum Match {
    /// A token up to this byte.
    Token(TokenKind, usize),
    /// No token: at this byte, which may be the end of the text, none fits any more.
    Fails(usize),
}

/// Reads all tokens.
pub fn read<'a>(text: &'a str, issues: &mut Issues) -> Tokens<'a> {
    let mut tokens = Tokens { all: Vec::new(), seen: Vec::new() };
    let (mut at, mut offset) = (0, 0_i32);
    let mut lines = Lines { line: 1, start: 0 };
    while at < text.len() {
        let (kind, end) = match longest(text.as_bytes(), at) {
            Match::Token(kind, end) => (Some(kind), end),
            Match::Fails(end) => (None, text[end..].chars().next().map_or(text.len(), |char| end + char.len_utf8())),
        };
        let part = &text[at..end];
        match kind {
            Some(kind) => {
                if kind != TokenKind::Hidden {
                    tokens.seen.push(tokens.all.len() as u32);
                }
                tokens.all.push(Token { kind, text: part, offset });
            }
            None => {
                issues.report(lines.position(offset), format!("Syntax error: token recognition error at: '{part}'"))
            }
        }
        at = end;
        for char in part.chars() {
            offset += 1;
            if char == '\n' {
                lines = Lines { line: lines.line + 1, start: offset };
            }
        }
    }
    tokens.seen.push(tokens.all.len() as u32);
    tokens.all.push(Token { kind: TokenKind::End, text: "", offset: if text.is_empty() { -1 } else { offset } });
    tokens
}

struct Lines {
    line: i32,
    start: i32,
}

impl Lines {
    fn position(&self, offset: i32) -> TextPosition {
        TextPosition { line: self.line, column: offset - self.start }
    }
}

fn longest(text: &[u8], at: usize) -> Match {
    let next = |more: usize| text.get(at + more).copied().unwrap_or(0);
    let one = |kind| Match::Token(kind, at + 1);
    let either = |second: u8, long, short| if next(1) == second { Match::Token(long, at + 2) } else { one(short) };
    let both = |second: u8, kind| if next(1) == second { Match::Token(kind, at + 2) } else { Match::Fails(at + 1) };
    match next(0) {
        b'\t' | b' ' | b'\r' | b'\n' | 0x0c => Match::Token(TokenKind::Hidden, pass(text, at, is_space)),
        b'=' => both(b'=', TokenKind::Equals),
        b'&' => both(b'&', TokenKind::And),
        b'|' => both(b'|', TokenKind::Or),
        b'!' => either(b'=', TokenKind::NotEquals, TokenKind::Not),
        b'<' => either(b'=', TokenKind::LessEquals, TokenKind::Less),
        b'>' => either(b'=', TokenKind::GreaterEquals, TokenKind::Greater),
        b'/' if next(1) == b'/' => Match::Token(TokenKind::Hidden, pass(text, at, |byte| byte != b'\n')),
        b'/' => one(TokenKind::Slash),
        b'[' => one(TokenKind::LeftBracket),
        b']' => one(TokenKind::RightBracket),
        b'{' => one(TokenKind::LeftBrace),
        b'}' => one(TokenKind::RightBrace),
        b'(' => one(TokenKind::LeftParen),
        b')' => one(TokenKind::RightParen),
        b',' => one(TokenKind::Comma),
        b'-' => one(TokenKind::Minus),
        b'?' => one(TokenKind::Question),
        b':' => one(TokenKind::Colon),
        b'+' => one(TokenKind::Plus),
        b'*' => one(TokenKind::Star),
        b'%' => one(TokenKind::Percent),
        b'.' if next(1).is_ascii_digit() => number(text, at),
        b'.' => one(TokenKind::Dot),
        b'0'..=b'9' => number(text, at),
        b'"' | b'\'' => match string(text, at, false) {
            Ok(end) => Match::Token(TokenKind::String, end),
            Err(end) => Match::Fails(end),
        },
        b'`' => quoted_name(text, at),
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => word(text, at),
        _ => Match::Fails(at),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c)
}

fn pass(text: &[u8], at: usize, takes: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|byte| !takes(*byte)).map_or(text.len(), |end| at + end)
}

fn digits(text: &[u8], at: usize) -> usize {
    pass(text, at.min(text.len()), |byte| byte.is_ascii_digit())
}

fn exponent(text: &[u8], at: usize) -> Option<usize> {
    text.get(at).filter(|byte| matches!(byte, b'e' | b'E'))?;
    let from = at + 1 + usize::from(text.get(at + 1).is_some_and(|byte| matches!(byte, b'+' | b'-')));
    let end = digits(text, from);
    (end > from).then_some(end)
}

fn number(text: &[u8], at: usize) -> Match {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    if byte(at) == b'0' && byte(at + 1) == b'x' && byte(at + 2).is_ascii_hexdigit() {
        let end = pass(text, at + 2, |byte| byte.is_ascii_hexdigit());
        return if matches!(byte(end), b'u' | b'U') {
            Match::Token(TokenKind::Uint, end + 1)
        } else {
            Match::Token(TokenKind::Int, end)
        };
    }
    let whole = digits(text, at);
    if byte(whole) == b'.' && byte(whole + 1).is_ascii_digit() {
        let end = digits(text, whole + 1);
        return Match::Token(TokenKind::Float, exponent(text, end).unwrap_or(end));
    }
    match exponent(text, whole) {
        Some(end) => Match::Token(TokenKind::Float, end),
        None if matches!(byte(whole), b'u' | b'U') => Match::Token(TokenKind::Uint, whole + 1),
        None => Match::Token(TokenKind::Int, whole),
    }
}

fn quoted_name(text: &[u8], at: usize) -> Match {
    let takes = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b' ');
    let end = pass(text, at + 1, takes);
    if end > at + 1 && text.get(end) == Some(&b'`') {
        Match::Token(TokenKind::Quoted, end + 1)
    } else {
        Match::Fails(end)
    }
}

/// Matches a word, or a string with a prefix.
fn word(text: &[u8], at: usize) -> Match {
    let is_quote = |at: usize| text.get(at).is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let is_raw = |at: usize| text.get(at).is_some_and(|byte| matches!(byte, b'r' | b'R'));
    let is_bytes = matches!(text[at], b'b' | b'B');
    let kind = if is_bytes { TokenKind::Bytes } else { TokenKind::String };
    let prefix = at + usize::from(is_bytes);
    let quote = if is_raw(prefix) && is_quote(prefix + 1) { prefix + 1 } else { prefix };
    if quote > at
        && is_quote(quote)
        && let Ok(end) = string(text, quote, quote > prefix)
    {
        return Match::Token(kind, end);
    }
    let end = pass(text, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let kind = match &text[at..end] {
        b"in" => TokenKind::In,
        b"true" => TokenKind::True,
        b"false" => TokenKind::False,
        b"null" => TokenKind::Null,
        _ => TokenKind::Identifier,
    };
    Match::Token(kind, end)
}

/// Returns the end of the string that begins with the quote at `at`. `Err` is the byte at which the string is invalid.
fn string(text: &[u8], at: usize, raw: bool) -> Result<usize, usize> {
    let quote = text[at];
    if text[at..].starts_with(&[quote; 3]) {
        return long_string(text, at + 3, quote, raw).or(Ok(at + 2));
    }
    let mut at = at + 1;
    loop {
        match text.get(at) {
            None => return Err(text.len()),
            Some(b'\n' | b'\r') => return Err(at),
            Some(byte) if *byte == quote => return Ok(at + 1),
            Some(b'\\') if !raw => at = escape(text, at)?,
            Some(_) => at += 1,
        }
    }
}

fn long_string(text: &[u8], mut at: usize, quote: u8, raw: bool) -> Result<usize, usize> {
    loop {
        match text.get(at) {
            None => return Err(text.len()),
            Some(_) if text[at..].starts_with(&[quote; 3]) => return Ok(at + 3),
            Some(b'\\') if !raw => at = escape(text, at)?,
            Some(_) => at += 1,
        }
    }
}

/// Returns the end of an escape sequence. `Err` is the byte at which it is invalid.
fn escape(text: &[u8], at: usize) -> Result<usize, usize> {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let hex = |count: usize| {
        let bad = (at + 2..at + 2 + count).find(|at| !byte(*at).is_ascii_hexdigit());
        bad.map_or(Ok(at + 2 + count), |bad| Err(bad.min(text.len())))
    };
    match byte(at + 1) {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Ok(at + 2),
        b'x' | b'X' => hex(2),
        b'u' => hex(4),
        b'U' => hex(8),
        b'0'..=b'3' => {
            let bad = (at + 2..at + 4).find(|at| !matches!(byte(*at), b'0'..=b'7'));
            bad.map_or(Ok(at + 4), |bad| Err(bad.min(text.len())))
        }
        _ => Err((at + 1).min(text.len())),
    }
}
