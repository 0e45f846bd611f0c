//! Turns tokens into the events of the first document of a text.

use super::scan::{Fault, Kind, Scanner, Token};

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
        node: Node,
    },
    /// The beginning of a list.
    List(Node),
    /// The beginning of a map.
    Map(Node),
    /// The end of the innermost list or map.
    End,
    /// The end of the document.
    DocumentEnd,
}

/// The properties that may precede the content of a node.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Node {
    /// The name by which aliases refer to it.
    pub anchor: Option<String>,
    /// Its complete tag.
    pub tag: Option<String>,
}

/// What the grammar expects next.
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
type NextEvent = Result<(Event, usize), Fault>;

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

    fn kind(&mut self) -> Result<&Kind, Fault> {
        Ok(&self.scanner.peek()?.kind)
    }

    /// Returns an error about the next token.
    fn fault(&mut self, why: &'static str) -> Fault {
        match self.scanner.peek() {
            Ok(token) => Fault { line: token.line, why },
            Err(fault) => fault,
        }
    }

    fn document(&mut self) -> NextEvent {
        self.state = State::DocumentEnd;
        match self.kind()? {
            Kind::StreamEnd => return self.step(),
            Kind::Version(..) | Kind::Handle { .. } | Kind::DocumentStart => self.directives()?,
            _ => {
                self.default_handles();
                self.outer.push(State::DocumentEnd);
                return self.node(true, false);
            }
        }
        let is_empty = matches!(
            self.kind()?,
            Kind::Version(..) | Kind::Handle { .. } | Kind::DocumentStart | Kind::DocumentEnd | Kind::StreamEnd
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

    fn directives(&mut self) -> Result<(), Fault> {
        let mut has_version = false;
        loop {
            match self.kind()? {
                Kind::Version(..) if has_version => return Err(self.fault("found duplicate %YAML directive")),
                Kind::Version(1, 1) => has_version = true,
                Kind::Version(..) => return Err(self.fault("found incompatible YAML document")),
                Kind::Handle { .. } => {}
                Kind::DocumentStart => break,
                _ => return Err(self.fault("did not find expected <document start>")),
            }
            let line = self.scanner.peek()?.line;
            if let Kind::Handle { handle, prefix } = self.scanner.take()?.kind {
                if self.handles.iter().any(|(known, _)| *known == handle) {
                    return Err(Fault { line, why: "found duplicate %TAG directive" });
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
        (Event::Scalar { text: String::new(), is_plain: true, node: Node::default() }, line)
    }

    /// Takes an indicator, and reads the node after it. After the node, `then` is expected. Returns null when one of
    /// the tokens `ends` comes instead of a node.
    fn behind(&mut self, is_block: bool, then: State, ends: &[Kind]) -> NextEvent {
        let line = self.scanner.take()?.line;
        self.node_or_absent(is_block, then, ends, line)
    }

    fn node_or_absent(&mut self, is_block: bool, then: State, ends: &[Kind], line: usize) -> NextEvent {
        if ends.contains(self.kind()?) {
            return Ok(self.absent(then, line));
        }
        self.outer.push(then);
        self.node(is_block, is_block && matches!(then, State::BlockKey | State::BlockValue))
    }

    /// Leaves a list or map. Returns what is expected then.
    fn leave(&mut self) -> State {
        self.state = self.outer.pop().unwrap_or(State::DocumentEnd);
        self.state
    }

    fn node(&mut self, is_block: bool, may_be_indentless: bool) -> NextEvent {
        let line = self.scanner.peek()?.line;
        if let Kind::Alias(_) = self.kind()? {
            self.leave();
            return match self.scanner.take()?.kind {
                Kind::Alias(name) => Ok((Event::Alias(name), line)),
                _ => Err(Fault { line, why: "did not find expected node content" }),
            };
        }
        let node = self.properties()?;
        let has_properties = node.anchor.is_some() || node.tag.is_some();
        let event = match self.kind()? {
            Kind::BlockEntry if may_be_indentless => {
                self.state = State::IndentlessEntry;
                Event::List(node)
            }
            Kind::Scalar { .. } => {
                self.leave();
                let Token { kind: Kind::Scalar { text, is_plain }, .. } = self.scanner.take()? else {
                    return Err(Fault { line, why: "did not find expected node content" });
                };
                // The tag `!` only says that there is a tag.
                let tag = node.tag.filter(|tag| tag != "!");
                let is_bare = is_plain && tag.is_none();
                return Ok((Event::Scalar { text, is_plain: is_bare, node: Node { tag, ..node } }, line));
            }
            Kind::FlowSequence => {
                self.state = State::FlowEntry { is_first: true };
                self.scanner.take()?;
                Event::List(node)
            }
            Kind::FlowMapping => {
                self.state = State::FlowKey { is_first: true };
                self.scanner.take()?;
                Event::Map(node)
            }
            Kind::BlockSequence if is_block => {
                self.state = State::BlockEntry;
                self.scanner.take()?;
                Event::List(node)
            }
            Kind::BlockMapping if is_block => {
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
    fn properties(&mut self) -> Result<Node, Fault> {
        let mut node = Node::default();
        loop {
            let line = self.scanner.peek()?.line;
            let is_property = match self.kind()? {
                Kind::Anchor(_) => node.anchor.is_none(),
                Kind::Tag { .. } => node.tag.is_none(),
                _ => false,
            };
            if !is_property {
                return Ok(node);
            }
            match self.scanner.take()?.kind {
                Kind::Anchor(name) => node.anchor = Some(name),
                Kind::Tag { handle, suffix } if handle.is_empty() => node.tag = Some(suffix),
                Kind::Tag { handle, suffix } => {
                    let known = self.handles.iter().find(|(known, _)| *known == handle);
                    let (_, prefix) = known.ok_or(Fault { line, why: "found undefined tag handle" })?;
                    node.tag = Some(format!("{prefix}{suffix}"));
                }
                _ => {}
            }
        }
    }

    fn block_entry(&mut self) -> NextEvent {
        let Token { kind, line } = self.scanner.peek()?;
        match (kind, *line) {
            (Kind::BlockEntry, _) => self.behind(true, State::BlockEntry, &[Kind::BlockEntry, Kind::BlockEnd]),
            (Kind::BlockEnd, line) => {
                self.leave();
                self.scanner.take()?;
                Ok((Event::End, line))
            }
            (_, line) => Err(Fault { line, why: "did not find expected '-' indicator" }),
        }
    }

    /// Reads an entry of a list that is at the column of its key.
    fn indentless_entry(&mut self) -> NextEvent {
        if *self.kind()? == Kind::BlockEntry {
            let ends = [Kind::BlockEntry, Kind::Key, Kind::Value, Kind::BlockEnd];
            return self.behind(true, State::IndentlessEntry, &ends);
        }
        self.leave();
        Ok((Event::End, self.scanner.peek()?.line))
    }

    fn block_key(&mut self) -> NextEvent {
        let Token { kind, line } = self.scanner.peek()?;
        match (kind, *line) {
            (Kind::Key, _) => self.behind(true, State::BlockValue, &[Kind::Key, Kind::Value, Kind::BlockEnd]),
            (Kind::BlockEnd, line) => {
                self.leave();
                self.scanner.take()?;
                Ok((Event::End, line))
            }
            (_, line) => Err(Fault { line, why: "did not find expected key" }),
        }
    }

    fn block_value(&mut self) -> NextEvent {
        if *self.kind()? != Kind::Value {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(State::BlockKey, line));
        }
        self.behind(true, State::BlockKey, &[Kind::Key, Kind::Value, Kind::BlockEnd])
    }

    fn flow_entry(&mut self, is_first: bool) -> NextEvent {
        if *self.kind()? != Kind::FlowSequenceEnd {
            if !is_first {
                if *self.kind()? != Kind::FlowEntry {
                    return Err(self.fault("did not find expected ',' or ']'"));
                }
                self.scanner.take()?;
            }
            if *self.kind()? == Kind::Key {
                self.state = State::PairKey;
                let line = self.scanner.take()?.line;
                return Ok((Event::Map(Node::default()), line));
            }
            if *self.kind()? != Kind::FlowSequenceEnd {
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
        self.node_or_absent(false, State::PairValue, &[Kind::Value, Kind::FlowEntry, Kind::FlowSequenceEnd], line)
    }

    fn pair_value(&mut self) -> NextEvent {
        if *self.kind()? != Kind::Value {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(State::PairEnd, line));
        }
        self.behind(false, State::PairEnd, &[Kind::FlowEntry, Kind::FlowSequenceEnd])
    }

    fn flow_key(&mut self, is_first: bool) -> NextEvent {
        if *self.kind()? != Kind::FlowMappingEnd {
            if !is_first {
                if *self.kind()? != Kind::FlowEntry {
                    return Err(self.fault("did not find expected ',' or '}'"));
                }
                self.scanner.take()?;
            }
            if *self.kind()? == Kind::Key {
                let ends = [Kind::Value, Kind::FlowEntry, Kind::FlowMappingEnd];
                return self.behind(false, State::FlowValue { is_absent: false }, &ends);
            }
            if *self.kind()? != Kind::FlowMappingEnd {
                self.outer.push(State::FlowValue { is_absent: true });
                return self.node(false, false);
            }
        }
        self.leave();
        Ok((Event::End, self.scanner.take()?.line))
    }

    fn flow_value(&mut self, is_absent: bool) -> NextEvent {
        let then = State::FlowKey { is_first: false };
        if is_absent || *self.kind()? != Kind::Value {
            let line = self.scanner.peek()?.line;
            return Ok(self.absent(then, line));
        }
        self.behind(false, then, &[Kind::FlowEntry, Kind::FlowMappingEnd])
    }
}
