//! Parses a pattern into its tree, character by character, so that the first fault is the one that Go reports.

use super::class;
use super::error::{Error, Fault};
use super::escape;
use super::group::{self, Opening};
use super::tree::{Assertion, PatternKind, PatternNode, Sign};
use crate::limits::{HEIGHT_MAX, INSTRUCTIONS_MAX, REPEAT_MAX};

/// The flags that apply at a position of a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`: letters match in both cases.
    pub fold: bool,
    /// `m`: `^` and `$` match at the beginning and the end of lines.
    pub lines: bool,
    /// `s`: `.` matches line feeds.
    pub dot_all: bool,
    /// `U`: repetitions match as little as they can, and `?` after one reverses that.
    pub lazy: bool,
}

/// A group that is open: the whole pattern is the outermost.
struct OpenGroup {
    is_numbered: bool,
    /// The flags that apply again after it.
    flags: Flags,
    choices: Vec<PatternNode>,
    sequence: Vec<PatternNode>,
}

impl OpenGroup {
    fn new(is_numbered: bool, flags: Flags) -> Self {
        Self { is_numbered, flags, choices: Vec::new(), sequence: Vec::new() }
    }
}

struct Parser<'p> {
    pattern: &'p str,
    flags: Flags,
    outer: Vec<OpenGroup>,
    group: OpenGroup,
}

/// Reads a pattern.
pub fn parse(pattern: &str) -> Result<PatternNode, Error> {
    let (flags, group) = (Flags::default(), OpenGroup::new(false, Flags::default()));
    let mut parser = Parser { pattern, flags, outer: Vec::new(), group };
    let mut rest = pattern;
    let mut repeated = "";
    while let Some(sign) = rest.chars().next() {
        let before = rest;
        let is_repeat;
        (rest, is_repeat) = parser.step(sign, rest, repeated)?;
        repeated = if is_repeat { before } else { "" };
    }
    let tree = parser.close_group()?;
    if parser.outer.is_empty() { Ok(tree) } else { Err(Error::new(Fault::OpenGroup, pattern)) }
}

/// Returns the part of `from` that was read when `rest` was left.
pub fn taken<'p>(from: &'p str, rest: &str) -> &'p str {
    &from[..from.len() - rest.len()]
}

impl<'p> Parser<'p> {
    /// Parses the construct that begins with a character; returns the rest, and whether it was a repetition.
    fn step(&mut self, sign: char, rest: &'p str, repeated: &'p str) -> Result<(&'p str, bool), Error> {
        let after = &rest[sign.len_utf8()..];
        match sign {
            '(' => return Ok((self.open_group(rest)?, false)),
            '|' => {
                let branch = self.close_sequence()?;
                self.group.choices.push(branch);
            }
            ')' => self.end_group()?,
            '^' => self.look(if self.flags.lines { Assertion::LineStart } else { Assertion::TextStart })?,
            '$' => self.look(if self.flags.lines { Assertion::LineEnd } else { Assertion::TextEnd })?,
            '.' => self.push(PatternNode::leaf(if self.flags.dot_all {
                PatternKind::Any
            } else {
                PatternKind::AnyButLineFeed
            }))?,
            '[' => {
                let (class, after) = class::parse(rest, self.flags.fold)?;
                self.push(PatternNode::leaf(PatternKind::Class(class)))?;
                return Ok((after, false));
            }
            '*' => return Ok((self.repeat(Sign::Star, rest, after, repeated)?, true)),
            '+' => return Ok((self.repeat(Sign::Plus, rest, after, repeated)?, true)),
            '?' => return Ok((self.repeat(Sign::Quest, rest, after, repeated)?, true)),
            '{' => match count(rest) {
                Some((count, after)) => {
                    let sign = count.ok_or_else(|| Error::new(Fault::RepeatCount, taken(rest, after)))?;
                    return Ok((self.repeat(sign, rest, after, repeated)?, true));
                }
                None => self.literal('{'.into())?,
            },
            '\\' => return Ok((self.escape(rest)?, false)),
            sign => self.literal(sign.into())?,
        }
        Ok((after, false))
    }

    fn look(&mut self, look: Assertion) -> Result<(), Error> {
        self.push(PatternNode::leaf(PatternKind::Assertion(look)))
    }

    fn literal(&mut self, sign: u32) -> Result<(), Error> {
        self.push(PatternNode::literal(sign, self.flags.fold))
    }

    /// Appends a part. Joins the two parts before it if both are literals: a repetition can no longer follow them.
    fn push(&mut self, node: PatternNode) -> Result<(), Error> {
        self.join_literals();
        let node = self.bounded(node)?;
        self.group.sequence.push(node);
        Ok(())
    }

    /// Joins the last two parts if both are literals.
    fn join_literals(&mut self) {
        let [.., before, last] = &mut self.group.sequence[..] else { return };
        if let (PatternKind::Literal { signs, fold }, PatternKind::Literal { signs: more, fold: same }) =
            (&mut before.kind, &last.kind)
            && fold == same
        {
            signs.extend(more);
            before.instructions = signs.len() as u64;
            self.group.sequence.pop();
        }
    }

