//! Amounts of resources: decimal numbers with a suffix (Kubernetes API conventions, "Units"; `resource.Quantity`).

mod amount;
mod decimal;
mod parse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

pub use amount::Amount;

/// The exponent of thousandths, the finest amounts that resource lists keep.
const MILLI: i32 = -3;

/// The reason why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not have the form of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// There is no number before the suffix.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

/// The format of an amount, in which it is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `k`, `M`, `m`: powers of 1000.
    DecimalSi,
    /// `Ki`, `Mi`: powers of 1024.
    BinarySi,
    /// `e3`: an exponent.
    DecimalExponent,
}

/// An amount with its format.
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text from which it was read, if it is also written that way.
    text: Option<Box<str>>,
}

/// Returns the text that the reference writes for a quantity that it has read: most texts are kept, the others become
/// canonical.
pub fn written(text: &str) -> Result<Cow<'_, str>, Error> {
    let (amount, format, is_kept) = parse::parse(text)?;
    Ok(if is_kept { text.into() } else { amount.text(format).into() })
}

impl Quantity {
    /// Returns an amount without fraction.
    pub const fn from_int(amount: i64) -> Self {
        Self::of(Amount::Int { value: amount, scale: 0 }, Format::DecimalSi)
    }

    /// Returns an amount that was computed.
    pub const fn of(amount: Amount, format: Format) -> Self {
        Self { amount, format, text: None }
    }

    /// Parses a text such as `1500m`, `2Gi`, `1e3`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (amount, format, is_kept) = parse::parse(text)?;
        Ok(Self { amount, format, text: is_kept.then(|| text.into()) })
    }

    /// Returns the number.
    pub const fn amount(&self) -> &Amount {
        &self.amount
    }

    /// Returns the amount in whole units, rounded up. An amount that does not fit into 64 bits has the value that the
    /// reference gives it.
    pub fn value(&self) -> i64 {
        self.amount.scaled(0)
    }

    /// Returns the amount in thousandths, rounded up. An amount that does not fit into 64 bits has the value that the
    /// reference gives it.
    pub fn milli_value(&self) -> i64 {
        self.amount.scaled(MILLI)
    }

    /// Returns whether the amount is a multiple of one unit.
    pub fn is_whole(&self) -> bool {
        self.amount.clone().round(0)
    }

    /// Returns -1, 0 or 1.
    pub const fn sign(&self) -> i32 {
        self.amount.sign()
    }

    /// Returns its format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Rounds away from zero to whole thousandths. Returns whether the amount was finer.
    pub fn round_to_milli(&mut self) -> bool {
        let is_exact = self.amount.round(MILLI);
        if !is_exact {
            self.text = None;
        }
        !is_exact
    }

    /// Returns the sum, in this amount's format. If the amounts are too far apart for a sum, returns the larger one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.sign() == 0 { other.format } else { self.format };
        let amount = self.amount.add(&other.amount).unwrap_or_else(|| {
            let size = |amount: &Amount| if amount.sign() < 0 { amount.negated() } else { amount.clone() };
            let is_less = size(&self.amount).compare(&size(&other.amount)).is_lt();
            if is_less { other.amount.clone() } else { self.amount.clone() }
        });
        Self::of(amount, format)
    }

    /// Returns the difference, in this amount's format.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self::of(other.amount.negated(), other.format))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.compare(&other.amount)
    }
}

impl fmt::Display for Quantity {
    /// Writes the text that was read, if it is kept; otherwise the canonical form with the largest suffix that leaves
    /// no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.amount.text(self.format)),
        }
    }
}
