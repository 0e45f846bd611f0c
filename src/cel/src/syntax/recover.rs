//! Recovery from syntax errors: the parser reports an error once, skips tokens that do not fit, and continues.

use super::grammar::first;
use super::machine::{Frame, Halt, Machine, Phase, SyntaxFault};
use super::rule::RulePart;
use super::token::{Kinds, TokenKind};
use super::tree::Child;
use crate::limits::SYNTAX_ERRORS_MAX;

impl Machine<'_, '_> {
    /// Returns the tokens that fit here within the present rule, and whether it may end here.
    fn next_tokens(&self) -> Following {
        let top = self.levels.len() - 1;
        let level = &self.levels[top];
        match (self.phase, &level.parts[level.at..]) {
            (Phase::Back, [RulePart::Plus(parts, _), ..]) => self.within(top, 1).with(first(parts).0),
            _ => self.within(top, 0),
        }
    }

    /// Returns the tokens that fit `skipped` parts further on in a level, within its rule.
    fn within(&self, mut level: usize, mut skipped: usize) -> Following {
        let mut kinds = Kinds::NONE;
        loop {
            let now = &self.levels[level];
            let (more, nullable) = first(now.parts.get(now.at + skipped..).unwrap_or(&[]));
            kinds = kinds.and(more);
            match now.frame {
                _ if !nullable => return Following { kinds, ends: false, rule: level },
                Frame::Rule { .. } => return Following { kinds, ends: true, rule: level },
                Frame::Block => skipped = 1,
                Frame::Again => {
                    let above = &self.levels[level - 1];
                    kinds = kinds.and(first(&above.parts[above.at..=above.at]).0);
                    skipped = 1;
                }
            }
            level -= 1;
        }
    }

    /// Returns all tokens that may follow; if the rule may end here, also those that may follow the rule.
    fn with_callers(&self, found: Following) -> Kinds {
        let Following { mut kinds, mut ends, rule } = found;
        let mut rule = self.rule_of(rule);
        while ends && rule > 0 {
            let follow = self.within(rule - 1, 1);
            kinds = kinds.and(follow.kinds);
            ends = follow.ends;
            rule = self.rule_of(follow.rule);
        }
        if ends { kinds.and(Kinds::of(&[TokenKind::End])) } else { kinds }
    }

    fn rule_of(&self, level: usize) -> usize {
        let is_rule = |level: &usize| matches!(self.levels[*level].frame, Frame::Rule { .. });
        (0..=level).rev().find(is_rule).unwrap_or(0)
    }

    fn expected(&self) -> Kinds {
        self.with_callers(self.next_tokens())
    }

    /// Returns the tokens with which any open rule can continue: the parser resumes at one of them after an error.
    fn recovery_set(&self) -> Kinds {
        let mut kinds = Kinds::NONE;
        let mut rule = self.rule_of(self.levels.len() - 1);
        while rule > 0 {
            kinds = kinds.and(self.within(rule - 1, 1).kinds);
            rule = self.rule_of(rule - 1);
        }
        kinds
    }

    fn mismatch(&self) -> SyntaxFault {
        let text = format!("mismatched input {} expecting {}", self.display(), self.expected());
        SyntaxFault { text, token: self.at }
    }

    /// Returns the fault that no alternative fits the tokens from here to `last`.
    pub(super) fn no_alternative(&self, last: usize) -> SyntaxFault {
        let all = &self.tokens.all;
        let seen = |at: usize| self.tokens.seen[at.min(self.tokens.seen.len() - 1)] as usize;
        let (from, to) = (seen(self.at), seen(last));
        let text = if all[from].kind == TokenKind::End {
            "<EOF>".to_owned()
        } else {
            all[from..=to].iter().map(|token| token.text).collect()
        };
        SyntaxFault { text: format!("no viable alternative at input {}", quoted(&text)), token: last }
    }

    fn display(&self) -> String {
        let token = self.token(0);
        quoted(if token.kind == TokenKind::End { "<EOF>" } else { token.text })
    }

    /// Reports an error at a token.
    fn notify(&mut self, text: &str, token: usize) -> Result<(), Halt> {
        let seen = &self.tokens.seen;
        let offset = self.tokens.all[seen[token.min(seen.len() - 1)] as usize].offset;
        let position = (self.positions)(offset);
        if self.reported >= SYNTAX_ERRORS_MAX {
            self.issues.report(position, format!("Syntax error: More than {SYNTAX_ERRORS_MAX} syntax errors"));
            return Err(Halt::Reported);
        }
        self.reported += 1;
        self.issues.report(position, format!("Syntax error: {}", as_reserved(text)));
        Ok(())
    }

