//! The text of an expression and its issues, with positions, formatted as cel-go does.

use std::fmt::Write;

use crate::limits::{ISSUE_LINE_BYTES_MAX, ISSUES_MAX};

/// The text of an expression.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    text: &'a str,
    /// The name that messages show in the place of a file name.
    name: &'a str,
}

/// A position in a text. Lines count from 1, columns from 0, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// From 1; -1 for no position.
    pub line: i32,
    /// From 0; -1 for no position.
    pub column: i32,
}

impl TextPosition {
    /// No position: for issues about the whole text.
    pub const NONE: Self = Self { line: -1, column: -1 };
}

/// An issue at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The position.
    pub position: TextPosition,
    /// The message, in cel-go's words.
    pub text: String,
}

/// The issues of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issues {
    issues: Vec<Issue>,
    /// The number of issues, including those that are only counted.
    count: usize,
}

impl<'a> Source<'a> {
    /// Returns the source of a client's expression.
    pub const fn new(text: &'a str) -> Self {
        Self { text, name: "<input>" }
    }

    /// Returns the source of an expression with another name in messages.
    pub const fn named(text: &'a str, name: &'a str) -> Self {
        Self { text, name }
    }

    /// Returns the text.
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
    /// Adds an issue.
    pub fn report(&mut self, position: TextPosition, text: impl Into<String>) {
        self.count += 1;
        if self.count <= ISSUES_MAX {
            self.issues.push(Issue { position, text: text.into() });
        }
    }

    /// Returns whether there are no issues.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the issues in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Issue> {
        self.issues.iter()
    }

    /// Formats the issues as cel-go does: by position, each with its line and a mark below it.
    pub fn show(&self, source: &Source<'_>) -> String {
        let mut sorted: Vec<&Issue> = self.issues.iter().collect();
        sorted.sort_by_key(|issue| issue.position);
        let mut lines: Vec<String> = sorted.into_iter().map(|issue| show(issue, source)).collect();
        if self.count > ISSUES_MAX {
            lines.push(format!("{} more errors were truncated", self.count - ISSUES_MAX));
        }
        lines.join("\n")
    }
}

fn show(issue: &Issue, source: &Source<'_>) -> String {
    let TextPosition { line, column } = issue.position;
    let mut shown = format!("ERROR: {}:{line}:{}: {}", source.name, column + 1, issue.text);
    let Some(text) = source.line(line).filter(|text| text.len() <= ISSUE_LINE_BYTES_MAX) else { return shown };
    let text = text.replace('\t', " ");
    let _ = write!(shown, "\n | {text}\n | ");
    let mut chars = text.chars();
    for char in chars.by_ref().take(usize::try_from(column).unwrap_or(0)) {
        shown.push(if char.len_utf8() > 1 { '\u{ff0e}' } else { '.' });
    }
    shown.push(if chars.next().is_some_and(|char| char.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
    shown
}
