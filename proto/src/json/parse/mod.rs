//! The parser. It keeps its own stack of open containers, so nesting costs no call depth.

mod scalar;

use crate::complaints::Complaints;
use crate::limits::{JSON_DEPTH_MAX, JSON_NESTING_MAX, JSON_READ_DEPTH_MAX};
use crate::value::{Hole, Map, Str, Value};

/// The reason why a text is not JSON, in the words of Go's `encoding/json`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text ends inside a value.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A character that is not allowed where it stands.
    #[error("invalid character {} {context}", quoted(*.character))]
    InvalidCharacter {
        /// The character.
        character: char,
        /// The part of the text in which the parser met it, in Go's words.
        context: &'static str,
        /// Byte offset of the character.
        offset: usize,
    },
    /// More than [`JSON_NESTING_MAX`] open containers, or more than can be kept where everything must be kept.
    #[error("exceeded max depth")]
    TooDeep,
    /// A number that does not fit into 64 bits, where everything must be kept.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Number(String),
    /// Bytes that are not UTF-8, where nothing may be replaced.
    #[error("invalid UTF-8")]
    Encoding,
}

impl From<&Hole> for Error {
    fn from(hole: &Hole) -> Self {
        match hole {
            Hole::Deep => Self::TooDeep,
            Hole::Number(text) | Hole::Literal(text) => Self::Number(text.to_string()),
        }
    }
}

/// Returns a character quoted as Go does.
fn quoted(character: char) -> String {
    match character {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        '\\' => r"'\\'".to_owned(),
        '\n' => r"'\n'".to_owned(),
        '\r' => r"'\r'".to_owned(),
        '\t' => r"'\t'".to_owned(),
        c if (c as u32) < 0x20 || c as u32 == 0x7f => format!(r"'\x{:02x}'", c as u32),
        c if c.is_control() || matches!(c, '\u{a0}' | '\u{ad}') => format!(r"'\u{:04x}'", c as u32),
        c => format!("'{c}'"),
    }
}

/// A parsed text, with the facts that strict decoding needs.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Paths of keys that occur more than once in their object, as in `spec.containers[0].name`; see [`Complaints`].
    pub duplicates: Vec<String>,
    /// Whether some numbers would be written in another form than the text has: see [`Hole::Literal`].
    pub has_literals: bool,
    /// Whether a value lay too deep to be kept. [`Value::hole`] shows whether its place is still in a tree.
    pub deep: bool,
    /// The first number that no tree can keep, as it is written in the text. [`Value::hole`] shows whether such a
    /// number is still in a tree.
    pub overflow: Option<String>,
}

impl Parsed {
    /// Returns the value if all of the text was kept. Its numbers do not keep the form in which they were written.
    ///
    /// # Errors
    /// [`Error::Number`] or [`Error::TooDeep`].
    pub fn whole(self) -> Result<Value, Error> {
        match self {
            Self { overflow: Some(number), .. } => Err(Error::Number(number)),
            Self { deep: true, .. } => Err(Error::TooDeep),
            Self { mut value, has_literals, .. } => {
                if has_literals {
                    value.resolve_literals();
                }
                Ok(value)
            }
        }
    }
}

/// Parses one JSON text that was made from an object, or that will not become part of one.
///
/// # Errors
/// [`Error::TooDeep`] or [`Error::Number`] when not all of it can be kept.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    run(text, JSON_READ_DEPTH_MAX)?.whole()
}

/// Parses one JSON text of a client, and reports repeated keys and values that were not kept. Numbers keep the form in
/// which they are written in the text.
pub fn parse_tracking(text: &[u8]) -> Result<Parsed, Error> {
    run(text, JSON_DEPTH_MAX)
}

fn run(text: &[u8], depth_max: usize) -> Result<Parsed, Error> {
    // Invalid UTF-8 becomes U+FFFD, as in Go.
    match std::str::from_utf8(text) {
        Ok(text) => Parser::new(text, depth_max).run(),
        Err(error) => {
            let lossy = String::from_utf8_lossy(text);
            Parser::new(&lossy, depth_max).run().map_err(|failure| match failure {
                // The byte itself is named, not its replacement.
                Error::InvalidCharacter { context, offset, .. } if offset == error.valid_up_to() => {
                    Error::InvalidCharacter { character: char::from(text[offset]), context, offset }
                }
                other => other,
            })
        }
    }
}

