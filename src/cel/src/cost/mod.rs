//! What expressions cost: the estimate when they are compiled, the count when they are evaluated.
//!
//! Both follow the formulas of Kubernetes and of cel-go, since they decide which rules may be written.

mod estimate;
mod node;
mod range;
mod rules;

use crate::value::Value;

pub use estimate::estimate;
pub use node::{NoSizes, Node, SizeSource, Step};
pub use range::{CallEstimate, CostRange, SizeRange};
pub use rules::*;

/// Traversing a text costs this much a character.
pub const TEXT: f64 = 0.1;
/// A regular expression costs this much a character.
pub const REGEX: f64 = 0.25;
/// Making a list costs this much, whatever is in it.
pub const LIST: u64 = 10;
/// Making a map costs this much, whatever is in it.
pub const MAP: u64 = 30;
/// Making an object costs this much, whatever is in it.
pub const OBJECT: u64 = 40;

/// What a call of an overload costs, without what its arguments cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of what the checker knows: the receiver if there is one, then the arguments. None is the default: 1, nothing
    /// known of the result's size.
    pub estimate: fn(&Nodes<'_>) -> Option<CallEstimate>,
    /// Of the arguments and the result. An argument or a result that is an error is given as `null`.
    pub actual: fn(&[Value<'_>], &Value<'_>) -> u64,
    /// Whether the name of the function decides the cost, as for Kubernetes' own, so that it counts even where the
    /// overload is known only when called.
    pub by_name: bool,
}

/// The arguments of a call, as the estimate sees them.
#[derive(Debug)]
pub struct Nodes<'a> {
    /// The receiver, if the call has one.
    pub receiver: Option<&'a Node<'a>>,
    /// The arguments behind it.
    pub arguments: &'a [Node<'a>],
    /// Who knows sizes that the expression does not tell.
    pub sizes: &'a dyn SizeSource,
}

impl Nodes<'_> {
    /// The size of a node, from 0 to anything where nothing is known.
    pub fn size(&self, node: &Node<'_>) -> SizeRange {
        node.size.or_else(|| self.sizes.size(node)).unwrap_or(SizeRange::UNKNOWN)
    }

    /// The size of the receiver, or of the first argument where there is no receiver.
    pub fn first_size(&self) -> SizeRange {
        self.receiver.or(self.arguments.first()).map_or(SizeRange::UNKNOWN, |node| self.size(node))
    }
}

/// The size of a value as costs count it: [`Value::size`], of an optional that of its value, else 1.
pub fn size_of(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => size_of(value),
        other => other.size().unwrap_or(1),
    }
}

/// `size` times `factor`, rounded up.
pub fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
