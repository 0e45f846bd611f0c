//! Character classes of patterns.

use super::error::{Error, Fault};
use super::escape;
use super::parse::taken;
use super::unicode::{self, Table};

/// A character class: the code points that it contains, or does not contain.
#[derive(Debug)]
pub struct Class {
    pub items: Vec<ClassItem>,
    pub is_negated: bool,
    pub fold: bool,
}

/// A part of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassItem {
    /// From one code point to another.
    Range(u32, u32),
    /// Ranges of ASCII, or all code points but these.
    Ascii { ranges: &'static [(u8, u8)], is_negated: bool },
    /// Code points of a category or script, or all but these.
    Unicode { table: Table, is_negated: bool },
}

const DIGIT: &[(u8, u8)] = &[(b'0', b'9')];
/// Without the vertical tab, unlike `[:space:]`.
const PERL_SPACE: &[(u8, u8)] = &[(b'\t', b'\n'), (b'\x0c', b'\r'), (b' ', b' ')];
const WORD: &[(u8, u8)] = &[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];

/// The classes that POSIX names.
const NAMED: [(&str, &[(u8, u8)]); 14] = [
    ("alnum", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
    ("alpha", &[(b'A', b'Z'), (b'a', b'z')]),
    ("ascii", &[(0, 0x7f)]),
    ("blank", &[(b'\t', b'\t'), (b' ', b' ')]),
    ("cntrl", &[(0, 0x1f), (0x7f, 0x7f)]),
    ("digit", DIGIT),
    ("graph", &[(b'!', b'~')]),
    ("lower", &[(b'a', b'z')]),
    ("print", &[(b' ', b'~')]),
    ("punct", &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
    ("space", &[(b'\t', b'\r'), (b' ', b' ')]),
    ("upper", &[(b'A', b'Z')]),
    ("word", WORD),
    ("xdigit", &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
];

impl Class {
    /// Returns a class of one item.
    pub fn of(item: ClassItem, fold: bool) -> Self {
        Self { items: vec![item], is_negated: false, fold }
    }
}

/// Parses a class in brackets; returns it and the rest of the pattern.
pub fn parse(from: &str, fold: bool) -> Result<(Class, &str), Error> {
    let inner = &from[1..];
    let (mut rest, is_negated) = inner.strip_prefix('^').map_or((inner, false), |inner| (inner, true));
    let mut items = Vec::new();
    // A `]` that comes first belongs to the class.
    while items.is_empty() || !rest.starts_with(']') {
        let item;
        (item, rest) = match named(rest)? {
            Some(found) => found,
            None => match escaped(rest)? {
                Some(found) => found,
                None => range(rest, from)?,
            },
        };
        items.push(item);
    }
    Ok((Class { items, is_negated, fold }, &rest[1..]))
}

/// Reads `[:name:]`.
fn named(from: &str) -> Result<Option<(ClassItem, &str)>, Error> {
    let Some((name, rest)) = from.strip_prefix("[:").and_then(|inner| inner.split_once(":]")) else { return Ok(None) };
    let (plain, is_negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    match NAMED.iter().find(|(known, _)| *known == plain) {
        Some((_, ranges)) => Ok(Some((ClassItem::Ascii { ranges, is_negated }, rest))),
        None => Err(Error::new(Fault::ClassRange, taken(from, rest))),
    }
}

/// Parses a class that begins with a `\`, inside brackets or outside; `None` for other text.
pub fn escaped(from: &str) -> Result<Option<(ClassItem, &str)>, Error> {
    let Some(rest) = from.strip_prefix('\\') else { return Ok(None) };
    let (ranges, is_negated) = match rest.as_bytes().first() {
        Some(b'd') => (DIGIT, false),
        Some(b'D') => (DIGIT, true),
        Some(b's') => (PERL_SPACE, false),
        Some(b'S') => (PERL_SPACE, true),
        Some(b'w') => (WORD, false),
        Some(b'W') => (WORD, true),
        Some(b'p' | b'P') => return unicode_class(from).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((ClassItem::Ascii { ranges, is_negated }, &rest[1..])))
}

/// Reads `\pN`, `\p{Name}` or `\p{^Name}`, with `\P` for the opposite.
fn unicode_class(from: &str) -> Result<(ClassItem, &str), Error> {
    let after = &from[2..];
    let (name, rest) = match after.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or_else(|| Error::new(Fault::ClassRange, from))?,
        None => after.split_at(after.chars().next().map_or(0, char::len_utf8)),
    };
    let (name, is_turned) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    let table = unicode::table(name).ok_or_else(|| Error::new(Fault::ClassRange, taken(from, rest)))?;
    Ok((ClassItem::Unicode { table, is_negated: is_turned != from.starts_with("\\P") }, rest))
}

/// Parses a code point or a range of them.
fn range<'p>(from: &'p str, class: &str) -> Result<(ClassItem, &'p str), Error> {
    let (low, rest) = sign(from, class)?;
    let to = rest.strip_prefix('-').filter(|after| !after.is_empty() && !after.starts_with(']'));
    let Some(to) = to else { return Ok((ClassItem::Range(low, low), rest)) };
    let (high, rest) = sign(to, class)?;
    if high < low {
        return Err(Error::new(Fault::ClassRange, taken(from, rest)));
    }
    Ok((ClassItem::Range(low, high), rest))
}

fn sign<'p>(from: &'p str, class: &str) -> Result<(u32, &'p str), Error> {
    match from.chars().next() {
        Some('\\') => escape::parse(from),
        Some(sign) => Ok((sign.into(), &from[sign.len_utf8()..])),
        None => Err(Error::new(Fault::OpenClass, class)),
    }
}
