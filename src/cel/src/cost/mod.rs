//! The cost of calls: its estimate at compilation, and the actual cost counted at evaluation.
//!
//! [`crate::estimate`] estimates whole expressions. Both costs follow the formulas of Kubernetes and cel-go, since they
//! decide which rules are accepted.

mod node;
mod range;
mod rules;

use crate::value::Value;

pub use node::{NoSizes, Node, SizeSource, VariableStep};
pub use range::{CallEstimate, CostRange, SizeRange};
pub use rules::*;

/// The cost of traversing a text, per character.
pub const TEXT: f64 = 0.1;
/// The cost of a regular expression, per character.
pub const REGEX: f64 = 0.25;
/// Cost of creating a list of any size.
pub const LIST: u64 = 10;
/// Cost of creating a map of any size.
pub const MAP: u64 = 30;
/// Cost of creating an object of any size.
pub const OBJECT: u64 = 40;

/// The cost of a call of an overload, without that of its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Estimates the cost from the facts that the checker knows about the receiver and the arguments. `None` is the
    /// default: cost 1, unknown size of the result.
    pub estimate: fn(&Nodes<'_>) -> Option<CallEstimate>,
    /// Computes the cost from the arguments and the result. An argument or result that is an error is passed as `null`.
    pub actual: fn(&[Value<'_>], &Value<'_>) -> u64,
    /// Whether the function's name determines the cost, as for Kubernetes' own functions, so that it applies even if
    /// the overload is not known before the call.
    pub by_name: bool,
}

/// The arguments of a call, as the estimate sees them.
#[derive(Debug)]
pub struct Nodes<'a> {
    /// The receiver, if the call has one.
    pub receiver: Option<&'a Node<'a>>,
    /// The arguments after the receiver.
    pub arguments: &'a [Node<'a>],
    /// The source of sizes that the expression does not determine.
    pub sizes: &'a dyn SizeSource,
}

impl Nodes<'_> {
    /// Returns the size of a node. If nothing is known about it, the range has no upper bound.
    pub fn size(&self, node: &Node<'_>) -> SizeRange {
        node.size.or_else(|| self.sizes.size(node)).unwrap_or(SizeRange::UNKNOWN)
    }

    /// Returns the size of the receiver, or of the first argument where there is no receiver.
    pub fn first_size(&self) -> SizeRange {
        self.receiver.or(self.arguments.first()).map_or(SizeRange::UNKNOWN, |node| self.size(node))
    }
}

/// Returns the size of a value as costs count it: [`Value::size`], or 1 if the value has no size. The size of an
/// optional is that of its value.
pub fn size_of(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => size_of(value),
        other => other.size().unwrap_or(1),
    }
}

/// Returns `size` times `factor`, rounded up.
pub fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
