//! Exact decimal numbers: of 64 bits and a power of ten while they fit, of any size else.
//!
//! The reference tells the two apart (`isInteger` is false of every number that was kept the other way), so they are
//! told apart here.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::Format;

/// A number.
#[derive(Clone, Debug)]
pub enum Amount {
    /// `value * 10^scale`.
    Int { value: i64, scale: i32 },
    /// `value * 10^scale`.
    Big { value: BigInt, scale: i32 },
}

/// Most decimal digits of a sum.
const QUANTITY_DIGITS: u64 = 10_000;
/// The larger powers of ten are no 64 bits.
const POWERS: u32 = 18;

fn power(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// How many decimal digits a number has, at most one too many.
fn digits(value: &BigInt) -> u64 {
    value.bits() * 302 / 1000 + 1
}

impl Amount {
    /// A number of 64 bits and a power of ten.
    pub const fn int(value: i64, scale: i32) -> Self {
        Self::Int { value, scale }
    }

    fn big(&self) -> (BigInt, i32) {
        match self {
            Self::Int { value, scale } => ((*value).into(), *scale),
            Self::Big { value, scale } => (value.clone(), *scale),
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> Ordering {
        match self {
            Self::Int { value, .. } => value.cmp(&0),
            Self::Big { value, .. } => value.cmp(&BigInt::ZERO),
        }
    }

    /// The number, if it is whole, fits into 64 bits, and was kept so.
    pub fn as_integer(&self) -> Option<i64> {
        let Self::Int { value, scale } = self else { return None };
        raised(*value, u32::try_from(*scale).ok()?)
    }

    /// The nearest floating-point number but for roundings on the way.
    pub fn as_float(&self) -> f64 {
        let (base, scale) = match self {
            Self::Int { value, scale } => (*value as f64, *scale),
            Self::Big { value, scale } => (value.to_string().parse().unwrap_or(f64::NAN), *scale),
        };
        if scale == 0 { base } else { base * format!("1e{scale}").parse::<f64>().unwrap_or(f64::NAN) }
    }

    /// The order of two numbers.
    pub fn compare(&self, other: &Self) -> Ordering {
        let ((a, a_scale), (b, b_scale)) = (self.big(), other.big());
        let signs = a.sign().cmp(&b.sign());
        if signs.is_ne() || a == BigInt::ZERO {
            return signs;
        }
        // Numbers that differ by more than two digits need not be written out.
        let size = |value: &BigInt, scale: i32| digits(value) as i64 + i64::from(scale);
        let (a_size, b_size) = (size(&a, a_scale), size(&b, b_scale));
        if a_size.abs_diff(b_size) > 2 {
            let order = a_size.cmp(&b_size);
            return if a.sign() == num_bigint::Sign::Minus { order.reverse() } else { order };
        }
        let least = a_scale.min(b_scale);
        let spread = |value: BigInt, scale: i32| value * power(scale.abs_diff(least));
        spread(a, a_scale).cmp(&spread(b, b_scale))
    }

    /// The sum. None if it had too many digits.
    pub fn add(&self, other: &Self) -> Option<Self> {
        if let (Self::Int { value: a, scale: a_scale }, Self::Int { value: b, scale: b_scale }) = (self, other)
            && let Some((value, scale)) = add_ints((*a, *a_scale), (*b, *b_scale))
        {
            return Some(Self::Int { value, scale });
        }
        let ((a, a_scale), (b, b_scale)) = (self.big(), other.big());
        let least = a_scale.min(b_scale);
        let spread = |value: BigInt, scale: i32| {
            let zeros = scale.abs_diff(least);
            (u64::from(zeros) + digits(&value) <= QUANTITY_DIGITS).then(|| value * power(zeros))
        };
        Some(Self::Big { value: spread(a, a_scale)? + spread(b, b_scale)?, scale: least })
    }

    /// The difference. None if it had too many digits.
    pub fn sub(&self, other: &Self) -> Option<Self> {
        self.add(&match other {
            Self::Int { value, scale } => Self::Int { value: value.wrapping_neg(), scale: *scale },
            Self::Big { value, scale } => Self::Big { value: -value, scale: *scale },
        })
    }

    /// The whole number next to it that is not nearer to zero, and whether it is the number itself.
    fn whole(&self) -> (BigInt, bool) {
        let (value, scale) = self.big();
        if scale >= 0 {
            return (value * power(scale.unsigned_abs()), true);
        }
        let unit = power(scale.unsigned_abs());
        let (whole, rest) = (&value / &unit, &value % &unit);
        if rest == BigInt::ZERO {
            return (whole, true);
        }
        let step = if value < BigInt::ZERO { -1 } else { 1 };
        (whole + step, false)
    }

    /// Writes it with the largest suffix that leaves a whole number.
    pub fn text(&self, format: Format) -> String {
        if self.sign().is_eq() {
            return "0".to_owned();
        }
        let mut decimal = format;
        if format == Format::BinarySi {
            decimal = Format::DecimalSi;
            let limit = Self::int(1024, 0);
            let is_small = self.compare(&limit).is_lt() && self.compare(&Self::int(-1024, 0)).is_gt();
            let whole = if is_small { None } else { Some(self.whole()).filter(|(_, is_exact)| *is_exact) };
            if let Some((mut whole, _)) = whole {
                let mut suffix = 0;
                while suffix + 1 < BINARY.len() && &whole % 1024 == BigInt::ZERO {
                    whole /= 1024;
                    suffix += 1;
                }
                return format!("{whole}{}", BINARY[suffix]);
            }
        }
        let (mut value, mut scale) = self.big();
        while &value % 10 == BigInt::ZERO {
            value /= 10;
            scale += 1;
        }
        while scale % 3 != 0 {
            value *= 10;
            scale -= 1;
        }
        let suffix = usize::try_from(scale / 3 + 3).ok().and_then(|place| DECIMAL.get(place));
        match (decimal, suffix) {
            (_, _) if scale == 0 => value.to_string(),
            (Format::DecimalExponent, _) => format!("{value}e{scale}"),
            (_, suffix) => format!("{value}{}", suffix.unwrap_or(&"")),
        }
    }
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// `value * 10^exponent`, if it fits.
fn raised(value: i64, exponent: u32) -> Option<i64> {
    match value {
        0 => Some(0),
        _ if exponent > POWERS => None,
        _ => value.checked_mul(10_i64.pow(exponent)),
    }
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
