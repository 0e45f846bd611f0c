//! Room on the stack for what nests deep: threads that serve requests have little.

use crate::syntax::{Expr, ExprKind};

/// Bytes that expressions at the bounds of [`crate::limits`] find, twice what they take in builds without optimization.
const DEEP_BYTES: usize = 8 << 20;
/// How deep expressions may nest that are evaluated on any stack.
const SHALLOW_LEVELS: usize = 24;

/// Does work with room for expressions of any depth, as compiling them needs.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(DEEP_BYTES, work)
}

/// Whether an expression nests deep.
pub(crate) fn is_deep(expr: &Expr) -> bool {
    reaches(expr, SHALLOW_LEVELS)
}

fn reaches(expr: &Expr, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return true };
    let below = |expr: &Expr| reaches(expr, left);
    match &expr.kind {
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => false,
        ExprKind::Select(select) => below(&select.operand),
        ExprKind::Call(call) => call.receiver.iter().chain(&call.arguments).any(below),
        ExprKind::List(items) => items.iter().any(|item| below(&item.value)),
        ExprKind::Map(entries) => entries.iter().any(|entry| below(&entry.key) || below(&entry.value)),
        ExprKind::Object(_, entries) => entries.iter().any(|entry| below(&entry.value)),
        ExprKind::Loop(of) => [&of.range, &of.init, &of.condition, &of.step, &of.result].into_iter().any(below),
    }
}
