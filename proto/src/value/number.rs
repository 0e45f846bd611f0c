//! Numbers that a tree can keep, and the placeholders for those that it cannot.

use super::Str;

/// A number that JSON can express: never infinite or NaN.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Float(f64);

impl Float {
    /// Returns the number. Returns `None` for infinities and NaN, which no JSON text can express.
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A part of a text that a tree does not keep. It is written as `null` if it could not be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hole {
    /// A value that is nested too deep.
    Deep,
    /// A number that does not fit into 64 bits, as it is written in the text.
    Number(Str),
    /// A number, as it is written in the text. Its value would be written in another form. Quantities keep the form of
    /// the text. A reader that needs the value calls [`Value::resolve_literals`](super::Value::resolve_literals).
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
