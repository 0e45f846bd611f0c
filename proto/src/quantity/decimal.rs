//! Decimal numbers of any size, digit by digit: the cost of an operation depends on the number of digits.

use std::cmp::Ordering;

use crate::limits::QUANTITY_SUM_DIGITS_MAX;

/// `±digits * 10^scale`.
#[derive(Debug, Clone)]
pub struct Decimal {
    is_negative: bool,
    /// The digits, the most significant first, without leading zeros; empty for zero.
    digits: Vec<u8>,
    scale: i32,
}

impl Decimal {
    /// Returns a number from its digits in ASCII.
    pub fn new(is_negative: bool, digits: impl Iterator<Item = u8>, scale: i32) -> Self {
        let digits = digits.map(|digit| digit - b'0').skip_while(|digit| *digit == 0).collect();
        Self { is_negative, digits, scale }
    }

    /// Returns `value * 10^scale`.
    pub fn from_int(value: i128, scale: i32) -> Self {
        Self::new(value < 0, value.unsigned_abs().to_string().into_bytes().into_iter(), scale)
    }

    /// Returns -1, 0 or 1.
    pub const fn sign(&self) -> i32 {
        match (self.digits.is_empty(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Returns the number with the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { is_negative: !self.is_negative, ..self.clone() }
    }

    /// Returns the exponent of the first digit's place: the absolute value is below `10^magnitude`.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + i64::from(self.scale)
    }

    /// Returns the order of the absolute values of two numbers.
    fn compare_size(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => {}
            (a, b) => return b.cmp(&a),
        }
        let digit = |digits: &[u8], place: usize| digits.get(place).copied().unwrap_or(0);
        let places = self.digits.len().max(other.digits.len());
        let mut orders = (0..places).map(|place| digit(&self.digits, place).cmp(&digit(&other.digits, place)));
        self.magnitude()
            .cmp(&other.magnitude())
            .then_with(|| orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
    }

    /// Returns the order of two numbers.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.sign().cmp(&other.sign()).then_with(|| match self.sign() {
            0 => Ordering::Equal,
            1 => self.compare_size(other),
            _ => other.compare_size(self),
        })
    }

    /// Returns the digits with zeros appended down to `scale`, the least significant first. Returns `None` if there are
    /// too many.
    fn spread(&self, scale: i32) -> Option<Vec<u8>> {
        let zeros = self.scale.abs_diff(scale);
        if u64::from(zeros) + self.digits.len() as u64 > QUANTITY_SUM_DIGITS_MAX {
            return None;
        }
        let zeros = std::iter::repeat_n(0, zeros as usize);
        Some(zeros.chain(self.digits.iter().rev().copied()).collect())
    }

    /// Returns the sum. Returns `None` if it would have too many digits.
    pub fn add(&self, other: &Self) -> Option<Self> {
        let scale = self.scale.min(other.scale);
        let (large, small) = match self.compare_size(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        let (mut sum, less) = (large.spread(scale)?, small.spread(scale)?);
        let is_difference = large.is_negative != small.is_negative;
        let mut carry = 0;
        for (place, digit) in sum.iter_mut().enumerate() {
            let more = less.get(place).copied().unwrap_or(0) + carry;
            if is_difference {
                carry = u8::from(*digit < more);
                *digit = *digit + 10 * carry - more;
            } else {
                *digit += more;
                carry = *digit / 10;
                *digit %= 10;
            }
        }
        sum.extend((carry > 0).then_some(carry));
        let digits = sum.into_iter().rev().skip_while(|digit| *digit == 0).collect();
        Some(Self { is_negative: large.is_negative, digits, scale })
    }

    /// Multiplies by a power of two up to 2^60.
    pub fn shift_left(&mut self, power: u32) {
        let mut carry = 0_u128;
        for digit in self.digits.iter_mut().rev() {
            carry += u128::from(*digit) << power;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        let before = carry.to_string().into_bytes();
        if carry > 0 {
            self.digits.splice(..0, before.into_iter().map(|digit| digit - b'0'));
        }
    }

    /// Returns a 1024th. Returns `None` if there is a remainder.
    fn divided(&self) -> Option<Self> {
        let mut rest = 0_u32;
        let quotient = self.digits.iter().map(|digit| {
            rest = rest * 10 + u32::from(*digit);
            let whole = (rest / 1024) as u8;
            rest %= 1024;
            whole
        });
        let digits = quotient.skip_while(|digit| *digit == 0).collect();
        (rest == 0).then_some(Self { digits, ..*self })
    }

    /// Rounds away from zero to multiples of a power of ten. Returns whether nothing was dropped.
    pub fn round(&mut self, scale: i32) -> bool {
        if self.scale >= scale || self.digits.is_empty() {
            return true;
        }
        let kept = self.digits.len().saturating_sub(scale.abs_diff(self.scale) as usize);
        let is_exact = self.digits[kept..].iter().all(|digit| *digit == 0);
        self.digits.truncate(kept);
        self.scale = scale;
        if !is_exact {
            self.step();
        }
        is_exact
    }

    /// Adds one to the digits.
    fn step(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                return;
            }
        }
        self.digits.insert(0, 1);
    }

    /// Returns the digits as a 64-bit number. Upper bits that do not fit are dropped.
    fn low_bits(digits: &[u8], is_negative: bool) -> i64 {
        let low = digits.iter().fold(0_i64, |low, digit| low.wrapping_mul(10).wrapping_add(i64::from(*digit)));
        if is_negative { low.wrapping_neg() } else { low }
    }

    /// Returns the number in units of a power of ten, rounded up, as the reference computes it: bits beyond 64 are
    /// lost.
    pub fn scaled(&self, scale: i32) -> i64 {
        let Some(finer) = u32::try_from(i64::from(scale) - i64::from(self.scale)).ok().filter(|finer| *finer > 0)
        else {
            let power = 10_i64.checked_pow(self.scale.abs_diff(scale)).unwrap_or(i64::MIN);
            return Self::low_bits(&self.digits, self.is_negative).wrapping_mul(power);
        };
        let (whole, rest) = self.digits.split_at(self.digits.len().saturating_sub(finer as usize));
        let is_exact = rest.iter().all(|digit| *digit == 0);
        let whole = Self::low_bits(whole, self.is_negative);
        // For negative numbers Go's integer division already rounds towards zero, and yet one is added.
        if is_exact { whole } else { whole.wrapping_add(1) }
    }

    /// Returns the whole number. Returns `None` if it is not whole.
    fn whole(&self) -> Option<Self> {
        let mut whole = self.clone();
        if !whole.round(0) {
            return None;
        }
        let digits = whole.spread(0)?;
        Some(Self { digits: digits.into_iter().rev().collect(), scale: 0, ..whole })
    }

    fn text(&self, suffix: &str) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let digits = self.digits.iter().map(|digit| char::from(b'0' + digit));
        sign.chars().chain(digits).chain(suffix.chars()).collect()
    }

    /// Returns the text and the power of 1024 of a whole number. Returns `None` if it is not whole.
    pub fn text_in_1024(&self) -> Option<(String, usize)> {
        let (mut whole, mut power) = (self.whole()?, 0);
        while let Some(quotient) = whole.divided().filter(|quotient| !quotient.digits.is_empty()) {
            whole = quotient;
            power += 1;
        }
        Some((whole.text(""), power))
    }

    /// Returns the text with the largest power of 1000 that leaves a whole number, and the exponent of ten of that
    /// power.
    pub fn text_in_1000(&self) -> (String, i64) {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        let scale = i64::from(self.scale) + zeros as i64;
        let fill = scale.rem_euclid(3);
        let short = Self { digits: self.digits[..self.digits.len() - zeros].to_vec(), ..*self };
        (short.text(["", "0", "00"][fill as usize]), scale - fill)
    }

    /// Returns the nearest floating-point number, apart from intermediate rounding.
    pub fn as_float(&self) -> f64 {
        let base = self.text("").parse().unwrap_or(0.0);
        if self.scale == 0 { base } else { base * format!("1e{}", self.scale).parse::<f64>().unwrap_or(f64::NAN) }
    }
}