/// An open container: the index of its first item in the parser's `items`, or of its first member in the parser's
/// `members` and the key of its next member.
enum Open {
    Array(usize),
    Object(usize, Str),
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    open: Vec<Open>,
    /// The items of all open lists, so that a list takes only as much memory as its items once it is closed.
    items: Vec<Value>,
    /// The members of all open objects.
    members: Vec<(Str, Value)>,
    duplicates: Complaints,
    has_literals: bool,
    /// The depth down to which containers are kept.
    depth_max: usize,
    deep: bool,
    overflow: Option<String>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth_max: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            open: Vec::new(),
            items: Vec::new(),
            members: Vec::new(),
            duplicates: Complaints::default(),
            has_literals: false,
            depth_max,
            deep: false,
            overflow: None,
        }
    }

    fn run(mut self) -> Result<Parsed, Error> {
        let value = loop {
            if let Some(value) = self.value()?
                && let Some(value) = self.close(value)?
            {
                break value;
            }
        };
        self.blank();
        if self.at < self.bytes.len() {
            return Err(self.invalid("after top-level value"));
        }
        let Self { duplicates, has_literals, deep, overflow, .. } = self;
        Ok(Parsed { value, duplicates: duplicates.into_vec(), has_literals, deep, overflow })
    }

    /// Reads a scalar or an empty container, or opens a container (`None`).
    fn value(&mut self) -> Result<Option<Value>, Error> {
        self.blank();
        match self.peek()? {
            b'{' => {
                self.at += 1;
                self.blank();
                if self.peek()? == b'}' {
                    self.at += 1;
                    return Ok(Some(Value::object()));
                }
                let key = self.key()?;
                self.push(Open::Object(self.members.len(), key))?;
                Ok(None)
            }
            b'[' => {
                self.at += 1;
                self.blank();
                if self.peek()? == b']' {
                    self.at += 1;
                    return Ok(Some(Value::Array(Vec::new())));
                }
                self.push(Open::Array(self.items.len()))?;
                Ok(None)
            }
            b'"' => Ok(Some(Value::Str(self.string()?))),
            b't' => self.literal("true", "in literal true (expecting 'r')", Value::Bool(true)).map(Some),
            b'f' => self.literal("false", "in literal false (expecting 'a')", Value::Bool(false)).map(Some),
            b'n' => self.literal("null", "in literal null (expecting 'u')", Value::Null).map(Some),
            b'-' | b'0'..=b'9' => self.number().map(Some),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn push(&mut self, open: Open) -> Result<(), Error> {
        if self.open.len() >= JSON_NESTING_MAX {
            return Err(Error::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    /// Puts a finished value into its container, and closes all containers that end here. Returns the top-level value
    /// at the end.
    fn close(&mut self, mut value: Value) -> Result<Option<Value>, Error> {
        loop {
            let Some(open) = self.open.last_mut() else {
                return Ok(Some(value));
            };
            match open {
                Open::Array(_) => {
                    self.items.push(value);
                    self.blank();
                    match self.peek()? {
                        b',' => {
                            self.at += 1;
                            return Ok(None);
                        }
                        b']' => self.at += 1,
                        _ => return Err(self.invalid("after array element")),
                    }
                }
                Open::Object(_, key) => {
                    self.members.push((std::mem::take(key), value));
                    self.blank();
                    match self.peek()? {
                        b',' => {
                            self.at += 1;
                            self.blank();
                            let next = self.key()?;
                            if let Some(Open::Object(_, key)) = self.open.last_mut() {
                                *key = next;
                            }
                            return Ok(None);
                        }
                        b'}' => self.at += 1,
                        _ => return Err(self.invalid("after object key:value pair")),
                    }
                }
            }
            value = self.finish();
        }
    }

    /// Closes the innermost container.
    fn finish(&mut self) -> Value {
        let innermost = self.open.pop();
        if self.open.len() >= self.depth_max {
            // Containers inside were dropped when they closed, so dropping this one does not recurse deeply.
            match innermost {
                Some(Open::Array(from)) => self.items.truncate(from),
                Some(Open::Object(from, _)) => self.members.truncate(from),
                None => {}
            }
            self.deep = true;
            return Value::Hole(Hole::Deep);
        }
        match innermost {
            Some(Open::Array(from)) => Value::Array(self.items.split_off(from)),
            Some(Open::Object(from, _)) => {
                let (map, mut repeated) = Map::from_entries(self.members.split_off(from));
                repeated.dedup();
                for key in repeated {
                    if self.duplicates.is_full() {
                        break;
                    }
                    let path = self.path(&key);
                    self.duplicates.add(path);
                }
                Value::Object(map)
            }
            None => Value::Null,
        }
    }

    /// Returns the path of a key of the container that was just closed.
    fn path(&self, key: &str) -> String {
        let mut path = String::new();
        let mut lists = self.open.iter().filter_map(|open| match open {
            Open::Array(from) => Some(*from),
            Open::Object(..) => None,
        });
        lists.next();
        for open in &self.open {
            match open {
                Open::Array(from) => {
                    let end = lists.next().unwrap_or(self.items.len());
                    path.push_str(&format!("[{}]", end - from));
                }
                Open::Object(_, key) if path.is_empty() => path.push_str(key),
                Open::Object(_, key) => {
                    path.push('.');
                    path.push_str(key);
                }
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path + key
    }

    fn key(&mut self) -> Result<Str, Error> {
        if self.peek()? != b'"' {
            return Err(self.invalid("looking for beginning of object key string"));
        }
        let key = self.string()?;
        self.blank();
        if self.peek()? != b':' {
            return Err(self.invalid("after object key"));
        }
        self.at += 1;
        Ok(key)
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, Error> {
        self.bytes.get(self.at).copied().ok_or(Error::UnexpectedEnd)
    }

    /// Returns the next byte of a word, a number or an escape. Go puts a space behind the end of the input, and names
    /// that space if such a token is cut off.
    fn peek_in_token(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    fn invalid(&self, context: &'static str) -> Error {
        // For a character of several bytes Go names the first byte.
        Error::InvalidCharacter { character: char::from(self.peek_in_token()), context, offset: self.at }
    }
}
