//! Turns tokens into the events of the first document of a text.

use super::scan::{Scanner, Token, TokenKind, YamlFault};

/// The prefix of the names of YAML's own types.
pub(super) const OWN_TAGS: &str = "tag:yaml.org,2002:";

/// A step of a document.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// An alias, with the name of its anchor.
    Alias(String),
    /// A scalar.
    Scalar {
        /// The text.
        text: String,
        /// Whether its type follows from its text: it has neither quotes nor a tag.
        is_plain: bool,
        /// Its anchor and tag.
        node: NodeProperties,
    },
    /// The beginning of a list.
    List(NodeProperties),
    /// The beginning of a map.
    Map(NodeProperties),
    /// The end of the innermost list or map.
    End,
    /// The end of the document.
    DocumentEnd,
}

/// The properties that may precede the content of a node.
#[derive(Debug, PartialEq, Default)]
pub(super) struct NodeProperties {
    /// The name by which aliases refer to it.
    pub anchor: Option<String>,
    /// Its complete tag.
    pub tag: Option<String>,
}

/// The part of the grammar that is expected next.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Document,
    DocumentEnd,
    BlockEntry,
    IndentlessEntry,
    BlockKey,
    BlockValue,
    FlowEntry { is_first: bool },
    PairKey,
    PairValue,
    PairEnd,
    FlowKey { is_first: bool },
    FlowValue { is_absent: bool },
}

/// Reads the events of a text.
pub(super) struct Events<'t> {
    scanner: Scanner<'t>,
    state: State,
    /// The states after the open nodes, the innermost last.
    outer: Vec<State>,
    /// The handles of tags, and the prefixes that they stand for.
    handles: Vec<(String, String)>,
}

/// An event and the line that it begins at.
type NextEvent = Result<(Event, usize), YamlFault>;

impl<'t> Events<'t> {
    /// Starts reading.
    pub fn new(text: &'t str) -> Self {
        Self { scanner: Scanner::new(text), state: State::Document, outer: Vec::new(), handles: Vec::new() }
    }

    /// Returns the next event. There is none after the end of the document or an error.
    pub fn step(&mut self) -> NextEvent {
        match self.state {
            State::Document => self.document(),
            State::DocumentEnd => {
                let line = self.scanner.peek()?.line;
                Ok((Event::DocumentEnd, line))
            }
            State::BlockEntry => self.block_entry(),
            State::IndentlessEntry => self.indentless_entry(),
            State::BlockKey => self.block_key(),
            State::BlockValue => self.block_value(),
            State::FlowEntry { is_first } => self.flow_entry(is_first),
            State::PairKey => self.pair_key(),
            State::PairValue => self.pair_value(),
            State::PairEnd => {
                self.state = State::FlowEntry { is_first: false };
                Ok((Event::End, self.scanner.peek()?.line))
            }
            State::FlowKey { is_first } => self.flow_key(is_first),
            State::FlowValue { is_absent } => self.flow_value(is_absent),
        }
    }

    fn kind(&mut self) -> Result<&TokenKind, YamlFault> {
        Ok(&self.scanner.peek()?.kind)
    }

    /// Returns an error about the next token.
    fn fault(&mut self, why: &'static str) -> YamlFault {
        match self.scanner.peek() {
            Ok(token) => YamlFault { line: token.line, why },
            Err(fault) => fault,
        }
    }

