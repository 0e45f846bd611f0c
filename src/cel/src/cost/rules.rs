//! The rules of cost that functions share.

use super::{CallEstimate, Cost, CostRange, SizeRange, TEXT, scaled, size_of};
use crate::value::Value;

/// Cost 1, and an unknown size of the result.
pub const DEFAULT: Cost = Cost { estimate: |_| None, actual: |_, _| 1, by_name: false };

/// Cost 1, determined by the function's name.
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
    // Upstream counts the receiver in the actual cost, and the argument in the estimate.
    actual: read,
    by_name: false,
};

fn read(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    arguments.first().map_or(1, |text| scaled(size_of(text), TEXT))
}

/// One pass over the smaller operand: `==`, `<` of strings.
pub const COMPARED: Cost = Cost { estimate: compared, actual: compared_actually, by_name: false };

/// As [`COMPARED`], except for types of extensions with a cheap comparison.
pub const EQUALITY: Cost = Cost { estimate: equality, actual: equality_actually, by_name: false };

/// `!=`, for which upstream has no exception.
pub const INEQUALITY: Cost = COMPARED;

fn own(nodes: &super::Nodes<'_>, at: usize) -> SizeRange {
    // Upstream's formulas do not consult a schema again here.
    nodes.arguments.get(at).and_then(|node| node.size).unwrap_or(SizeRange::UNKNOWN)
}

fn compared(nodes: &super::Nodes<'_>) -> Option<CallEstimate> {
    let max = own(nodes, 0).max.min(own(nodes, 1).max);
    Some(CallEstimate::of(CostRange::new(u64::from(max > 0), max).scaled(TEXT)))
}

fn compared_actually(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    match arguments {
        [a, b] => scaled(size_of(a).min(size_of(b)), TEXT),
        _ => 1,
    }
}

/// Names of extensions' types, and the largest size of their values that an estimate assumes for a comparison: 1 for a
/// comparison of cost 1, `u64::MAX` for the size of the second operand.
const CHEAP: [(&str, u64); 11] = [
    ("net.IP", 1),
    ("net.CIDR", 1),
    ("kubernetes.Quantity", 1),
    ("kubernetes.Semver", 1),
    ("kubernetes.authorization.Authorizer", 1),
    ("kubernetes.authorization.PathCheck", 1),
    ("kubernetes.authorization.GroupCheck", 1),
    ("kubernetes.authorization.ResourceCheck", 1),
    ("kubernetes.authorization.Decision", 1),
    ("kubernetes.NamedFormat", 64),
    ("kubernetes.URL", u64::MAX),
];

fn equality(nodes: &super::Nodes<'_>) -> Option<CallEstimate> {
    let [a, b] = nodes.arguments else { return compared(nodes) };
    let known = CHEAP.iter().find(|(name, _)| a.of == b.of && a.of.runtime_name() == *name);
    match known {
        Some((_, 1)) => Some(CallEstimate::of(CostRange::fixed(1))),
        Some((_, u64::MAX)) => {
            let size = b.size.unwrap_or(SizeRange::fixed(1));
            Some(CallEstimate::of(CostRange::new(1, size.max).scaled(TEXT)))
        }
        Some((_, most)) => Some(CallEstimate::of(CostRange::new(1, *most).scaled(TEXT))),
        None => compared(nodes),
    }
}

fn equality_actually(arguments: &[Value<'_>], result: &Value<'_>) -> u64 {
    match arguments {
        [Value::Opaque(_), _] => 1,
        _ => compared_actually(arguments, result),
    }
}

/// Both operands are copied: `+` of strings.
pub const JOINED: Cost = Cost {
    estimate: |nodes| {
        let size = own(nodes, 0).add(own(nodes, 1));
        Some(CallEstimate::sized(size.scaled(TEXT), size))
    },
    actual: |arguments, _| match arguments {
        [a, b] => scaled(size_of(a).saturating_add(size_of(b)), TEXT),
        _ => 1,
    },
    by_name: false,
};

/// `+` of lists copies nothing.
pub const LISTS_JOINED: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::sized(CostRange::fixed(1), own(nodes, 0).add(own(nodes, 1)))),
    actual: |_, _| 1,
    by_name: false,
};

/// One pass over the items of a list.
pub const SEARCHED: Cost = Cost {
    estimate: |nodes| Some(CallEstimate::of(own(nodes, 1).scaled(1.0))),
    actual: |arguments, _| arguments.get(1).map_or(1, size_of),
    by_name: false,
};

/// Each place of a text is compared with a part: `contains`.
pub const CONTAINED: Cost = Cost {
    estimate: |nodes| {
        let text = nodes.receiver?.size.unwrap_or(SizeRange::UNKNOWN).scaled(TEXT);
        Some(CallEstimate::of(text.multiply(own(nodes, 0).scaled(TEXT))))
    },
    actual: |arguments, _| match arguments {
        [text, part] => scaled(size_of(text), TEXT).saturating_mul(scaled(size_of(part), TEXT)),
        _ => 1,
    },
    by_name: false,
};

/// One pass over a text for each part that a pattern may have: `matches`.
pub const MATCHED: Cost = Cost {
    estimate: |nodes| {
        let text = nodes.receiver?.size.unwrap_or(SizeRange::UNKNOWN).add(SizeRange::fixed(1)).scaled(TEXT);
        Some(CallEstimate::of(text.multiply(own(nodes, 0).scaled(super::REGEX))))
    },
    actual: |arguments, _| match arguments {
        [text, pattern] => {
            scaled(size_of(text).saturating_add(1), TEXT).saturating_mul(scaled(size_of(pattern), super::REGEX))
        }
        _ => 1,
    },
    by_name: false,
};

/// A string becomes bytes: up to four for each character. As upstream's, the largest size wraps.
pub const ENCODED: Cost = Cost {
    estimate: |nodes| {
        let size = own(nodes, 0);
        let result = SizeRange::new(size.min, size.max.wrapping_mul(4));
        Some(CallEstimate::sized(size.scaled(TEXT), result))
    },
    actual: read,
    by_name: false,
};

/// Bytes become a string: each character takes one to four of them.
pub const DECODED: Cost = Cost {
    estimate: |nodes| {
        let size = own(nodes, 0);
        Some(CallEstimate::sized(size.scaled(TEXT), SizeRange::new(size.min / 4, size.max)))
    },
    actual: read,
    by_name: false,
};

/// A string is quoted: each of its characters may need a second one. As upstream's, the sizes wrap.
pub const QUOTED: Cost = Cost {
    estimate: |nodes| {
        let size = own(nodes, 0);
        let result = SizeRange::new(size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2));
        Some(CallEstimate::sized(size.scaled(TEXT), result))
    },
    actual: read,
    by_name: false,
};

/// A text is formatted: one pass over it.
pub const FORMATTED: Cost = Cost {
    estimate: |nodes| {
        let size = nodes.receiver?.size.unwrap_or(SizeRange::UNKNOWN);
        Some(CallEstimate::of(size.scaled(TEXT)))
    },
    actual: read,
    by_name: false,
};
