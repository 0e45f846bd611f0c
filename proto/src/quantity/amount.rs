//! Numbers: 64 bits and a power of ten while they fit, otherwise of any size.
//!
//! The two forms matter because the reference treats them differently: a number beyond 64 bits has the value 0 in the
//! first form, and the value of its low bits in the other.

use std::cmp::Ordering;

use super::Format;
use super::decimal::Decimal;

/// A number.
#[derive(Debug, Clone)]
pub enum Amount {
    /// `value * 10^scale`.
    Int {
        /// The digits.
        value: i64,
        /// The power of ten.
        scale: i32,
    },
    /// A number that was not certain to fit.
    Big(Box<Decimal>),
}

/// Larger powers of ten do not fit into 64 bits.
const POWERS: u32 = 18;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Returns `value * 10^exponent`. Returns `None` if it does not fit.
fn raised(value: i64, exponent: u32) -> Option<i64> {
    match value {
        0 => Some(0),
        _ if exponent > POWERS => None,
        _ => value.checked_mul(10_i64.pow(exponent)),
    }
}

/// Returns `value / 10^exponent`, rounded away from zero, and whether there was no remainder.
fn lowered(value: i64, exponent: u32) -> (i64, bool) {
    let Some(divisor) = 10_i64.checked_pow(exponent) else { return (value.signum(), value == 0) };
    let rest = value % divisor;
    (value / divisor + rest.signum(), rest == 0)
}

fn add_ints((a, a_scale): (i64, i32), (b, b_scale): (i64, i32)) -> Option<(i64, i32)> {
    match (a, b) {
        (_, 0) => return Some((a, a_scale)),
        (0, _) => return Some((b, b_scale)),
        _ => {}
    }
    let least = a_scale.min(b_scale);
    let sum = raised(a, a_scale.abs_diff(least))?.checked_add(raised(b, b_scale.abs_diff(least))?)?;
    Some((sum, least))
}

impl Amount {
    fn decimal(&self) -> Decimal {
        match self {
            Self::Int { value, scale } => Decimal::from_int((*value).into(), *scale),
            Self::Big(decimal) => Decimal::clone(decimal),
        }
    }

    /// Returns -1, 0 or 1.
    pub const fn sign(&self) -> i32 {
        match self {
            Self::Int { value, .. } => value.signum() as i32,
            Self::Big(decimal) => decimal.sign(),
        }
    }

    /// Returns the number, if it is whole, fits into 64 bits, and is kept in that form.
    pub fn as_integer(&self) -> Option<i64> {
        let Self::Int { value, scale } = self else { return None };
        raised(*value, u32::try_from(*scale).ok()?)
    }

    /// Returns the nearest floating-point number, apart from intermediate rounding.
    pub fn as_float(&self) -> f64 {
        match self {
            Self::Int { value, scale: 0 } => *value as f64,
            other => other.decimal().as_float(),
        }
    }

    /// Returns the number in units of a power of ten, rounded up. A number that does not fit has the value that the
    /// reference gives it.
    pub fn scaled(&self, scale: i32) -> i64 {
        match self {
            Self::Int { value, scale: own } if *own < scale => lowered(*value, own.abs_diff(scale)).0,
            Self::Int { value, scale: own } => raised(*value, own.abs_diff(scale)).unwrap_or(0),
            Self::Big(decimal) => decimal.scaled(scale),
        }
    }

    /// Rounds away from zero to multiples of a power of ten. Returns whether it was a multiple already.
    pub fn round(&mut self, to: i32) -> bool {
        match self {
            Self::Int { scale, .. } if *scale >= to => true,
            Self::Int { value, scale } => {
                let (rounded, is_exact) = lowered(*value, scale.abs_diff(to));
                (*value, *scale) = (rounded, to);
                is_exact
            }
            Self::Big(decimal) => decimal.round(to),
        }
    }

    /// Returns the order of two numbers.
    pub fn compare(&self, other: &Self) -> Ordering {
        if let (Self::Int { value: a, scale: a_scale }, Self::Int { value: b, scale: b_scale }) = (self, other) {
            let least = *a_scale.min(b_scale);
            let spread = |value: i64, scale: i32| {
                let zeros = scale.abs_diff(least);
                (zeros <= POWERS).then(|| i128::from(value) * 10_i128.pow(zeros))
            };
            if let (Some(a), Some(b)) = (spread(*a, *a_scale), spread(*b, *b_scale)) {
                return a.cmp(&b);
            }
        }
        self.decimal().compare(&other.decimal())
    }

    /// Returns the sum. Returns `None` if it would have too many digits.
    pub fn add(&self, other: &Self) -> Option<Self> {
        if let (Self::Int { value: a, scale: a_scale }, Self::Int { value: b, scale: b_scale }) = (self, other)
            && let Some((value, scale)) = add_ints((*a, *a_scale), (*b, *b_scale))
        {
            return Some(Self::Int { value, scale });
        }
        Some(Self::Big(self.decimal().add(&other.decimal())?.into()))
    }

    /// Returns the number with the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        match self {
            Self::Int { value, scale } => Self::Int { value: value.wrapping_neg(), scale: *scale },
            Self::Big(decimal) => Self::Big(decimal.negated().into()),
        }
    }

    /// Returns the difference. Returns `None` if it would have too many digits.
    pub fn sub(&self, other: &Self) -> Option<Self> {
        self.add(&other.negated())
    }

    /// Returns the text with the largest suffix that leaves a whole number.
    ///
    /// Some amounts are beyond all suffixes. The reference writes these without a suffix, and so does this function.
    pub fn text(&self, format: Format) -> String {
        if self.sign() == 0 {
            return "0".to_owned();
        }
        let bound = |value| Self::Int { value, scale: 0 };
        if format == Format::BinarySi
            && (self.compare(&bound(1024)).is_ge() || self.compare(&bound(-1024)).is_le())
            && let Some((text, power)) = self.decimal().text_in_1024()
        {
            return text + BINARY.get(power).unwrap_or(&"");
        }
        let (text, scale) = self.decimal().text_in_1000();
        if format == Format::DecimalExponent && scale != 0 {
            return format!("{text}e{scale}");
        }
        let suffix = usize::try_from(scale / 3 + 3).ok().filter(|_| format != Format::DecimalExponent);
        text + suffix.and_then(|place| DECIMAL.get(place)).unwrap_or(&"")
    }
}
