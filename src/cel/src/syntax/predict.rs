//! How the parser chooses between alternatives: the equivalent of ANTLR's prediction for this grammar.

use super::grammar::{PRIMARY_FIRST, first};
use super::machine::{Machine, SyntaxFault};
use super::rule::{Alternative, Operator, Prediction, RulePart};
use super::token::TokenKind;

impl Machine<'_, '_> {
    /// Returns whether a list continues.
    pub(super) fn goes_again(&self, parts: &[RulePart], decision: Prediction) -> bool {
        let (begins, _) = first(parts);
        match decision {
            // After a comma that ends a list, no further item follows.
            Prediction::Comma => self.kind(0) == TokenKind::Comma && first(&parts[1..]).0.has(self.kind(1)),
            _ => begins.has(self.kind(0)),
        }
    }

    /// Returns whether one more `!` or `-` follows the first.
    pub(super) fn repeats(&self, parts: &'static [RulePart], decision: Prediction) -> Result<bool, SyntaxFault> {
        let is_first = self.phase == super::machine::Phase::Before;
        if is_first {
            return Ok(true);
        }
        match (decision, self.kind(0)) {
            (Prediction::Minus, TokenKind::Minus) => match self.kind(1) {
                TokenKind::Int | TokenKind::Float => Ok(true),
                next if PRIMARY_FIRST.has(next) => Ok(true),
                _ => Err(self.no_alternative(self.at + 1)),
            },
            (Prediction::Minus, next) if !PRIMARY_FIRST.has(next) => Err(self.no_alternative(self.at)),
            (_, next) => Ok(first(parts).0.has(next)),
        }
    }

    /// Returns the index of the alternative that the tokens match.
    pub(super) fn choose(&self, decision: Prediction, among: &'static [Alternative]) -> Result<usize, SyntaxFault> {
        match decision {
            Prediction::Unary => self.choose_unary(),
            Prediction::Primary => self.choose_primary(),
            Prediction::Literal if self.kind(0) == TokenKind::Minus => match self.kind(1) {
                TokenKind::Int => Ok(0),
                TokenKind::Float => Ok(2),
                _ => Err(self.no_alternative(self.at + 1)),
            },
            _ => {
                let next = self.kind(0);
                let found = among.iter().position(|each| first(each.parts).0.has(next));
                found.ok_or_else(|| self.no_alternative(self.at))
            }
        }
    }

    /// Chooses the alternative of a unary expression. A minus before a number is its sign, not an operator.
    fn choose_unary(&self) -> Result<usize, SyntaxFault> {
        match (self.kind(0), self.kind(1)) {
            (TokenKind::Not, _) => Ok(1),
            (TokenKind::Minus, TokenKind::Int | TokenKind::Float) => Ok(0),
            (TokenKind::Minus, next) if PRIMARY_FIRST.has(next) => Ok(2),
            (TokenKind::Minus, _) => Err(self.no_alternative(self.at + 1)),
            (next, _) if PRIMARY_FIRST.has(next) => Ok(0),
            _ => Err(self.no_alternative(self.at)),
        }
    }

    /// Decides whether a name is a variable, a function, or the type of an object, for which a `{` follows the whole
    /// name.
    fn choose_primary(&self) -> Result<usize, SyntaxFault> {
        let mut ahead = 0;
        match self.kind(0) {
            TokenKind::LeftParen => return Ok(2),
            TokenKind::LeftBracket => return Ok(3),
            TokenKind::LeftBrace => return Ok(4),
            TokenKind::Dot if self.kind(1) == TokenKind::Identifier => ahead = 1,
            TokenKind::Dot => return Err(self.no_alternative(self.at + 1)),
            TokenKind::Identifier => {}
            next if super::grammar::LITERAL_FIRST.has(next) => return Ok(6),
            _ => return Err(self.no_alternative(self.at)),
        }
        if self.kind(ahead + 1) == TokenKind::LeftParen {
            return Ok(1);
        }
        while self.kind(ahead + 1) == TokenKind::Dot && self.kind(ahead + 2) == TokenKind::Identifier {
            ahead += 2;
        }
        Ok(if self.kind(ahead + 1) == TokenKind::LeftBrace { 5 } else { 0 })
    }

    /// Returns the operator that follows the rule's parts so far. `None` if there is none.
    pub(super) fn operator(
        &self,
        operators: &'static [Operator],
        precedence: u8,
    ) -> Result<Option<&'static Operator>, SyntaxFault> {
        let next = self.kind(0);
        let fits = |operator: &&Operator| operator.precedence >= precedence && first(operator.parts).0.has(next);
        let Some(found) = operators.iter().find(fits) else { return Ok(None) };
        if next != TokenKind::Dot {
            return Ok(Some(found));
        }
        match (self.kind(1), self.kind(2)) {
            (TokenKind::Identifier, TokenKind::LeftParen) => Ok(operators.get(1)),
            (TokenKind::Identifier | TokenKind::Question | TokenKind::Quoted, _) => Ok(Some(found)),
            _ => Err(self.no_alternative(self.at + 1)),
        }
    }
}
