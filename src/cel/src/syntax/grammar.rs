//! The grammar of CEL, in the form of upstream's CEL.g4. The messages of syntax errors depend on that form: which part
//! of a rule is optional, repeated or one of several.

use super::rule::{Alternative, Label, Operator, Prediction, RULES, Role, Rule, RulePart};
use super::token::{Kinds, TokenKind};

use RulePart::{Choice, OneOf, Operators, Optional, Plus, Star, Token};
use TokenKind::{Colon, Comma, Dot, Identifier, LeftBrace, LeftBracket, LeftParen, Minus, Not, Question};
use TokenKind::{Quoted, RightBrace, RightBracket, RightParen};

const RELATIONS: Kinds = Kinds::of(&[
    TokenKind::Less,
    TokenKind::LessEquals,
    TokenKind::GreaterEquals,
    TokenKind::Greater,
    TokenKind::Equals,
    TokenKind::NotEquals,
    TokenKind::In,
]);
const PRODUCTS: Kinds = Kinds::of(&[TokenKind::Star, TokenKind::Slash, TokenKind::Percent]);
const SUMS: Kinds = Kinds::of(&[TokenKind::Plus, Minus]);

const fn rule(rule: Rule, role: Role) -> RulePart {
    RulePart::Rule(rule, 0, role)
}

const fn only(label: Label, parts: &'static [RulePart]) -> Alternative {
    Alternative { label, parts }
}

const OPTIONAL: RulePart = Optional(&[Token(Question, Role::Optional)]);
const LEADING_DOT: RulePart = Optional(&[Token(Dot, Role::Dot)]);
const TRAILING_COMMA: RulePart = Optional(&[Token(Comma, Role::Nothing)]);
const ARGUMENTS: RulePart = Optional(&[rule(Rule::ExprList, Role::Parts)]);
const MINUS_SIGN: RulePart = Optional(&[Token(Minus, Role::Sign)]);

/// The parts of a rule.
pub static GRAMMAR: [&[RulePart]; RULES] = [
    &[rule(Rule::Expr, Role::First), Token(TokenKind::End, Role::Nothing)],
    &[
        rule(Rule::Or, Role::First),
        Optional(&[
            Token(Question, Role::Operator),
            rule(Rule::Or, Role::Further),
            Token(Colon, Role::Nothing),
            rule(Rule::Expr, Role::Last),
        ]),
    ],
    &[
        rule(Rule::And, Role::First),
        Star(&[Token(TokenKind::Or, Role::Operator), rule(Rule::And, Role::Further)], Prediction::Next),
    ],
    &[
        rule(Rule::Relation, Role::First),
        Star(&[Token(TokenKind::And, Role::Operator), rule(Rule::Relation, Role::Further)], Prediction::Next),
    ],
    &[
        rule(Rule::Calc, Role::First),
        Operators(&[Operator {
            label: Label::Of(Rule::Relation),
            precedence: 1,
            parts: &[OneOf(RELATIONS, Role::Operator), RulePart::Rule(Rule::Relation, 2, Role::Further)],
        }]),
    ],
    &[
        rule(Rule::Unary, Role::First),
        Operators(&[
            Operator {
                label: Label::Of(Rule::Calc),
                precedence: 2,
                parts: &[OneOf(PRODUCTS, Role::Operator), RulePart::Rule(Rule::Calc, 3, Role::Further)],
            },
            Operator {
                label: Label::Of(Rule::Calc),
                precedence: 1,
                parts: &[OneOf(SUMS, Role::Operator), RulePart::Rule(Rule::Calc, 2, Role::Further)],
            },
        ]),
    ],
    &[Choice(
        &[
            only(Label::Pass, &[rule(Rule::Member, Role::First)]),
            only(
                Label::LogicalNot,
                &[Plus(&[Token(Not, Role::Operator)], Prediction::Next), rule(Rule::Member, Role::First)],
            ),
            only(
                Label::Negate,
                &[Plus(&[Token(Minus, Role::Operator)], Prediction::Minus), rule(Rule::Member, Role::First)],
            ),
        ],
        Prediction::Unary,
    )],
    &[
        rule(Rule::Primary, Role::First),
        Operators(&[
            Operator {
                label: Label::Select,
                precedence: 3,
                parts: &[Token(Dot, Role::Operator), OPTIONAL, rule(Rule::EscapeIdent, Role::Name)],
            },
            Operator {
                label: Label::MemberCall,
                precedence: 2,
                parts: &[
                    Token(Dot, Role::Operator),
                    Token(Identifier, Role::Name),
                    Token(LeftParen, Role::Open),
                    ARGUMENTS,
                    Token(RightParen, Role::Nothing),
                ],
            },
            Operator {
                label: Label::Index,
                precedence: 1,
                parts: &[
                    Token(LeftBracket, Role::Operator),
                    OPTIONAL,
                    rule(Rule::Expr, Role::Further),
                    Token(RightBracket, Role::Nothing),
                ],
            },
        ]),
    ],
    &[Choice(
        &[
            only(Label::Ident, &[LEADING_DOT, Token(Identifier, Role::Name)]),
            only(
                Label::GlobalCall,
                &[
                    LEADING_DOT,
                    Token(Identifier, Role::Name),
                    Token(LeftParen, Role::Open),
                    ARGUMENTS,
                    Token(RightParen, Role::Nothing),
                ],
            ),
            only(
                Label::Pass,
                &[Token(LeftParen, Role::Nothing), rule(Rule::Expr, Role::First), Token(RightParen, Role::Nothing)],
            ),
            only(
                Label::CreateList,
                &[
                    Token(LeftBracket, Role::Operator),
                    Optional(&[rule(Rule::ListInit, Role::Parts)]),
                    TRAILING_COMMA,
                    Token(RightBracket, Role::Nothing),
                ],
            ),
            only(
                Label::CreateMap,
                &[
                    Token(LeftBrace, Role::Operator),
                    Optional(&[rule(Rule::MapList, Role::Parts)]),
                    TRAILING_COMMA,
                    Token(RightBrace, Role::Nothing),
                ],
            ),
            only(
                Label::CreateObject,
                &[
                    LEADING_DOT,
                    Token(Identifier, Role::Name),
                    Star(&[Token(Dot, Role::Nothing), Token(Identifier, Role::Name)], Prediction::Next),
                    Token(LeftBrace, Role::Operator),
                    Optional(&[rule(Rule::FieldList, Role::Parts)]),
                    TRAILING_COMMA,
                    Token(RightBrace, Role::Nothing),
                ],
            ),
            only(Label::Pass, &[rule(Rule::Literal, Role::First)]),
        ],
        Prediction::Primary,
    )],
    &[
        rule(Rule::Expr, Role::First),
        Star(&[Token(Comma, Role::Nothing), rule(Rule::Expr, Role::First)], Prediction::Next),
    ],
    &[
        rule(Rule::OptExpr, Role::First),
        Star(&[Token(Comma, Role::Nothing), rule(Rule::OptExpr, Role::First)], Prediction::Comma),
    ],
    &[
        rule(Rule::OptField, Role::Name),
        Token(Colon, Role::Colon),
        rule(Rule::Expr, Role::Value),
        Star(
            &[
                Token(Comma, Role::Nothing),
                rule(Rule::OptField, Role::Name),
                Token(Colon, Role::Colon),
                rule(Rule::Expr, Role::Value),
            ],
            Prediction::Comma,
        ),
    ],
    &[OPTIONAL, rule(Rule::EscapeIdent, Role::Name)],
    &[
        rule(Rule::OptExpr, Role::Name),
        Token(Colon, Role::Colon),
        rule(Rule::Expr, Role::Value),
        Star(
            &[
                Token(Comma, Role::Nothing),
                rule(Rule::OptExpr, Role::Name),
                Token(Colon, Role::Colon),
                rule(Rule::Expr, Role::Value),
            ],
            Prediction::Comma,
        ),
    ],
    &[Choice(
        &[
            only(Label::SimpleName, &[Token(Identifier, Role::Name)]),
            only(Label::QuotedName, &[Token(Quoted, Role::Name)]),
        ],
        Prediction::Next,
    )],
    &[OPTIONAL, rule(Rule::Expr, Role::First)],
    &[Choice(
        &[
            only(Label::Int, &[MINUS_SIGN, Token(TokenKind::Int, Role::Name)]),
            only(Label::Uint, &[Token(TokenKind::Uint, Role::Name)]),
            only(Label::Double, &[MINUS_SIGN, Token(TokenKind::Float, Role::Name)]),
            only(Label::String, &[Token(TokenKind::String, Role::Name)]),
            only(Label::Bytes, &[Token(TokenKind::Bytes, Role::Name)]),
            only(Label::True, &[Token(TokenKind::True, Role::Name)]),
            only(Label::False, &[Token(TokenKind::False, Role::Name)]),
            only(Label::Null, &[Token(TokenKind::Null, Role::Name)]),
        ],
        Prediction::Literal,
    )],
];

