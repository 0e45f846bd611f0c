//! Rules of a grammar: their parts, alternatives and operators, and the roles of parts.

use super::token::{Kinds, TokenKind};

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rule {
    /// All of an expression.
    Start,
    /// `a ? b : c`
    Expr,
    /// `a || b`
    Or,
    /// `a && b`
    And,
    /// `a < b`
    Relation,
    /// `a + b`
    Calc,
    /// `-a`
    Unary,
    /// `a.b`
    Member,
    /// A primary expression: a name, a literal, a call, or one in brackets.
    Primary,
    /// Arguments.
    ExprList,
    /// Items of a list.
    ListInit,
    /// Fields of an object.
    FieldList,
    /// The name of a field.
    OptField,
    /// Entries of a map.
    MapList,
    /// A name, perhaps in backquotes.
    EscapeIdent,
    /// An item or a key.
    OptExpr,
    /// A literal.
    Literal,
}

/// The number of rules.
pub const RULES: usize = 17;

/// The role of a part within its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No role.
    Nothing,
    /// The operand, or the first of several.
    First,
    /// The further operands: the second, the third, or one of any number.
    Further,
    /// The last operand of `a ? b : c`.
    Last,
    /// An operator, or the bracket that identifies an alternative.
    Operator,
    /// `?` before a field, an index, an item, a key.
    Optional,
    /// A name.
    Name,
    /// The parenthesis of a call.
    Open,
    /// Arguments, items, entries.
    Parts,
    /// The colon of an entry.
    Colon,
    /// The value of an entry.
    Value,
    /// The minus of a number.
    Sign,
    /// The dot before a name.
    Dot,
}

/// The name of an alternative of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A rule without alternatives, or one for which no alternative was found.
    Of(Rule),
    /// The operand alone.
    Pass,
    /// `!a`
    LogicalNot,
    /// `-a`
    Negate,
    /// `a.b`
    Select,
    /// `a.b(c)`
    MemberCall,
    /// `a[b]`
    Index,
    /// `a`
    Ident,
    /// `a(b)`
    GlobalCall,
    /// `[a]`
    CreateList,
    /// `{a: b}`
    CreateMap,
    /// `a{b: c}`
    CreateObject,
    /// `1`
    Int,
    /// `1u`
    Uint,
    /// `1.0`
    Double,
    /// `'a'`
    String,
    /// `b'a'`
    Bytes,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
    /// `a`
    SimpleName,
    /// `` `a` ``
    QuotedName,
}

/// A part of a rule.
#[derive(Debug)]
pub enum RulePart {
    /// A token.
    Token(TokenKind, Role),
    /// One of several tokens.
    OneOf(Kinds, Role),
    /// Another rule, with the precedence at which it begins.
    Rule(Rule, u8, Role),
    /// These parts, once or not at all.
    Optional(&'static [RulePart]),
    /// Any number of these; the decision says whether there is one more.
    Star(&'static [RulePart], Prediction),
    /// One or more of these.
    Plus(&'static [RulePart], Prediction),
    /// One of these.
    Choice(&'static [Alternative], Prediction),
    /// Any number of operators after the parts so far, which become their first operand.
    Operators(&'static [Operator]),
}

/// An alternative.
#[derive(Debug)]
pub struct Alternative {
    /// Its name.
    pub label: Label,
    /// Its parts.
    pub parts: &'static [RulePart],
}

/// An operator of a left-recursive rule.
#[derive(Debug)]
pub struct Operator {
    /// Its name.
    pub label: Label,
    /// It applies only while the rule's precedence is not above this.
    pub precedence: u8,
    /// Its parts after the first operand.
    pub parts: &'static [RulePart],
}

/// How the parser chooses between alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// By the next token.
    Next,
    /// By the next two tokens: a comma may also end the list.
    Comma,
    /// Whether a minus is a sign or an operator.
    Unary,
    /// Whether one more minus follows.
    Minus,
    /// By the tokens after a name.
    Primary,
    /// Whether a number has a fraction.
    Literal,
}
