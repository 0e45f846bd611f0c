//! Turns text into tokens, by the rules of YAML 1.1 as libyaml and its descendants implement them. go-yaml is one of
//! these, and clients wrote their files for it.

mod block;
mod cursor;
mod names;
mod words;

use std::collections::{HashMap, VecDeque};

use cursor::Cursor;

use crate::limits::{YAML_KEY_CHARACTERS_MAX, YAML_NESTING_MAX};

/// The reason why a text is not YAML, in the words of go-yaml.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct YamlFault {
    /// The line that the error names; 0 for none.
    pub line: usize,
    /// The fault, in the words of go-yaml.
    pub why: &'static str,
}

/// A token of the text.
#[derive(Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    /// The number of line breaks before it.
    pub line: usize,
}

/// The kind of a token.
#[derive(Debug, PartialEq)]
pub(super) enum TokenKind {
    Version(u32, u32),
    Handle { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { text: String, is_plain: bool },
    StreamEnd,
}

/// A position at which a key may have begun, which only a later colon decides.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    is_possible: bool,
    is_required: bool,
    /// The number of the token with which it begins.
    token: usize,
    line: usize,
    column: isize,
    index: usize,
}

/// Reads the tokens of a text.
pub(super) struct Scanner<'t> {
    cursor: Cursor<'t>,
    tokens: VecDeque<Token>,
    /// The number of tokens that were taken.
    taken: usize,
    /// The column of the innermost block collection.
    indent: isize,
    indents: Vec<isize>,
    key_allowed: bool,
    /// The possible key of the block context, and of each open flow collection.
    keys: Vec<SimpleKey>,
    /// The keys by the token with which they begin.
    keys_by_token: HashMap<usize, usize>,
    is_over: bool,
}

impl<'t> Scanner<'t> {
    /// Starts reading.
    pub fn new(text: &'t str) -> Self {
        Self {
            cursor: Cursor::new(text),
            tokens: VecDeque::new(),
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![SimpleKey::default()],
            keys_by_token: HashMap::new(),
            is_over: false,
        }
    }

    /// Returns the next token without taking it. After the last token, every call returns the end of the stream.
    pub fn peek(&mut self) -> Result<&Token, YamlFault> {
        while !self.is_over {
            if !self.tokens.is_empty() {
                // The token may turn out to begin a key, which would put other tokens before it.
                let Some(&key) = self.keys_by_token.get(&self.taken) else { break };
                if !self.is_valid(key)? {
                    break;
                }
            }
            self.fetch()?;
        }
        self.tokens.front().ok_or(YamlFault { line: 0, why: "did not find expected token" })
    }

    /// Takes the next token.
    pub fn take(&mut self) -> Result<Token, YamlFault> {
        let line = self.peek()?.line;
        self.taken += 1;
        Ok(self.tokens.pop_front().unwrap_or(Token { kind: TokenKind::StreamEnd, line }))
    }

    fn is_flow(&self) -> bool {
        self.keys.len() > 1
    }

    /// Returns an error at this position.
    fn fault(&self, why: &'static str) -> YamlFault {
        YamlFault { line: if self.cursor.line == 0 { 0 } else { self.cursor.line + 1 }, why }
    }

    fn push(&mut self, kind: TokenKind, line: usize) {
        self.tokens.push_back(Token { kind, line });
    }

    /// Skips an indicator and adds its token.
    fn indicator(&mut self, kind: TokenKind, characters: usize) {
        let line = self.cursor.line;
        self.cursor.skip(characters);
        self.push(kind, line);
    }

