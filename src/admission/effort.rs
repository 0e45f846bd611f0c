//! What evaluating expressions about one write may take.

use std::time::Instant;

use crate::limits;

/// What the expressions of one plugin may still cost for one write, and how long they have held the thread.
#[derive(Debug)]
pub struct Effort {
    left: u64,
    began: Instant,
}

impl Default for Effort {
    fn default() -> Self {
        Self { left: limits::WRITE_COST, began: Instant::now() }
    }
}

impl Effort {
    /// Whether there is nothing left.
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Of a budget, as much as may still be spent.
    pub fn grant(&self, budget: u64) -> u64 {
        budget.min(self.left)
    }

    /// Takes what was spent.
    pub fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Lets others run, if expressions have held the thread for long. To be called after each.
    pub async fn pause(&mut self) {
        if self.began.elapsed() >= limits::EVALUATION_TURN {
            tokio::task::yield_now().await;
            self.began = Instant::now();
        }
    }
}
