//! The text of an expression, and what is wrong with it: issues with their place, as cel-go shows them.

use std::fmt::Write;

/// Above this many issues they are only counted.
const ISSUES_MAX: usize = 100;
/// A line of more bytes is not shown.
const LINE_BYTES_MAX: usize = 16_384;

/// The text of an expression.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    text: &'a str,
    /// What stands for its file in messages.
    name: &'a str,
}

/// A place in a text. Lines count from 1, columns from 0, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From 1; -1 where there is none.
    pub line: i32,
    /// From 0; -1 where there is none.
    pub column: i32,
}

impl Place {
    /// No place in the text: what concerns all of it.
    pub const NONE: Self = Self { line: -1, column: -1 };
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where.
    pub place: Place,
    /// In cel-go's words.
    pub text: String,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issues {
    issues: Vec<Issue>,
    /// With those that are only counted.
    count: usize,
}

impl<'a> Source<'a> {
    /// An expression of a client.
    pub const fn new(text: &'a str) -> Self {
        Self { text, name: "<input>" }
    }

    /// An expression with another name in messages.
    pub const fn named(text: &'a str, name: &'a str) -> Self {
        Self { text, name }
    }

    /// The text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    fn line(&self, line: i32) -> Option<&'a str> {
        if self.text.is_empty() || line < 1 {
            return None;
        }
        self.text.split('\n').nth(usize::try_from(line - 1).ok()?)
    }
}

impl Issues {
    /// Notes an issue.
    pub fn report(&mut self, place: Place, text: impl Into<String>) {
        self.count += 1;
        if self.count <= ISSUES_MAX {
            self.issues.push(Issue { place, text: text.into() });
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// In the order in which they were noted.
    pub fn iter(&self) -> std::slice::Iter<'_, Issue> {
        self.issues.iter()
    }

    /// As cel-go shows them: by place, each with its line and a mark below it.
    pub fn show(&self, source: &Source<'_>) -> String {
        let mut sorted: Vec<&Issue> = self.issues.iter().collect();
        sorted.sort_by_key(|issue| issue.place);
        let mut lines: Vec<String> = sorted.into_iter().map(|issue| show(issue, source)).collect();
        if self.count > ISSUES_MAX {
            lines.push(format!("{} more errors were truncated", self.count - ISSUES_MAX));
        }
        lines.join("\n")
    }
}

fn show(issue: &Issue, source: &Source<'_>) -> String {
    let Place { line, column } = issue.place;
    let mut shown = format!("ERROR: {}:{line}:{}: {}", source.name, column + 1, issue.text);
    let Some(text) = source.line(line).filter(|text| text.len() <= LINE_BYTES_MAX) else { return shown };
    let text = text.replace('\t', " ");
    let _ = write!(shown, "\n | {text}\n | ");
    let mut chars = text.chars();
    for char in chars.by_ref().take(usize::try_from(column).unwrap_or(0)) {
        shown.push(if char.len_utf8() > 1 { '\u{ff0e}' } else { '.' });
    }
    shown.push(if chars.next().is_some_and(|char| char.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
    shown
}