    fn unwanted(&mut self) -> Result<(), Halt> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let text = format!("extraneous input {} expecting {}", self.display(), self.expected());
        self.notify(&text, self.at)
    }

    /// Leaves the error state, since a token fits again.
    pub(super) fn matched(&mut self) {
        self.recovering = false;
        self.last_error = None;
        self.last_states.clear();
    }

    /// Ends the present rule because of a fault.
    pub(super) fn fail(&mut self, fault: SyntaxFault) -> Result<(), Halt> {
        if !self.recovering {
            self.recovering = true;
            self.notify(&fault.text, fault.token)?;
        }
        self.attempt()?;
        let state = self.state();
        let mut passed = 0;
        if self.last_error == Some(self.at) && self.last_states.contains(&state) {
            self.pass_over(&mut passed)?;
        }
        self.last_error = Some(self.at);
        self.last_states.push(state);
        let set = self.recovery_set();
        while self.kind(0) != TokenKind::End && !set.has(self.kind(0)) {
            self.pass_over(&mut passed)?;
        }
        self.leave();
        Ok(())
    }

    fn pass_over(&mut self, passed: &mut u32) -> Result<(), Halt> {
        let most = self.bounds.recovery_tokens;
        if *passed >= most {
            let text = format!("error recovery token lookahead limit exceeded: {most}");
            return Err(Halt::Because(text));
        }
        *passed += 1;
        self.consume();
        Ok(())
    }

    fn attempt(&mut self) -> Result<(), Halt> {
        let most = self.bounds.recoveries;
        if self.recoveries >= most {
            self.notify(&format!("error recovery attempt limit exceeded: {most}"), self.at)?;
            return Err(Halt::Reported);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Checks before a part with alternatives whether one of them fits. If none does, skips a superfluous token.
    pub(super) fn sync(&mut self, part: &'static RulePart) -> Result<Result<(), SyntaxFault>, Halt> {
        if self.recovering || first(std::slice::from_ref(part)).0.has(self.kind(0)) {
            return Ok(Ok(()));
        }
        let next = self.next_tokens();
        if next.ends || next.kinds.has(self.kind(0)) {
            return Ok(Ok(()));
        }
        if self.phase == Phase::Back {
            self.unwanted()?;
            let until = self.expected().and(self.recovery_set());
            while self.kind(0) != TokenKind::End && !until.has(self.kind(0)) {
                self.consume();
            }
            return Ok(Ok(()));
        }
        if self.delete_token()? {
            return Ok(Ok(()));
        }
        Ok(Err(self.mismatch()))
    }

    /// Skips a superfluous token if the next one fits. Returns whether it has skipped one.
    fn delete_token(&mut self) -> Result<bool, Halt> {
        if !self.expected().has(self.kind(1)) {
            return Ok(false);
        }
        self.unwanted()?;
        self.consume();
        self.matched();
        Ok(true)
    }

    /// Consumes a token of this kind. If it is missing and the token after it is present, continues without it.
    pub(super) fn expect(&mut self, kind: TokenKind) -> Result<Result<Child, SyntaxFault>, Halt> {
        if self.kind(0) == kind {
            let child = Child::Token(self.at as u32);
            self.matched();
            self.consume();
            return Ok(Ok(child));
        }
        self.attempt()?;
        if self.delete_token()? {
            let child = Child::Token(self.at as u32);
            self.consume();
            return Ok(Ok(child));
        }
        let behind = self.with_callers(self.within(self.levels.len() - 1, 1));
        if behind.has(self.kind(0)) {
            let expected = self.expected();
            if !self.recovering {
                self.recovering = true;
                let text = format!("missing {expected} at {}", self.display());
                self.notify(&text, self.at)?;
            }
            return Ok(Ok(Child::Missing(expected.first().unwrap_or(kind), self.at as u32)));
        }
        Ok(Err(self.mismatch()))
    }
}

/// Tokens that fit, and whether the rule at level `rule`, or one of its parts, may end instead.
pub(super) struct Following {
    kinds: Kinds,
    ends: bool,
    rule: usize,
}

impl Following {
    fn with(self, more: Kinds) -> Self {
        Self { kinds: self.kinds.and(more), ..self }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}

/// Replaces the message about a reserved word after a dot: upstream still gives the one of its former parser.
fn as_reserved(text: &str) -> String {
    let before = "no viable alternative at input '";
    let word = text.find(before).and_then(|at| {
        let mut rest = text[at + before.len()..].chars();
        rest.next()?;
        rest.as_str().strip_suffix('\'').filter(|word| matches!(*word, "true" | "false" | "null"))
    });
    match word {
        Some(word) => format!("mismatched input '{word}' expecting IDENTIFIER"),
        None => text.to_owned(),
    }
}
