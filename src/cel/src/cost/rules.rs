//! The rules of cost that functions share.

use super::{CallEstimate, Cost, CostRange, SizeRange, TEXT, scaled, size_of};
use crate::value::Value;

/// 1, and nothing known of the result.
pub const DEFAULT: Cost = Cost { estimate: |_| None, actual: |_, _| 1, by_name: false };

/// 1, where the name decides.
pub const NOMINAL: Cost =
    Cost { estimate: |_| Some(CallEstimate::of(CostRange::fixed(1))), actual: |_, _| 1, by_name: true };

/// One pass over the first argument, a text.
pub const READ: Cost =
    Cost { estimate: |nodes| Some(CallEstimate::of(nodes.first_size().scaled(TEXT))), actual: read, by_name: true };

/// One pass over the first argument, which gives a text of the same size.
pub const COPIED: Cost = Cost {
    estimate: |nodes| {
        let size = nodes.first_size();
        Some(CallEstimate::sized(size.scaled(TEXT), size))
    },
    actual: read,
    by_name: true,
};

/// One pass over the second argument: `startsWith`, `endsWith`.
pub const AFFIX: Cost = Cost {
    estimate: |nodes| {
        let size = nodes.arguments.first().map_or(SizeRange::UNKNOWN, |node| node.size.unwrap_or(SizeRange::UNKNOWN));
        Some(CallEstimate::of(size.scaled(TEXT)))
    },
    // Upstream counts the receiver when it runs, and the argument in its estimate.
    actual: read,
    by_name: false,
};

fn read(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    arguments.first().map_or(1, |text| scaled(size_of(text), TEXT))
}
