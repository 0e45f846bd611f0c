//! How long a task may hold its thread before other tasks run.
//!
//! A task that wakes itself runs again before its thread looks for input, up to 61 times with the runtime's defaults.
//! [`tokio::task::yield_now`] wakes the task after that look, so that requests from the meantime are served first.

use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::limits;

/// The time since a task began to hold its thread.
#[derive(Debug)]
pub struct Turn {
    began: Instant,
    /// Whether the task has yielded, and not run since.
    has_yielded: bool,
}

impl Turn {
    /// Begins now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), has_yielded: false }
    }

    /// Returns whether the task has held its thread for as long as it may.
    pub fn is_over(&self) -> bool {
        self.began.elapsed() >= limits::TURN
    }

    /// Yields to other tasks if the turn is over; then another turn begins.
    pub async fn pause(&mut self) {
        if self.is_over() {
            tokio::task::yield_now().await;
            *self = Self::begin();
        }
    }

    /// Does the same as [`Turn::pause`] for a caller that is polled: it is pending once for each turn that is over.
    pub fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_yielded {
            *self = Self::begin();
        } else if self.is_over() {
            self.has_yielded = true;
            return pin!(tokio::task::yield_now()).poll(cx);
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[actix_web::test]
    async fn a_turn_that_is_over_is_pending_once() {
        let mut turn = Turn::begin();
        let mut polls = 0;
        std::thread::sleep(limits::TURN);
        poll_fn(|cx| {
            polls += 1;
            turn.poll_pause(cx)
        })
        .await;
        assert_eq!(polls, 2);
        assert!(!turn.has_yielded);
    }
}