    fn bounded(&self, node: PatternNode) -> Result<PatternNode, Error> {
        if node.instructions > INSTRUCTIONS_MAX {
            return Err(Error::new(Fault::Large, self.pattern));
        }
        if node.height > HEIGHT_MAX {
            return Err(Error::new(Fault::Depth, self.pattern));
        }
        Ok(node)
    }

    fn repeat(&mut self, sign: Sign, before: &'p str, after: &'p str, repeated: &'p str) -> Result<&'p str, Error> {
        let (after, turned) = after.strip_prefix('?').map_or((after, false), |after| (after, true));
        if !repeated.is_empty() {
            return Err(Error::new(Fault::NestedRepeat, taken(repeated, after)));
        }
        let Some(part) = self.group.sequence.pop() else {
            return Err(Error::new(Fault::RepeatOfNothing, taken(before, after)));
        };
        let node = self.bounded(PatternNode::repeat(part, sign, self.flags.lazy != turned))?;
        let is_many = matches!(sign, Sign::Count { least, most } if most.unwrap_or(least).max(least) >= 2);
        if is_many && !node.repeats_within(REPEAT_MAX) {
            return Err(Error::new(Fault::RepeatCount, taken(before, after)));
        }
        self.group.sequence.push(node);
        Ok(after)
    }

    fn open_group(&mut self, rest: &'p str) -> Result<&'p str, Error> {
        let (opening, after) = group::parse(rest, self.flags)?;
        let is_numbered = match opening {
            Opening::Flags(flags) => {
                self.flags = flags;
                return Ok(after);
            }
            Opening::Plain(_) => false,
            Opening::Numbered => true,
        };
        let group = OpenGroup::new(is_numbered, self.flags);
        self.outer.push(std::mem::replace(&mut self.group, group));
        if let Opening::Plain(flags) = opening {
            self.flags = flags;
        }
        Ok(after)
    }

    fn close_sequence(&mut self) -> Result<PatternNode, Error> {
        self.join_literals();
        let parts = std::mem::take(&mut self.group.sequence);
        self.bounded(PatternNode::sequence(parts))
    }

    /// Closes the open group; returns its content.
    fn close_group(&mut self) -> Result<PatternNode, Error> {
        let last = self.close_sequence()?;
        let mut choices = std::mem::take(&mut self.group.choices);
        choices.push(last);
        self.bounded(PatternNode::choice(choices))
    }

    fn end_group(&mut self) -> Result<(), Error> {
        let node = self.close_group()?;
        let Some(outer) = self.outer.pop() else {
            return Err(Error::new(Fault::UnexpectedClose, self.pattern));
        };
        let group = std::mem::replace(&mut self.group, outer);
        self.flags = group.flags;
        self.push(if group.is_numbered { PatternNode::capture(node) } else { node })
    }

    /// Parses the construct after a `\`.
    fn escape(&mut self, rest: &'p str) -> Result<&'p str, Error> {
        let letter = rest.as_bytes().get(1);
        let look = match letter {
            Some(b'A') => Some(Assertion::TextStart),
            Some(b'z') => Some(Assertion::TextEnd),
            Some(b'b') => Some(Assertion::WordBoundary),
            Some(b'B') => Some(Assertion::NoWordBoundary),
            Some(b'C') => return Err(Error::new(Fault::Escape, &rest[..2])),
            Some(b'Q') => {
                let (text, after) = rest[2..].split_once("\\E").unwrap_or((&rest[2..], ""));
                text.chars().try_for_each(|sign| self.literal(sign.into()))?;
                return Ok(after);
            }
            _ => None,
        };
        if let Some(look) = look {
            self.look(look)?;
            return Ok(&rest[2..]);
        }
        if let Some((item, after)) = class::escaped(rest)? {
            self.push(PatternNode::leaf(PatternKind::Class(class::Class::of(item, self.flags.fold))))?;
            return Ok(after);
        }
        let (sign, after) = escape::parse(rest)?;
        self.literal(sign)?;
        Ok(after)
    }
}

/// Parses a count such as `{2}`, `{2,}` or `{2,3}`. `None` if the text has another form, and so is literal; the inner
/// value is `None` for a count that is too large or reversed.
fn count(rest: &str) -> Option<(Option<Sign>, &str)> {
    let (least, rest) = integer(&rest[1..])?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => integer(rest).map(|(most, rest)| (Some(most), rest))?,
    };
    let after = rest.strip_prefix('}')?;
    let is_valid = least <= REPEAT_MAX && most.is_none_or(|most| most <= REPEAT_MAX && least <= most);
    Some((is_valid.then_some(Sign::Count { least, most }), after))
}

/// Parses digits without leading zeros; a number that does not fit becomes the largest one.
fn integer(rest: &str) -> Option<(u32, &str)> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = rest.split_at(length);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
