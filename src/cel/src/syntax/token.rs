//! Tokens.

/// The kinds of tokens, in the order in which messages list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// `==`
    Equals,
    /// `!=`
    NotEquals,
    /// `in`
    In,
    /// `<`
    Less,
    /// `<=`
    LessEquals,
    /// `>=`
    GreaterEquals,
    /// `>`
    Greater,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `.`
    Dot,
    /// `,`
    Comma,
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `?`
    Question,
    /// `:`
    Colon,
    /// `+`
    Plus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
    /// White space and comments, which the parser skips.
    Hidden,
    /// A number with a fraction or an exponent.
    Float,
    /// A whole number.
    Int,
    /// A whole number with `u`.
    Uint,
    /// A string.
    String,
    /// A string of bytes.
    Bytes,
    /// A name.
    Identifier,
    /// A name in backquotes.
    Quoted,
}

/// All kinds, by their numbers.
const KINDS: [(TokenKind, &str); 37] = [
    (TokenKind::End, "<EOF>"),
    (TokenKind::Equals, "'=='"),
    (TokenKind::NotEquals, "'!='"),
    (TokenKind::In, "'in'"),
    (TokenKind::Less, "'<'"),
    (TokenKind::LessEquals, "'<='"),
    (TokenKind::GreaterEquals, "'>='"),
    (TokenKind::Greater, "'>'"),
    (TokenKind::And, "'&&'"),
    (TokenKind::Or, "'||'"),
    (TokenKind::LeftBracket, "'['"),
    (TokenKind::RightBracket, "']'"),
    (TokenKind::LeftBrace, "'{'"),
    (TokenKind::RightBrace, "'}'"),
    (TokenKind::LeftParen, "'('"),
    (TokenKind::RightParen, "')'"),
    (TokenKind::Dot, "'.'"),
    (TokenKind::Comma, "','"),
    (TokenKind::Minus, "'-'"),
    (TokenKind::Not, "'!'"),
    (TokenKind::Question, "'?'"),
    (TokenKind::Colon, "':'"),
    (TokenKind::Plus, "'+'"),
    (TokenKind::Star, "'*'"),
    (TokenKind::Slash, "'/'"),
    (TokenKind::Percent, "'%'"),
    (TokenKind::True, "'true'"),
    (TokenKind::False, "'false'"),
    (TokenKind::Null, "'null'"),
    (TokenKind::Hidden, "WHITESPACE"),
    (TokenKind::Float, "NUM_FLOAT"),
    (TokenKind::Int, "NUM_INT"),
    (TokenKind::Uint, "NUM_UINT"),
    (TokenKind::String, "STRING"),
    (TokenKind::Bytes, "BYTES"),
    (TokenKind::Identifier, "IDENTIFIER"),
    (TokenKind::Quoted, "ESC_IDENTIFIER"),
];

/// A token.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// Its text.
    pub text: &'a str,
    /// Its offset in characters; -1 for the end of an empty text.
    pub offset: i32,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u64);

impl Kinds {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns the set of these kinds.
    pub const fn of(kinds: &[TokenKind]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// Returns the union of both sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the kind is one of them.
    pub const fn has(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Returns the first kind in the set. `None` if the set is empty.
    pub fn first(self) -> Option<TokenKind> {
        KINDS.iter().map(|(kind, _)| *kind).find(|kind| self.has(*kind))
    }
}

/// Formats the set for messages: `{'[', ','}`, or a single kind alone.
impl std::fmt::Display for Kinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = KINDS.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name).collect();
        match names[..] {
            [name] => f.write_str(name),
            _ => write!(f, "{{{}}}", names.join(", ")),
        }
    }
}
