//! How long a task may hold its thread before other tasks run.

use std::task::{Context, Poll};
use std::time::Instant;

use crate::limits;

/// The time since a task began to hold its thread.
#[derive(Debug)]
pub struct Turn(Instant);

impl Turn {
    /// Begins now.
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    /// Returns whether the task has held its thread for as long as it may.
    pub fn is_over(&self) -> bool {
        self.0.elapsed() >= limits::TURN
    }

    /// Yields to other tasks if the turn is over; then another turn begins.
    pub async fn pause(&mut self) {
        if self.is_over() {
            tokio::task::yield_now().await;
            *self = Self::begin();
        }
    }

    /// Is ready while the turn goes on. Once it is over, wakes the task and is pending: the caller returns, and goes on
    /// when it is polled again, after other tasks.
    pub fn poll_goes_on(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_over() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