    fn document(&mut self) -> NextEvent {
        self.state = State::DocumentEnd;
        match self.kind()? {
            TokenKind::StreamEnd => return self.step(),
            TokenKind::Version(..) | TokenKind::Handle { .. } | TokenKind::DocumentStart => self.directives()?,
            _ => {
                self.default_handles();
                self.outer.push(State::DocumentEnd);
                return self.node(true, false);
            }
        }
        let is_empty = matches!(
            self.kind()?,
            TokenKind::Version(..)
                | TokenKind::Handle { .. }
                | TokenKind::DocumentStart
                | TokenKind::DocumentEnd
                | TokenKind::StreamEnd
        );
        if is_empty {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(State::DocumentEnd, line));
        }
        self.outer.push(State::DocumentEnd);
        self.node(true, false)
    }

    fn default_handles(&mut self) {
        for (handle, prefix) in [("!", "!"), ("!!", OWN_TAGS)] {
            if !self.handles.iter().any(|(known, _)| known == handle) {
                self.handles.push((handle.to_owned(), prefix.to_owned()));
            }
        }
    }

    fn directives(&mut self) -> Result<(), YamlFault> {
        let mut has_version = false;
        loop {
            match self.kind()? {
                TokenKind::Version(..) if has_version => return Err(self.fault("found duplicate %YAML directive")),
                TokenKind::Version(1, 1) => has_version = true,
                TokenKind::Version(..) => return Err(self.fault("found incompatible YAML document")),
                TokenKind::Handle { .. } => {}
                TokenKind::DocumentStart => break,
                _ => return Err(self.fault("did not find expected <document start>")),
            }
            let line = self.scanner.peek()?.line;
            if let TokenKind::Handle { handle, prefix } = self.scanner.take()?.kind {
                if self.handles.iter().any(|(known, _)| *known == handle) {
                    return Err(YamlFault { line, why: "found duplicate %TAG directive" });
                }
                self.handles.push((handle, prefix));
            }
        }
        self.default_handles();
        self.scanner.take().map(drop)
    }

    /// Returns the event of an absent node: null.
    fn absent(&mut self, then: State, line: usize) -> (Event, usize) {
        self.state = then;
        (Event::Scalar { text: String::new(), is_plain: true, node: NodeProperties::default() }, line)
    }

    /// Takes an indicator, and reads the node after it. After the node, `then` is expected. Returns null when one of
    /// the tokens `ends` comes instead of a node.
    fn behind(&mut self, is_block: bool, then: State, ends: &[TokenKind]) -> NextEvent {
        let line = self.scanner.take()?.line;
        self.node_or_absent(is_block, then, ends, line)
    }

    fn node_or_absent(&mut self, is_block: bool, then: State, ends: &[TokenKind], line: usize) -> NextEvent {
        if ends.contains(self.kind()?) {
            return Ok(self.absent(then, line));
        }
        self.outer.push(then);
        self.node(is_block, is_block && matches!(then, State::BlockKey | State::BlockValue))
    }

    /// Leaves a list or map. Returns the part that is expected then.
    fn leave(&mut self) -> State {
        self.state = self.outer.pop().unwrap_or(State::DocumentEnd);
        self.state
    }

    fn node(&mut self, is_block: bool, may_be_indentless: bool) -> NextEvent {
        let line = self.scanner.peek()?.line;
        if let TokenKind::Alias(_) = self.kind()? {
            self.leave();
            return match self.scanner.take()?.kind {
                TokenKind::Alias(name) => Ok((Event::Alias(name), line)),
                _ => Err(YamlFault { line, why: "did not find expected node content" }),
            };
        }
        let node = self.properties()?;
        let has_properties = node.anchor.is_some() || node.tag.is_some();
        let event = match self.kind()? {
            TokenKind::BlockEntry if may_be_indentless => {
                self.state = State::IndentlessEntry;
                Event::List(node)
            }
            TokenKind::Scalar { .. } => {
                self.leave();
                let Token { kind: TokenKind::Scalar { text, is_plain }, .. } = self.scanner.take()? else {
                    return Err(YamlFault { line, why: "did not find expected node content" });
                };
                // The tag `!` only says that there is a tag.
                let tag = node.tag.filter(|tag| tag != "!");
                let is_bare = is_plain && tag.is_none();
                return Ok((Event::Scalar { text, is_plain: is_bare, node: NodeProperties { tag, ..node } }, line));
            }
            TokenKind::FlowSequence => {
                self.state = State::FlowEntry { is_first: true };
                self.scanner.take()?;
                Event::List(node)
            }
            TokenKind::FlowMapping => {
                self.state = State::FlowKey { is_first: true };
                self.scanner.take()?;
                Event::Map(node)
            }
            TokenKind::BlockSequence if is_block => {
                self.state = State::BlockEntry;
                self.scanner.take()?;
                Event::List(node)
            }
            TokenKind::BlockMapping if is_block => {
                self.state = State::BlockKey;
                self.scanner.take()?;
                Event::Map(node)
            }
            _ if has_properties => {
                self.leave();
                let is_plain = node.tag.is_none();
                Event::Scalar { text: String::new(), is_plain, node }
            }
            _ => return Err(self.fault("did not find expected node content")),
        };
        Ok((event, line))
    }

    /// Reads an anchor and a tag, in either order.
    fn properties(&mut self) -> Result<NodeProperties, YamlFault> {
        let mut node = NodeProperties::default();
        loop {
            let line = self.scanner.peek()?.line;
            let is_property = match self.kind()? {
                TokenKind::Anchor(_) => node.anchor.is_none(),
                TokenKind::Tag { .. } => node.tag.is_none(),
                _ => false,
            };
            if !is_property {
                return Ok(node);
            }
            match self.scanner.take()?.kind {
                TokenKind::Anchor(name) => node.anchor = Some(name),
                TokenKind::Tag { handle, suffix } if handle.is_empty() => node.tag = Some(suffix),
                TokenKind::Tag { handle, suffix } => {
                    let known = self.handles.iter().find(|(known, _)| *known == handle);
                    let (_, prefix) = known.ok_or(YamlFault { line, why: "found undefined tag handle" })?;
                    node.tag = Some(format!("{prefix}{suffix}"));
                }
                _ => {}
            }
        }
    }

    fn block_entry(&mut self) -> NextEvent {
        let Token { kind, line } = self.scanner.peek()?;
        match (kind, *line) {
            (TokenKind::BlockEntry, _) => {
                self.behind(true, State::BlockEntry, &[TokenKind::BlockEntry, TokenKind::BlockEnd])
            }
            (TokenKind::BlockEnd, line) => {
                self.leave();
                self.scanner.take()?;
                Ok((Event::End, line))
            }
            (_, line) => Err(YamlFault { line, why: "did not find expected '-' indicator" }),
        }
    }

    /// Reads an entry of a list that is at the column of its key.
    fn indentless_entry(&mut self) -> NextEvent {
        if *self.kind()? == TokenKind::BlockEntry {
            let ends = [TokenKind::BlockEntry, TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd];
            return self.behind(true, State::IndentlessEntry, &ends);
        }
        self.leave();
        Ok((Event::End, self.scanner.peek()?.line))
    }

    fn block_key(&mut self) -> NextEvent {
        let Token { kind, line } = self.scanner.peek()?;
        match (kind, *line) {
            (TokenKind::Key, _) => {
                self.behind(true, State::BlockValue, &[TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd])
            }
            (TokenKind::BlockEnd, line) => {
                self.leave();
                self.scanner.take()?;
                Ok((Event::End, line))
            }
            (_, line) => Err(YamlFault { line, why: "did not find expected key" }),
        }
    }

    fn block_value(&mut self) -> NextEvent {
        if *self.kind()? != TokenKind::Value {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(State::BlockKey, line));
        }
        self.behind(true, State::BlockKey, &[TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd])
    }

    fn flow_entry(&mut self, is_first: bool) -> NextEvent {
        if *self.kind()? != TokenKind::FlowSequenceEnd {
            if !is_first {
                if *self.kind()? != TokenKind::FlowEntry {
                    return Err(self.fault("did not find expected ',' or ']'"));
                }
                self.scanner.take()?;
            }
            if *self.kind()? == TokenKind::Key {
                self.state = State::PairKey;
                let line = self.scanner.take()?.line;
                return Ok((Event::Map(NodeProperties::default()), line));
            }
            if *self.kind()? != TokenKind::FlowSequenceEnd {
                self.outer.push(State::FlowEntry { is_first: false });
                return self.node(false, false);
            }
        }
        self.leave();
        Ok((Event::End, self.scanner.take()?.line))
    }

    /// Reads the key of a map with a single entry, as in `[a: b]`.
    fn pair_key(&mut self) -> NextEvent {
        let line = self.scanner.peek()?.line;
        self.node_or_absent(
            false,
            State::PairValue,
            &[TokenKind::Value, TokenKind::FlowEntry, TokenKind::FlowSequenceEnd],
            line,
        )
    }

    fn pair_value(&mut self) -> NextEvent {
        if *self.kind()? != TokenKind::Value {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(State::PairEnd, line));
        }
        self.behind(false, State::PairEnd, &[TokenKind::FlowEntry, TokenKind::FlowSequenceEnd])
    }

    fn flow_key(&mut self, is_first: bool) -> NextEvent {
        if *self.kind()? != TokenKind::FlowMappingEnd {
            if !is_first {
                if *self.kind()? != TokenKind::FlowEntry {
                    return Err(self.fault("did not find expected ',' or '}'"));
                }
                self.scanner.take()?;
            }
            if *self.kind()? == TokenKind::Key {
                let ends = [TokenKind::Value, TokenKind::FlowEntry, TokenKind::FlowMappingEnd];
                return self.behind(false, State::FlowValue { is_absent: false }, &ends);
            }
            if *self.kind()? != TokenKind::FlowMappingEnd {
                self.outer.push(State::FlowValue { is_absent: true });
                return self.node(false, false);
            }
        }
        self.leave();
        Ok((Event::End, self.scanner.take()?.line))
    }

    fn flow_value(&mut self, is_absent: bool) -> NextEvent {
        let then = State::FlowKey { is_first: false };
        if is_absent || *self.kind()? != TokenKind::Value {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(then, line));
        }
        self.behind(false, then, &[TokenKind::FlowEntry, TokenKind::FlowMappingEnd])
    }
}
