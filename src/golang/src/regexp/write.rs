//! Writes a tree in the syntax of the `regex` crate, without ambiguity.

use std::fmt::Write;

use super::class::{Class, ClassItem};
use super::tree::{Assertion, PatternKind, PatternNode, Repeat, Sign};
use super::unicode::Table;

/// A pattern that never matches.
const NEVER: &str = r"[^\x{0}-\x{10FFFF}]";
/// A pattern for any code point.
const ANY: &str = "(?s:.)";
/// Code points that are not characters, and therefore occur in no text.
const SURROGATES: (u32, u32) = (0xd800, 0xdfff);

/// Writes a tree.
pub fn write(node: &PatternNode) -> String {
    let mut out = String::new();
    node_to(node, &mut out);
    out
}

fn node_to(node: &PatternNode, out: &mut String) {
    match &node.kind {
        PatternKind::Empty => out.push_str("(?:)"),
        PatternKind::Literal { signs, fold } => literal_to(signs, *fold, out),
        PatternKind::Class(class) => class_to(class, out),
        PatternKind::Any => out.push_str(ANY),
        PatternKind::AnyButLineFeed => out.push('.'),
        PatternKind::Assertion(look) => out.push_str(match look {
            Assertion::TextStart => r"\A",
            Assertion::TextEnd => r"\z",
            Assertion::LineStart => "(?m:^)",
            Assertion::LineEnd => "(?m:$)",
            Assertion::WordBoundary => r"(?-u:\b)",
            Assertion::NoWordBoundary => r"(?-u:\B)",
        }),
        PatternKind::Capture(part) => node_to(part, out),
        PatternKind::Repeat(repeat) => repeat_to(repeat, out),
        PatternKind::Sequence(parts) => {
            for part in parts {
                grouped_to(part, out);
            }
        }
        PatternKind::Choice(parts) => {
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                grouped_to(part, out);
            }
        }
    }
}

fn grouped_to(node: &PatternNode, out: &mut String) {
    if matches!(node.kind, PatternKind::Choice(_) | PatternKind::Capture(_)) {
        out.push_str("(?:");
        node_to(node, out);
        out.push(')');
    } else {
        node_to(node, out);
    }
}

fn repeat_to(Repeat { part, sign, lazy }: &Repeat, out: &mut String) {
    out.push_str("(?:");
    node_to(part, out);
    out.push(')');
    let _ = match sign {
        Sign::Star => out.write_char('*'),
        Sign::Plus => out.write_char('+'),
        Sign::Quest => out.write_char('?'),
        Sign::Count { least, most: None } => write!(out, "{{{least},}}"),
        Sign::Count { least, most: Some(most) } => write!(out, "{{{least},{most}}}"),
    };
    if *lazy {
        out.push('?');
    }
}

fn sign_to(code: u32, out: &mut String) {
    match char::from_u32(code) {
        Some(sign) if sign.is_ascii_alphanumeric() => out.push(sign),
        _ => {
            let _ = write!(out, "\\x{{{code:X}}}");
        }
    }
}

fn literal_to(signs: &[u32], fold: bool, out: &mut String) {
    if fold {
        out.push_str("(?i:");
    }
    for &code in signs {
        if (SURROGATES.0..=SURROGATES.1).contains(&code) {
            out.push_str(NEVER);
        } else {
            sign_to(code, out);
        }
    }
    if fold {
        out.push(')');
    }
}

fn class_to(class: &Class, out: &mut String) {
    let mut inner = String::new();
    for item in &class.items {
        item_to(*item, &mut inner);
    }
    if inner.is_empty() {
        out.push_str(if class.is_negated { ANY } else { NEVER });
        return;
    }
    let (open, close) = if class.fold { ("(?i:[", "])") } else { ("[", "]") };
    out.push_str(open);
    if class.is_negated {
        out.push('^');
    }
    out.push_str(&inner);
    out.push_str(close);
}

fn item_to(item: ClassItem, out: &mut String) {
    match item {
        ClassItem::Range(low, high) => {
            let (first, last) = SURROGATES;
            for (low, high) in [(low, high.min(first - 1)), (low.max(last + 1), high)] {
                if low <= high {
                    range_to(low, high, out);
                }
            }
        }
        ClassItem::Ascii { ranges, is_negated } => {
            out.push_str(if is_negated { "[^" } else { "[" });
            for &(low, high) in ranges {
                range_to(low.into(), high.into(), out);
            }
            out.push(']');
        }
        ClassItem::Unicode { table, is_negated } => {
            let letter = if is_negated { 'P' } else { 'p' };
            let _ = match table {
                Table::Any => write!(out, "\\{letter}{{Any}}"),
                Table::Assigned => write!(out, "\\{letter}{{Assigned}}"),
                Table::Ascii => write!(out, "\\{letter}{{ASCII}}"),
                // No text has surrogates.
                Table::Category("Cs") if is_negated => out.write_str(r"\p{Any}"),
                Table::Category("Cs") => Ok(()),
                Table::Category(name) => write!(out, "\\{letter}{{gc={name}}}"),
                Table::Script(name) => write!(out, "\\{letter}{{sc={name}}}"),
            };
        }
    }
}

fn range_to(low: u32, high: u32, out: &mut String) {
    sign_to(low, out);
    if high > low {
        out.push('-');
        sign_to(high, out);
    }
}
