//! Parses the beginning of groups: names and flags.

use super::error::{Error, Fault};
use super::parse::{Flags, taken};

/// The sort of group that a `(` begins.
#[derive(Debug, Clone, Copy)]
pub enum Opening {
    /// A numbered group, perhaps with a name.
    Numbered,
    /// A group without a number, with flags of its own.
    Plain(Flags),
    /// No group: flags from here on.
    Flags(Flags),
}

/// Parses the beginning of a group; returns it and the rest of the pattern.
pub fn parse(rest: &str, flags: Flags) -> Result<(Opening, &str), Error> {
    let Some(inner) = rest.strip_prefix("(?") else { return Ok((Opening::Numbered, &rest[1..])) };
    let named = inner.strip_prefix("P<").or_else(|| inner.strip_prefix('<')).filter(|name| !name.is_empty());
    match named {
        Some(name) => parse_name(rest, name).map(|after| (Opening::Numbered, after)),
        None => parse_flags(rest, inner, flags),
    }
}

fn parse_name<'p>(rest: &str, named: &'p str) -> Result<&'p str, Error> {
    let Some((name, after)) = named.split_once('>') else { return Err(Error::new(Fault::NamedCapture, rest)) };
    if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
        return Err(Error::new(Fault::NamedCapture, taken(rest, after)));
    }
    Ok(after)
}

fn parse_flags<'p>(rest: &str, inner: &'p str, mut flags: Flags) -> Result<(Opening, &'p str), Error> {
    let (mut is_set, mut is_complete) = (true, true);
    let mut after = inner;
    while let Some(sign) = after.chars().next() {
        after = &after[sign.len_utf8()..];
        match sign {
            'i' => flags.fold = is_set,
            'm' => flags.lines = is_set,
            's' => flags.dot_all = is_set,
            'U' => flags.lazy = is_set,
            '-' if is_set => {
                (is_set, is_complete) = (false, false);
                continue;
            }
            ':' if is_complete => return Ok((Opening::Plain(flags), after)),
            ')' if is_complete => return Ok((Opening::Flags(flags), after)),
            _ => break,
        }
        is_complete = true;
    }
    Err(Error::new(Fault::PerlSyntax, taken(rest, after)))
}
