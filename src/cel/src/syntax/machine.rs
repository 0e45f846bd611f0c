//! The parser: walks the grammar along the tokens with a stack of its own, so that no text makes it deep.
//!
//! Where it looks for errors, how it goes on behind them, and what it then calls expected, is what a parser generated
//! by ANTLR does, since clients see those messages.

use super::grammar::{Decision, GRAMMAR, Label, Operator, Part, RULES, Role, Rule};
use super::lexer::Tokens;
use super::token::{Kind, Token};
use super::tree::{Child, NodeId, Tree};
use crate::limits::ParserBounds;
use crate::source::{Issues, Place};

/// Why parsing stopped before the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// With this issue, which concerns the whole text.
    Because(String),
    /// The issue was told already.
    Told,
}

/// A syntax error that ends a rule.
#[derive(Debug)]
pub(super) struct Fault {
    pub text: String,
    /// The token at which it is told.
    pub token: usize,
}

/// What the parser does with a frame's parts when it is through with them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    Rule { rule: Rule, precedence: u8, node: NodeId, role: Role },
    Block,
    Again,
}

/// Parts that are under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub parts: &'static [Part],
    pub at: usize,
    pub frame: Frame,
}

/// Where in a part the parser is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Before,
    Back,
}

/// A state of the parser, as far as errors tell states apart.
pub(super) type State = (usize, usize, Phase);

/// The parser on its way through a text.
pub(super) struct Machine<'t, 'a> {
    pub tokens: &'t Tokens<'a>,
    pub places: &'t dyn Fn(i32) -> Place,
    pub issues: &'t mut Issues,
    pub bounds: ParserBounds,
    pub at: usize,
    pub levels: Vec<Level>,
    pub phase: Phase,
    depths: [u16; RULES],
    pub tree: Tree,
    pub recovering: bool,
    pub last_error: Option<usize>,
    pub last_states: Vec<State>,
    pub recoveries: u32,
    pub told: u32,
    root: Option<NodeId>,
}

impl<'t, 'a> Machine<'t, 'a> {
    pub fn new(
        tokens: &'t Tokens<'a>,
        places: &'t dyn Fn(i32) -> Place,
        issues: &'t mut Issues,
        bounds: ParserBounds,
    ) -> Self {
        Self {
            tokens,
            places,
            issues,
            bounds,
            at: 0,
            levels: Vec::new(),
            phase: Phase::Before,
            depths: [0; RULES],
            tree: Tree::default(),
            recovering: false,
            last_error: None,
            last_states: Vec::new(),
            recoveries: 0,
            told: 0,
            root: None,
        }
    }

    /// Parses the whole text. Gives the node of its expression, if it came to one.
    pub fn run(mut self) -> Result<(Tree, Option<NodeId>), Halt> {
        self.enter(Rule::Start, 0, Role::Nothing)?;
        self.walk()?;
        let root = self.root.and_then(|root| self.tree.node(root, Role::First));
        Ok((self.tree, root))
    }

    fn walk(&mut self) -> Result<(), Halt> {
        while !self.levels.is_empty() {
            if let Err(fault) = self.step()? {
                self.fail(fault)?;
            }
        }
        Ok(())
    }

