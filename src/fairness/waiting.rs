//! A request that waits for a seat.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use compact_str::CompactString;
use flotilla_proto::time::Timestamp;
use tokio::sync::oneshot;

use super::flow::{Flow, Reason};
use super::pool::Seat;
use super::queues::QueuePosition;

/// The entry of a request in its queue.
#[derive(Debug)]
pub struct Waiter {
    seated: oneshot::Sender<Seat>,
    /// The name of its FlowSchema.
    pub(super) schema: CompactString,
    /// The text that distinguishes its flow from others of the FlowSchema.
    pub(super) distinguisher: CompactString,
    /// When it began to wait.
    pub(super) since: Timestamp,
}

impl Waiter {
    /// Creates an entry, and the receiver of its seat.
    pub(super) fn new(schema: &str, distinguisher: &str, since: Timestamp) -> (Self, oneshot::Receiver<Seat>) {
        let (seated, seat) = oneshot::channel();
        (Self { seated, schema: schema.into(), distinguisher: distinguisher.into(), since }, seat)
    }

    /// Gives it a seat. Returns false if its request is gone.
    pub(super) fn seat(self, seat: Seat) -> bool {
        self.seated.send(seat).is_ok()
    }
}

/// A request that waits for a seat: the future of its seat. If the future is dropped before the request has a seat, the
/// request leaves its queue.
#[derive(Debug)]
pub struct Waiting {
    pub(super) flow: Arc<Flow>,
    pub(super) position: QueuePosition,
    pub(super) seat: oneshot::Receiver<Seat>,
    pub(super) since: Instant,
    pub(super) is_over: bool,
}

impl Future for Waiting {
    type Output = Seat;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Seat> {
        let Ok(seat) = ready!(Pin::new(&mut self.seat).poll(cx)) else {
            // This cannot happen: the queue keeps the sender of the seat as long as the request waits.
            return Poll::Pending;
        };
        self.seated();
        Poll::Ready(seat)
    }
}

impl Waiting {
    /// Leaves the queue without a seat. If the request has just got one, returns it.
    pub fn give_up(mut self, reason: Reason) -> Option<Seat> {
        let seat = self.withdraw(reason);
        if seat.is_some() {
            self.seated();
        }
        seat
    }

    fn seated(&mut self) {
        self.is_over = true;
        self.flow.counts.seated_after(self.since.elapsed());
    }

    fn withdraw(&mut self, reason: Reason) -> Option<Seat> {
        if self.flow.pool.withdraw(&self.flow.level, self.position) {
            self.is_over = true;
            self.flow.counts.left_after(self.since.elapsed(), reason);
            return None;
        }
        self.seat.try_recv().ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Some(seat) = self.withdraw(Reason::Cancelled) {
            self.seated();
            self.flow.leave(seat, Duration::ZERO, false);
        }
    }
}
