//! The syntax tree of a pattern, with the two sizes that Go bounds.

use super::class::Class;

/// A part of a pattern.
#[derive(Debug)]
pub struct PatternNode {
    pub kind: PatternKind,
    /// Number of levels, this one included.
    pub height: u32,
    /// Instructions that Go would compile it to.
    pub instructions: u64,
}

/// The kind of a part of a pattern.
#[derive(Debug)]
pub enum PatternKind {
    /// The empty pattern, which matches everywhere.
    Empty,
    /// Code points one after another.
    Literal { signs: Vec<u32>, fold: bool },
    /// One code point of a class.
    Class(Class),
    /// Any code point.
    Any,
    /// Any code point but a line feed.
    AnyButLineFeed,
    /// A condition on the position.
    Assertion(Assertion),
    /// A numbered group.
    Capture(Box<PatternNode>),
    /// A repetition.
    Repeat(Repeat),
    /// Parts one after another.
    Sequence(Vec<PatternNode>),
    /// One part of several.
    Choice(Vec<PatternNode>),
}

/// A condition on the position in the text.
#[derive(Debug, Clone, Copy)]
pub enum Assertion {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// How often a part is repeated.
#[derive(Debug)]
pub struct Repeat {
    pub part: Box<PatternNode>,
    pub sign: Sign,
    pub lazy: bool,
}

/// The signs of repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Star,
    Plus,
    Quest,
    Count { least: u32, most: Option<u32> },
}

impl PatternNode {
    /// Returns a part without parts of its own.
    pub fn leaf(kind: PatternKind) -> Self {
        Self { kind, height: 1, instructions: 1 }
    }

    /// Returns a code point.
    pub fn literal(sign: u32, fold: bool) -> Self {
        Self::leaf(PatternKind::Literal { signs: vec![sign], fold })
    }

    /// Returns a numbered group around a part.
    pub fn capture(part: Self) -> Self {
        let (height, instructions) = (part.height + 1, part.instructions.saturating_add(2));
        Self { kind: PatternKind::Capture(Box::new(part)), height, instructions }
    }

    /// Returns a part repeated.
    pub fn repeat(part: Self, sign: Sign, lazy: bool) -> Self {
        let size = part.instructions;
        let instructions = match sign {
            Sign::Star | Sign::Count { least: 0, most: None } => size.saturating_add(2),
            Sign::Plus | Sign::Quest => size.saturating_add(1),
            Sign::Count { least, most: None } => size.saturating_mul(least.into()).saturating_add(1),
            Sign::Count { least, most: Some(most) } => {
                size.saturating_mul(most.into()).saturating_add((most - least).into())
            }
        };
        let height = part.height + 1;
        Self {
            kind: PatternKind::Repeat(Repeat { part: Box::new(part), sign, lazy }),
            height,
            instructions: instructions.max(1),
        }
    }

    /// Returns the sequence of parts. A sequence among them is replaced by its parts.
    pub fn sequence(parts: Vec<Self>) -> Self {
        Self::joined(parts, PatternKind::Sequence, |kind| match kind {
            PatternKind::Sequence(parts) => Ok(parts),
            other => Err(other),
        })
    }

    /// Returns the choice between parts. A choice among them is replaced by its parts.
    pub fn choice(parts: Vec<Self>) -> Self {
        let is_class = parts.len() > 1 && parts.iter().all(Self::is_one_sign);
        let mut choice = Self::joined(parts, PatternKind::Choice, |kind| match kind {
            PatternKind::Choice(parts) => Ok(parts),
            other => Err(other),
        });
        if let (PatternKind::Choice(parts), false) = (&choice.kind, is_class) {
            choice.instructions = choice.instructions.saturating_add(parts.len() as u64 - 1);
        }
        if is_class {
            // Go converts such a choice to a class.
            (choice.height, choice.instructions) = (1, 1);
        }
        choice
    }

    fn joined(
        mut parts: Vec<Self>,
        join: impl FnOnce(Vec<Self>) -> PatternKind,
        parts_of: impl Fn(PatternKind) -> Result<Vec<Self>, PatternKind>,
    ) -> Self {
        if parts.len() < 2 {
            return parts.pop().unwrap_or_else(|| Self::leaf(PatternKind::Empty));
        }
        let mut all = Vec::with_capacity(parts.len());
        for Self { kind, height, instructions } in parts {
            match parts_of(kind) {
                Ok(parts) => all.extend(parts),
                Err(kind) => all.push(Self { kind, height, instructions }),
            }
        }
        let height = all.iter().map(|part| part.height).max().unwrap_or(0) + 1;
        let instructions = all.iter().fold(0u64, |sum, part| sum.saturating_add(part.instructions));
        Self { kind: join(all), height, instructions }
    }

    fn is_one_sign(&self) -> bool {
        match &self.kind {
            PatternKind::Literal { signs, .. } => signs.len() == 1,
            PatternKind::Choice(_) => self.height == 1,
            kind => matches!(kind, PatternKind::Class(_) | PatternKind::Any | PatternKind::AnyButLineFeed),
        }
    }

    /// Returns the parts of this one.
    pub fn parts(&self) -> &[Self] {
        match &self.kind {
            PatternKind::Capture(part) | PatternKind::Repeat(Repeat { part, .. }) => std::slice::from_ref(part),
            PatternKind::Sequence(parts) | PatternKind::Choice(parts) => parts,
            _ => &[],
        }
    }

    /// Returns whether the counts of this part and the parts inside demand at most `copies` copies.
    pub fn repeats_within(&self, mut copies: u32) -> bool {
        if let PatternKind::Repeat(Repeat { sign: Sign::Count { least, most }, .. }) = self.kind {
            let count = most.unwrap_or(least);
            match most {
                Some(0) => return true,
                _ if count > copies => return false,
                _ => copies /= count.max(1),
            }
        }
        self.parts().iter().all(|part| part.repeats_within(copies))
    }
}