    pub fn token(&self, ahead: usize) -> Token<'a> {
        let seen = &self.tokens.seen;
        self.tokens.all[seen[(self.at + ahead).min(seen.len() - 1)] as usize]
    }

    pub fn kind(&self, ahead: usize) -> Kind {
        self.token(ahead).kind
    }

    pub fn state(&self) -> State {
        let level = &self.levels[self.levels.len() - 1];
        (level.parts.as_ptr() as usize, level.at, self.phase)
    }

    fn enter(&mut self, rule: Rule, precedence: u8, role: Role) -> Result<(), Halt> {
        self.deepen(rule)?;
        let node = self.tree.add(Label::Of(rule), self.at as u32);
        let frame = Frame::Rule { rule, precedence, node, role };
        self.levels.push(Level { parts: GRAMMAR[rule as usize], at: 0, frame });
        Ok(())
    }

    fn deepen(&mut self, rule: Rule) -> Result<(), Halt> {
        let depth = &mut self.depths[rule as usize];
        *depth += 1;
        if *depth > self.bounds.depth {
            return Err(Halt::Because(format!("expression recursion limit exceeded: {}", self.bounds.depth)));
        }
        Ok(())
    }

    /// Does one part of the present level, or ends the level.
    fn step(&mut self) -> Result<Result<(), Fault>, Halt> {
        let top = self.levels.len() - 1;
        let level = self.levels[top];
        let Some(part) = level.parts.get(level.at) else {
            return self.end_level(level);
        };
        self.phase = Phase::Before;
        match part {
            Part::Token(kind, role) => {
                let matched = self.expect(*kind)?;
                Ok(matched.map(|child| self.take(*role, child)))
            }
            Part::OneOf(_, role) => {
                // The decision saw that it is one of them.
                let child = Child::Token(self.at as u32);
                self.matched();
                self.consume();
                self.take(*role, child);
                Ok(Ok(()))
            }
            Part::Rule(rule, precedence, role) => {
                self.enter(*rule, *precedence, *role)?;
                Ok(Ok(()))
            }
            part => self.decide(part),
        }
    }

    fn end_level(&mut self, level: Level) -> Result<Result<(), Fault>, Halt> {
        match level.frame {
            Frame::Rule { .. } => {
                self.leave();
                Ok(Ok(()))
            }
            Frame::Block => {
                self.levels.pop();
                self.advance();
                Ok(Ok(()))
            }
            Frame::Again => {
                self.levels.pop();
                self.phase = Phase::Back;
                let top = &self.levels[self.levels.len() - 1];
                self.decide(&top.parts[top.at])
            }
        }
    }

    fn advance(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.at += 1;
        }
    }

    /// Ends the present rule: its node becomes a part of the one that called it.
    pub fn leave(&mut self) {
        while let Some(level) = self.levels.pop() {
            let Frame::Rule { rule, node, role, .. } = level.frame else { continue };
            self.depths[rule as usize] = self.depths[rule as usize].saturating_sub(1);
            match self.rule_node() {
                Some(parent) => self.tree.link(parent, role, Child::Node(node)),
                None => self.root = Some(node),
            }
            break;
        }
        self.advance();
    }

    fn rule_node(&self) -> Option<NodeId> {
        self.levels.iter().rev().find_map(|level| match level.frame {
            Frame::Rule { node, .. } => Some(node),
            _ => None,
        })
    }

    /// The parser's precedence, which the innermost rule on the way down says.
    fn precedence(&self) -> u8 {
        let found = self.levels.iter().rev().find_map(|level| match level.frame {
            Frame::Rule { precedence, .. } => Some(precedence),
            _ => None,
        });
        found.unwrap_or(0)
    }

    fn take(&mut self, role: Role, child: Child) {
        if role != Role::Nothing
            && let Some(node) = self.rule_node()
        {
            self.tree.link(node, role, child);
        }
        self.advance();
    }

    pub fn consume(&mut self) {
        if self.kind(0) != Kind::End {
            self.at += 1;
        }
    }

    /// Goes into a part of which there are several ways, or past it.
    fn decide(&mut self, part: &'static Part) -> Result<Result<(), Fault>, Halt> {
        if let Err(fault) = self.sync(part)? {
            // Upstream looks ahead before it looks whether that failed, where it looks ahead at all.
            if !matches!(part, Part::Plus(_, Decision::Minus)) {
                return Ok(Err(fault));
            }
        }
        let entered = match part {
            Part::Optional(parts) => super::grammar::first(parts).0.has(self.kind(0)).then_some((*parts, Frame::Block)),
            Part::Star(parts, decision) => self.goes_again(parts, *decision).then_some((*parts, Frame::Again)),
            Part::Plus(parts, decision) => match self.repeats(parts, *decision) {
                Ok(again) => again.then_some((*parts, Frame::Again)),
                Err(fault) => return Ok(Err(fault)),
            },
            Part::Choice(alternatives, decision) => match self.choose(*decision, alternatives) {
                Ok(chosen) => {
                    let chosen = &alternatives[chosen];
                    self.name(chosen.label);
                    Some((chosen.parts, Frame::Block))
                }
                Err(fault) => return Ok(Err(fault)),
            },
            Part::Operators(operators) => match self.operator(operators, self.precedence()) {
                Ok(Some(operator)) => {
                    self.push(operator);
                    Some((operator.parts, Frame::Again))
                }
                Ok(None) => None,
                Err(fault) => return Ok(Err(fault)),
            },
            Part::Token(..) | Part::OneOf(..) | Part::Rule(..) => None,
        };
        match entered {
            Some((parts, frame)) => self.levels.push(Level { parts, at: 0, frame }),
            None => self.advance(),
        }
        Ok(Ok(()))
    }

    fn name(&mut self, label: Label) {
        if let Some(node) = self.rule_node() {
            self.tree.relabel(node, label);
        }
    }

    /// Makes what the rule has so far the first operand of an operator.
    fn push(&mut self, operator: &'static Operator) {
        let Some(at) = self.levels.iter().rposition(|level| matches!(level.frame, Frame::Rule { .. })) else {
            return;
        };
        let Frame::Rule { node, .. } = self.levels[at].frame else { return };
        let made = self.tree.add(operator.label, self.tree.start(node));
        self.tree.link(made, Role::First, Child::Node(node));
        if let Frame::Rule { node, .. } = &mut self.levels[at].frame {
            *node = made;
        }
    }
}