    fn is_valid(&mut self, key: usize) -> Result<bool, YamlFault> {
        let SimpleKey { is_possible, is_required, line, index, .. } = self.keys[key];
        if !is_possible {
            return Ok(false);
        }
        if line < self.cursor.line || index + YAML_KEY_CHARACTERS_MAX < self.cursor.index {
            if is_required {
                return Err(self.fault("could not find expected ':'"));
            }
            self.keys[key].is_possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Records that a key may begin here.
    fn save_key(&mut self) -> Result<(), YamlFault> {
        if !self.key_allowed {
            return Ok(());
        }
        self.remove_key()?;
        let column = self.cursor.column as isize;
        let token = self.taken + self.tokens.len();
        let (line, index) = (self.cursor.line, self.cursor.index);
        let is_required = !self.is_flow() && self.indent == column;
        let level = self.keys.len() - 1;
        self.keys[level] = SimpleKey { is_possible: true, is_required, token, line, column, index };
        self.keys_by_token.insert(token, level);
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), YamlFault> {
        let level = self.keys.len() - 1;
        let key = self.keys[level];
        if key.is_possible {
            if key.is_required {
                return Err(self.fault("could not find expected ':'"));
            }
            self.keys[level].is_possible = false;
            self.keys_by_token.remove(&key.token);
        }
        Ok(())
    }

    /// Begins a block collection, unless one begins at this column. `before` is the position of its token in the queue.
    fn roll(&mut self, column: isize, before: Option<usize>, kind: TokenKind, line: usize) -> Result<(), YamlFault> {
        if self.is_flow() || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > YAML_NESTING_MAX {
            return Err(self.fault("exceeded max depth of 10000"));
        }
        let token = Token { kind, line };
        match before {
            Some(place) => self.tokens.insert(place.min(self.tokens.len()), token),
            None => self.tokens.push_back(token),
        }
        Ok(())
    }

    /// Ends the block collections to the right of a column.
    fn unroll(&mut self, column: isize) {
        while !self.is_flow() && self.indent > column {
            self.push(TokenKind::BlockEnd, self.cursor.line);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Skips blanks, comments and line breaks. A tab does not count as a blank at the start of a line that may begin a
    /// key.
    fn skip_space(&mut self) {
        loop {
            if self.cursor.column == 0 && self.cursor.is_byte_order_mark() {
                self.cursor.skip(1);
            }
            let takes_tabs = self.is_flow() || !self.key_allowed;
            while self.cursor.byte(0) == b' ' || takes_tabs && self.cursor.byte(0) == b'\t' {
                self.cursor.skip(1);
            }
            if self.cursor.byte(0) == b'#' {
                self.cursor.skip_comment();
            }
            if !self.cursor.is_break(0) {
                return;
            }
            self.cursor.skip_break();
            self.key_allowed |= !self.is_flow();
        }
    }

    /// Reads one token or several into the queue.
    fn fetch(&mut self) -> Result<(), YamlFault> {
        self.skip_space();
        self.unroll(self.cursor.column as isize);
        if self.cursor.is_end() {
            self.cursor.end_line();
            self.outermost()?;
            self.push(TokenKind::StreamEnd, self.cursor.line);
            self.is_over = true;
            return Ok(());
        }
        let line = self.cursor.line;
        let (next, is_flow) = (self.cursor.byte(0), self.is_flow());
        if self.cursor.column == 0 && next == b'%' {
            self.outermost()?;
            let kind = self.directive()?;
            self.push(kind, line);
            return Ok(());
        }
        if self.cursor.is_document_mark() {
            self.outermost()?;
            self.indicator(if next == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd }, 3);
            return Ok(());
        }
        let is_alone = self.cursor.is_gap(1);
        match next {
            b'[' => self.open(TokenKind::FlowSequence),
            b'{' => self.open(TokenKind::FlowMapping),
            b']' => self.close(TokenKind::FlowSequenceEnd),
            b'}' => self.close(TokenKind::FlowMappingEnd),
            b',' => {
                self.remove_key()?;
                self.key_allowed = true;
                self.indicator(TokenKind::FlowEntry, 1);
                Ok(())
            }
            b'-' if is_alone => self.entry(),
            b'?' if is_flow || is_alone => self.key(),
            b':' if is_flow || is_alone => self.value(),
            _ => {
                let kind = self.word(next, is_flow)?;
                self.push(kind, line);
                Ok(())
            }
        }
    }

    /// Reads a scalar, an alias, or a property of a node.
    fn word(&mut self, next: u8, is_flow: bool) -> Result<TokenKind, YamlFault> {
        match next {
            b'|' | b'>' if !is_flow => {
                self.remove_key()?;
                self.key_allowed = true;
                return self.block(next == b'|');
            }
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => {
                return Err(self.fault("found character that cannot start any token"));
            }
            _ => {}
        }
        // A key may begin here. No other key can follow it on the line.
        self.save_key()?;
        self.key_allowed = false;
        match next {
            b'*' => self.anchor().map(TokenKind::Alias),
            b'&' => self.anchor().map(TokenKind::Anchor),
            b'!' => self.tag(),
            b'\'' | b'"' => self.quoted(next),
            _ => self.plain(),
        }
    }

    /// Leaves all block collections, as at the beginning or end of a document.
    fn outermost(&mut self) -> Result<(), YamlFault> {
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn open(&mut self, kind: TokenKind) -> Result<(), YamlFault> {
        self.save_key()?;
        let token = self.taken + self.tokens.len();
        self.keys.push(SimpleKey { token, ..SimpleKey::default() });
        if self.keys.len() > YAML_NESTING_MAX {
            return Err(self.fault("exceeded max depth of 10000"));
        }
        self.key_allowed = true;
        self.indicator(kind, 1);
        Ok(())
    }

    fn close(&mut self, kind: TokenKind) -> Result<(), YamlFault> {
        self.remove_key()?;
        if self.is_flow()
            && let Some(key) = self.keys.pop()
        {
            self.keys_by_token.remove(&key.token);
        }
        self.key_allowed = false;
        self.indicator(kind, 1);
        Ok(())
    }

    fn entry(&mut self) -> Result<(), YamlFault> {
        if !self.is_flow() {
            if !self.key_allowed {
                return Err(self.fault("block sequence entries are not allowed in this context"));
            }
            self.roll(self.cursor.column as isize, None, TokenKind::BlockSequence, self.cursor.line)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Result<(), YamlFault> {
        if !self.is_flow() {
            if !self.key_allowed {
                return Err(self.fault("mapping keys are not allowed in this context"));
            }
            self.roll(self.cursor.column as isize, None, TokenKind::BlockMapping, self.cursor.line)?;
        }
        self.remove_key()?;
        self.key_allowed = !self.is_flow();
        self.indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Result<(), YamlFault> {
        let level = self.keys.len() - 1;
        if self.is_valid(level)? {
            let SimpleKey { token, line, column, .. } = self.keys[level];
            let place = token.saturating_sub(self.taken).min(self.tokens.len());
            self.tokens.insert(place, Token { kind: TokenKind::Key, line });
            self.roll(column, Some(place), TokenKind::BlockMapping, line)?;
            self.keys[level].is_possible = false;
            self.keys_by_token.remove(&token);
            self.key_allowed = false;
        } else {
            if !self.is_flow() {
                if !self.key_allowed {
                    return Err(self.fault("mapping values are not allowed in this context"));
                }
                self.roll(self.cursor.column as isize, None, TokenKind::BlockMapping, self.cursor.line)?;
            }
            self.key_allowed = !self.is_flow();
        }
        self.indicator(TokenKind::Value, 1);
        Ok(())
    }
}
