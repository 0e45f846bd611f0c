//! Numbers that a tree can hold, and what stands where a text has others.

use super::Str;

/// A number that JSON can write: neither infinite nor NaN, whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Float(f64);

impl Float {
    /// The number; `None` for infinities and NaN, which no text can be read as again.
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// What a text has and a tree does not keep. Where a tree is written, what cannot be read again is `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hole {
    /// Something that lies too deep.
    Deep,
    /// A number beyond those that 64 bits hold, as it stands in the text.
    Number(Str),
    /// A number that the text states otherwise than it would be written, as it stands in the text: quantities keep
    /// that. Whoever reads the number by its value calls [`Value::settle`](super::Value::settle).
    Literal(Str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_written_is_a_number() {
        for number in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN] {
            assert_eq!(Float::new(number), None);
        }
        for number in [0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324] {
            assert_eq!(Float::new(number).map(Float::get), Some(number));
        }
    }
}
