//! Parses the line-oriented tables that are embedded in the binary: facts of the API that are easier to read as text.

use flotilla_proto::value::Value;

/// A line of an embedded table that does not follow the table's form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table {table}, line {line}: {problem}")]
pub struct TextError {
    /// Which table.
    pub table: &'static str,
    /// Line number from 1.
    pub line: usize,
    /// The reason.
    pub problem: &'static str,
}

/// A line of a table that is neither empty nor a comment.
pub struct Line {
    table: &'static str,
    number: usize,
    /// Whether it belongs to the entry above it.
    pub indented: bool,
    /// Its words.
    pub words: Vec<&'static str>,
}

impl Line {
    /// Returns an error about this line.
    pub fn error(&self, problem: &'static str) -> TextError {
        TextError { table: self.table, line: self.number, problem }
    }

    /// Returns the word at a position, or an error if there is none.
    pub fn word(&self, at: usize) -> Result<&'static str, TextError> {
        self.words.get(at).copied().ok_or_else(|| self.error("too few words"))
    }

    /// Returns the number at a position, or an error if there is none.
    pub fn number(&self, at: usize) -> Result<i64, TextError> {
        self.word(at)?.parse().map_err(|_| self.error("not a number"))
    }
}

/// Returns the lines of a table, without comments and empty ones.
pub fn lines(table: &'static str, text: &'static str) -> impl Iterator<Item = Line> {
    text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(move |(at, line)| {
        Line { table, number: at + 1, indented: line.starts_with(' '), words: line.split_ascii_whitespace().collect() }
    })
}

/// Returns the items of a comma-separated word; `core` stands for the group without a name.
pub fn list(word: &str) -> Value {
    Value::Array(word.split(',').map(|item| Value::from(if item == "core" { "" } else { item })).collect())
}