/// The tokens with which a literal begins.
pub const LITERAL_FIRST: Kinds = Kinds::of(&[
    Minus,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::Float,
    TokenKind::String,
    TokenKind::Bytes,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
]);
/// The tokens with which a primary, and so a member, begins.
pub const PRIMARY_FIRST: Kinds = LITERAL_FIRST.and(Kinds::of(&[LeftBracket, LeftBrace, LeftParen, Dot, Identifier]));
/// The tokens with which an expression begins.
pub const EXPR_FIRST: Kinds = PRIMARY_FIRST.and(Kinds::of(&[Not]));

impl Rule {
    /// Returns the tokens with which it can begin. Every rule matches at least one token.
    pub const fn first(self) -> Kinds {
        match self {
            Self::Literal => LITERAL_FIRST,
            Self::Primary | Self::Member => PRIMARY_FIRST,
            Self::EscapeIdent => Kinds::of(&[Identifier, Quoted]),
            Self::OptField | Self::FieldList => Kinds::of(&[Identifier, Quoted, Question]),
            Self::OptExpr | Self::ListInit | Self::MapList => EXPR_FIRST.and(Kinds::of(&[Question])),
            _ => EXPR_FIRST,
        }
    }
}

/// Returns the tokens with which parts can begin, and whether they may be empty.
pub fn first(parts: &[RulePart]) -> (Kinds, bool) {
    let mut kinds = Kinds::NONE;
    for part in parts {
        let (more, nullable) = match part {
            Token(kind, _) => (Kinds::of(&[*kind]), false),
            OneOf(set, _) => (*set, false),
            RulePart::Rule(rule, ..) => (rule.first(), false),
            Optional(parts) | Star(parts, _) => (first(parts).0, true),
            Plus(parts, _) => (first(parts).0, false),
            Choice(alternatives, _) => {
                (alternatives.iter().fold(Kinds::NONE, |all, each| all.and(first(each.parts).0)), false)
            }
            Operators(operators) => {
                (operators.iter().fold(Kinds::NONE, |all, each| all.and(first(each.parts).0)), true)
            }
        };
        kinds = kinds.and(more);
        if !nullable {
            return (kinds, false);
        }
    }
    (kinds, true)
}
