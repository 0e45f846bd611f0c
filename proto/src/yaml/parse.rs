//! Parses a text to the tree of its first document.

use std::borrow::Cow;

use super::events::{Event, Events, NodeProperties};
use super::scan::YamlFault;
use super::tree::{Open, Tree};
use super::{plain_json, scalar};
use crate::limits::JSON_DEPTH_MAX;
use crate::value::Value;

/// The reason why a text is not YAML that the server accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text violates a rule of YAML, or a value has another type than its tag says.
    #[error("yaml: {}{why}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// The line, as go-yaml counts it.
        line: Option<usize>,
        /// The fault, in the words of go-yaml.
        why: String,
    },
    /// Aliases expand to too much.
    #[error("yaml: document contains excessive aliasing")]
    Aliasing,
    /// Lists and maps nest too deeply.
    #[error("yaml: exceeded max depth of {JSON_DEPTH_MAX}")]
    TooDeep,
    /// A value that JSON cannot express.
    #[error("json: unsupported value: {0}")]
    Unsupported(&'static str),
    /// A key that JSON cannot express.
    #[error("unsupported map key of type: {0}")]
    Key(String),
}

impl Error {
    /// Returns an error without a line.
    pub(super) fn of(why: impl Into<String>) -> Self {
        Self::Syntax { line: None, why: why.into() }
    }
}

impl From<YamlFault> for Error {
    fn from(fault: YamlFault) -> Self {
        Self::Syntax { line: (fault.line > 0).then_some(fault.line), why: fault.why.to_owned() }
    }
}

/// A parsed text, with the facts that strict decoding needs.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Keys that occur more than once, as `line 5: key "k" already set in map`.
    pub duplicates: Vec<String>,
}

/// Parses the first document of a text.
///
/// # Errors
/// The first error, in go-yaml's words: in the text, then in its values, then in their conversion to JSON.
pub fn parse(text: &[u8]) -> Result<Parsed, Error> {
    match plain_json::parse(text) {
        Some(value) => Ok(Parsed { value, duplicates: Vec::new() }),
        None => parse_as_yaml(text),
    }
}

/// The same as [`parse`], but reads every text as YAML, also one in JSON.
pub(super) fn parse_as_yaml(text: &[u8]) -> Result<Parsed, Error> {
    let text = decoded(text)?;
    let mut events = Events::new(&text);
    let mut tree = Tree::default();
    loop {
        let (event, line) = events.step()?;
        match event {
            Event::DocumentEnd => return tree.finish(),
            Event::Scalar { text, is_plain, node: NodeProperties { anchor, tag } } => {
                if is_plain && text == "<<" && tree.begin_merge() {
                    continue;
                }
                let scalar = scalar::resolve(&text, is_plain, tag.as_deref());
                tree.scalar(scalar, &text, anchor, line)?;
            }
            Event::List(node) => tree.open(Open::list(node.anchor, line))?,
            Event::Map(node) => tree.open(Open::map(node.anchor, line))?,
            Event::End => tree.close()?,
            Event::Alias(name) => tree.alias(&name, line)?,
        }
    }
}

/// Decodes the characters of a text, which is UTF-8 unless a byte order mark says that it is UTF-16.
fn decoded(text: &[u8]) -> Result<Cow<'_, str>, Error> {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = text[2..].as_chunks::<2>();
        match String::from_utf16(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<u16>>()) {
            Ok(text) if rest.is_empty() => Ok(Cow::from(text)),
            Ok(_) => Err(Error::of("incomplete UTF-16 character")),
            Err(_) => Err(Error::of("unexpected low surrogate area")),
        }
    };
    let text = match text {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes)?,
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes)?,
        _ => {
            let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
            let refused = |error: std::str::Utf8Error| Error::of(octets(&text[error.valid_up_to()..]));
            std::str::from_utf8(text).map_err(refused)?.into()
        }
    };
    let is_control =
        |c: char| !matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    if text.contains(is_control) { Err(Error::of("control characters are not allowed")) } else { Ok(text) }
}

/// Returns why some bytes do not begin with a character.
fn octets(bytes: &[u8]) -> &'static str {
    let first = bytes.first().copied().unwrap_or(0);
    let (length, least) = match first {
        0xc0..=0xdf => (2, 0x80),
        0xe0..=0xef => (3, 0x800),
        0xf0..=0xf7 => (4, 0x1_0000),
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(rest) = bytes.get(1..length) else { return "incomplete UTF-8 octet sequence" };
    if rest.iter().any(|octet| octet & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    let code = rest.iter().fold(u32::from(first) & (0x7f >> length), |code, octet| code << 6 | u32::from(octet & 0x3f));
    if code < least { "invalid length of a UTF-8 sequence" } else { "invalid Unicode character" }
}
