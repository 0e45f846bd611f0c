//! Parses the text of a path into steps.

use flotilla_proto::value::Float;

use super::{Error, Filter, Path, PathNode, Slice};
use crate::limits::JSONPATH_DEPTH_MAX;

impl Path {
    /// Parses the inside of a `{...}` action.
    ///
    /// # Errors
    /// If the text is not a valid path.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse(text, JSONPATH_DEPTH_MAX)
    }
}

fn parse(text: &str, depth: usize) -> Result<Path, Error> {
    let depth = depth.checked_sub(1).ok_or(Error::Depth)?;
    let mut parser = Parser { rest: text, nodes: Vec::new(), depth };
    while !parser.rest.is_empty() {
        parser.step()?;
    }
    Ok(Path { nodes: parser.nodes })
}

struct Parser<'a> {
    rest: &'a str,
    nodes: Vec<PathNode>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn step(&mut self) -> Result<(), Error> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            return self.filter(rest);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            return self.recursive(rest);
        }
        let Some(first) = self.rest.chars().next() else { return Ok(()) };
        let after = &self.rest[first.len_utf8()..];
        match first {
            ' ' | '@' | '$' => self.rest = after,
            '[' => return self.brackets(after),
            '"' | '\'' => return self.quoted(first, after),
            '.' => {
                self.rest = after;
                self.field();
            }
            '+' | '-' | '0'..='9' => return self.number(),
            c if c == '_' || c.is_alphanumeric() => {
                let word = self.take(is_terminator);
                self.nodes.push(match word {
                    "true" => PathNode::Bool(true),
                    "false" => PathNode::Bool(false),
                    _ => PathNode::Word,
                });
            }
            '\n' | '\r' => return Err(Error::Unclosed),
            c => return Err(Error::Character(c)),
        }
        Ok(())
    }

    /// Takes the text before the first character for which `is_end` is true.
    fn take(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Parses a field's name; a backslash escapes the character after it.
    fn field(&mut self) {
        let mut is_escaped = false;
        let end = self.rest.find(|c| {
            if is_escaped {
                is_escaped = false;
                return false;
            }
            is_escaped = c == '\\';
            is_terminator(c)
        });
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        self.nodes.push(if name == "*" { PathNode::Wildcard } else { PathNode::Field(name.replace('\\', "")) });
    }

    fn recursive(&mut self, rest: &'a str) -> Result<(), Error> {
        if self.nodes.last() == Some(&PathNode::Recursive) {
            return Err(Error::Recursion);
        }
        self.nodes.push(PathNode::Recursive);
        self.rest = rest;
        if rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Error> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let (text, rest) = self.rest.split_at(digits.map_or(self.rest.len(), |end| sign + end));
        self.rest = rest;
        let number = match (text.parse(), text.parse().ok().and_then(Float::new)) {
            (Ok(int), _) => PathNode::Int(int),
            (_, Some(float)) => PathNode::Float(float),
            _ => return Err(Error::Number(text.into())),
        };
        self.nodes.push(number);
        Ok(())
    }

    fn quoted(&mut self, quote: char, after: &'a str) -> Result<(), Error> {
        let mut text = String::new();
        let mut characters = after.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                c if c == quote => {
                    self.rest = &after[at + 1..];
                    self.nodes.push(PathNode::Text(text));
                    return Ok(());
                }
                c => text.push(c),
            }
        }
        Err(Error::Unterminated("quoted string"))
    }

    fn brackets(&mut self, after: &'a str) -> Result<(), Error> {
        let (text, rest) = after.split_once(']').ok_or(Error::Unterminated("array"))?;
        self.rest = rest;
        if text.contains(',') {
            let part = |part: &str| parse(&format!("[{}]", part.trim_matches(' ')), self.depth);
            let parts = text.split(',').map(part).collect::<Result<_, _>>()?;
            self.nodes.push(PathNode::Union(parts));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            self.nodes.extend(parse(&format!(".{key}"), self.depth)?.nodes);
            return Ok(());
        }
        self.nodes.push(PathNode::Slice(slice(if text == "*" { ":" } else { text })?));
        Ok(())
    }

    fn filter(&mut self, text: &'a str) -> Result<(), Error> {
        let end = filter_end(text).ok_or(Error::Unterminated("filter"))?;
        let inside = &text[..end];
        self.rest = text[end + 1..].strip_prefix(']').ok_or(Error::Unterminated("filter"))?;
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let filter = match inside.find(is_operator) {
            Some(at) if at > 0 => {
                let width = inside[at..].find(|c| !is_operator(c)).unwrap_or(inside.len() - at);
                let (operator, right) = inside[at..].split_at(width);
                let test = Some((operator.into(), parse(right, self.depth)?));
                Filter { left: parse(&inside[..at], self.depth)?, test }
            }
            _ => Filter { left: parse(inside, self.depth)?, test: None },
        };
        self.nodes.push(PathNode::Filter(Box::new(filter)));
        Ok(())
    }
}

/// Returns the position of the first closing parenthesis outside of quotes.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open && previous != '\\' => quote = None,
            (None, ')') => return Some(at),
            (_, '\n') => return None,
            _ => {}
        }
        previous = c;
    }
    None
}

fn slice(text: &str) -> Result<Slice, Error> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(Error::Index(text.into()));
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) if part.starts_with('+') => Err(Error::Index(text.into())),
        Some(part) => part.parse::<i64>().map(Some).map_err(|_| Error::Index(text.into())),
    };
    let (from, to, step) = (number(0)?, number(1)?, number(2)?);
    match parts.len() {
        1 => Ok(Slice { from, to: Some(from.unwrap_or(0).saturating_add(1)), step, is_index: true }),
        _ => Ok(Slice { from, to, step, is_index: false }),
    }
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
