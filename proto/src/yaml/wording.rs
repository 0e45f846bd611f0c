//! Errors of the scanner in the words of go-yaml, which counts lines in its own way: from 1 where the scanner gives up,
//! from 0 where the parser does, and not at all on the first line.

use saphyr_parser::ScanError;

/// Who gives up in go-yaml.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Scanner,
    Parser,
}

/// Where go-yaml has the problem, as seen from where this parser has it.
#[derive(Clone, Copy)]
enum Place {
    Here,
    NextLine,
    End,
}

use Place::{End, Here, NextLine};
use Stage::{Parser, Scanner};

const CANNOT_START: &str = "found character that cannot start any token";
const NO_KEY: &str = "did not find expected key";

/// Messages by how this parser's begin.
const WORDS: [(&str, Stage, Place, &str); 20] = [
    ("mapping values are not allowed", Scanner, Here, "mapping values are not allowed in this context"),
    ("mapping keys are not allowed", Scanner, Here, "mapping keys are not allowed in this context"),
    ("block sequence entries", Scanner, Here, "block sequence entries are not allowed in this context"),
    ("while parsing a flow sequence", Parser, Here, "did not find expected ',' or ']'"),
    ("while parsing a flow mapping", Parser, Here, "did not find expected ',' or '}'"),
    ("while parsing a block collection", Parser, Here, "did not find expected '-' indicator"),
    ("while parsing a block mapping", Parser, Here, NO_KEY),
    ("while parsing a node", Parser, Here, "did not find expected node content"),
    ("comment intercepting", Parser, NextLine, NO_KEY),
    ("tabs disallowed", Scanner, Here, CANNOT_START),
    ("unexpected character", Scanner, Here, CANNOT_START),
    (
        "while scanning a plain scalar, found a tab",
        Scanner,
        NextLine,
        "found a tab character that violates indentation",
    ),
    (
        "a block scalar content cannot start with a tab",
        Scanner,
        NextLine,
        "found a tab character where an indentation space is expected",
    ),
    ("while scanning a quoted scalar, found unexpected end", Scanner, End, "found unexpected end of stream"),
    ("invalid indentation in quoted scalar", Scanner, End, "found unexpected end of stream"),
    ("simple key expect", Scanner, Here, "could not find expected ':'"),
    ("while parsing a quoted scalar, found unknown escape", Scanner, Here, "found unknown escape character"),
    (
        "while parsing a quoted scalar, did not find expected hex",
        Scanner,
        Here,
        "did not find expected hexdecimal number",
    ),
    ("did not find expected <document start>", Parser, Here, "did not find expected <document start>"),
    ("while scanning for the next token", Scanner, Here, CANNOT_START),
];

/// The line that go-yaml names, if any, and its message.
pub fn of(error: &ScanError, text: &str) -> (Option<usize>, String) {
    let (line, info) = (error.marker().line(), error.info());
    if info.contains("unknown anchor") {
        return (None, format!("unknown anchor '{}' referenced", alias(error, text)));
    }
    if info.contains("misplaced bracket") {
        let before = text.chars().take(error.marker().index()).collect::<String>();
        let value = before.trim_end().ends_with([':', ',', '[', '{', '-']);
        let why = if value { "did not find expected node content" } else { NO_KEY };
        return (counted(Parser, line), why.to_owned());
    }
    let Some((_, stage, place, why)) = WORDS.iter().find(|(begin, ..)| info.starts_with(begin)) else {
        return (counted(Scanner, line), info.to_owned());
    };
    let line = match place {
        Here => line,
        NextLine => line + 1,
        End => text.matches('\n').count() + 1,
    };
    (counted(*stage, line), (*why).to_owned())
}

/// The number that go-yaml has for a line that is counted from 1.
fn counted(stage: Stage, line: usize) -> Option<usize> {
    let from_zero = line.saturating_sub(1);
    (from_zero > 0).then_some(if stage == Scanner { line } else { from_zero })
}

/// The name after the asterisk at which the parser gave up.
fn alias(error: &ScanError, text: &str) -> String {
    let line = text.lines().nth(error.marker().line().saturating_sub(1)).unwrap_or_default();
    let rest: String = line.chars().skip(error.marker().col()).collect();
    let name = rest.find('*').or(line.find('*').filter(|_| !rest.contains('*')));
    let source = if rest.contains('*') { rest.as_str() } else { line };
    let name = name.map_or("", |at| &source[at + 1..]);
    name.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

/// What go-yaml refuses before, or where, it looks for the first token: characters that no text has, and a tab.
pub fn refused(text: &str) -> Option<(Option<usize>, String)> {
    if text.chars().any(is_control) {
        return Some((None, "control characters are not allowed".to_owned()));
    }
    for (n, line) in text.lines().enumerate() {
        let rest = line.trim_start_matches([' ', '\t']);
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        let blank = &line[..line.len() - rest.len()];
        return blank.contains('\t').then(|| (counted(Scanner, n + 1), CANNOT_START.to_owned()));
    }
    None
}

fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use crate::yaml::parse;

    #[test]
    fn errors_are_worded_as_by_go_yaml() {
        for (text, want) in [
            ("a: b: c\n", "yaml: mapping values are not allowed in this context"),
            ("a: [b\n", "yaml: line 1: did not find expected ',' or ']'"),
            ("a:\n\tb: c\n", "yaml: line 2: found character that cannot start any token"),
            ("\ta: b\n", "yaml: found character that cannot start any token"),
            ("a: b\n\tc: d\n", "yaml: line 2: found a tab character that violates indentation"),
            ("a: 'x\n", "yaml: line 2: found unexpected end of stream"),
            ("- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator"),
            ("a:\n  - b\n c: d\n", "yaml: line 2: did not find expected key"),
            ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
            ("a: |\n b\n  c\nd\n", "yaml: line 5: could not find expected ':'"),
            ("a: @b\n", "yaml: found character that cannot start any token"),
            ("key: [a, b]]\n", "yaml: did not find expected key"),
            ("a: }\n", "yaml: did not find expected node content"),
            ("a: \u{1}\n", "yaml: control characters are not allowed"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), want, "{text}");
        }
    }
}
