//! Ranges of sizes and costs. Sums and products saturate instead of wrapping.

/// The range of the sizes that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

/// The range of the possible costs of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CostRange {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

/// The possible cost of a call, and the size of its result if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost without that of the arguments.
    pub cost: CostRange,
    /// The size of the result.
    pub size: Option<SizeRange>,
}

impl CallEstimate {
    /// Returns an estimate with a cost, and an unknown size of the result.
    pub const fn of(cost: CostRange) -> Self {
        Self { cost, size: None }
    }

    /// Returns an estimate with a cost and the size of the result.
    pub const fn sized(cost: CostRange, size: SizeRange) -> Self {
        Self { cost, size: Some(size) }
    }
}

macro_rules! range {
    ($range:ty) => {
        impl $range {
            /// Returns the range from `min` to `max`.
            pub const fn new(min: u64, max: u64) -> Self {
                Self { min, max }
            }

            /// Returns the range of exactly `of`.
            pub const fn fixed(of: u64) -> Self {
                Self { min: of, max: of }
            }

            /// Returns the sum of both ends.
            pub const fn add(self, other: Self) -> Self {
                Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
            }

            /// Returns the product of both ends.
            pub const fn multiply(self, other: Self) -> Self {
                Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
            }

            /// Returns the range that holds both.
            pub fn union(self, other: Self) -> Self {
                Self { min: self.min.min(other.min), max: self.max.max(other.max) }
            }

            /// Returns both ends times a factor, rounded up, as a cost.
            pub fn scaled(self, factor: f64) -> CostRange {
                CostRange { min: scale(self.min, factor), max: scale(self.max, factor) }
            }
        }
    };
}

range!(SizeRange);
range!(CostRange);

impl SizeRange {
    /// Any size.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// Returns `cost` times this size.
    pub const fn times(self, cost: CostRange) -> CostRange {
        CostRange { min: self.min.saturating_mul(cost.min), max: self.max.saturating_mul(cost.max) }
    }
}

/// Returns the product, rounded up; saturates.
fn scale(number: u64, factor: f64) -> u64 {
    const OUT_OF_RANGE: f64 = 18_446_744_073_709_551_616.0;
    let product = (number as f64 * factor).ceil();
    if product >= OUT_OF_RANGE { u64::MAX } else { product as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_saturate() {
        assert_eq!(SizeRange::UNKNOWN.scaled(0.1).max, 1_844_674_407_370_955_264);
        assert_eq!(SizeRange::UNKNOWN.scaled(1.0).max, u64::MAX);
        assert_eq!(SizeRange::new(2, u64::MAX).multiply(SizeRange::fixed(3)), SizeRange::new(6, u64::MAX));
        assert_eq!(CostRange::new(1, 11).scaled(0.1), CostRange::new(1, 2));
    }
}
