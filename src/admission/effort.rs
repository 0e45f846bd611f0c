//! Bounds the cost of the expressions about one write, and the time for which their evaluation holds the thread.

use crate::limits;
use crate::turn::Turn;

/// The cost that the expressions of one plugin may still spend on one write, and the time for which they have held the
/// thread.
#[derive(Debug)]
pub struct Effort {
    left: u64,
    turn: Turn,
}

impl Default for Effort {
    fn default() -> Self {
        Self { left: limits::WRITE_COST, turn: Turn::begin() }
    }
}

impl Effort {
    /// Returns whether no more cost may be spent.
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns the lesser of `budget` and the cost that may still be spent.
    pub fn grant(&self, budget: u64) -> u64 {
        budget.min(self.left)
    }

    /// Subtracts the cost of an evaluation.
    pub fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Returns the cost that may still be spent.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Restores the cost that may still be spent to `left`, before an evaluation is repeated.
    pub const fn restore(&mut self, left: u64) {
        self.left = left;
    }

    /// Yields to other tasks if expressions have held the thread for long. Call it after each expression.
    pub async fn pause(&mut self) {
        self.turn.pause().await;
    }
}
