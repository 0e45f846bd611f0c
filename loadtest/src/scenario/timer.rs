//! Waits for points in time more precisely than tokio.
//!
//! Tokio's timers fire at whole milliseconds. That delay would add to latencies, which are measured from the time at
//! which a request was due. Here, one thread sleeps until the earliest of all awaited times. Its precision is about
//! 50 us.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use tokio::sync::oneshot;

/// A task that waits: the end of its wait, and the sender that wakes it.
struct Waiter {
    until: Instant,
    wake: oneshot::Sender<()>,
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.until == other.until
    }
}

impl Eq for Waiter {}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

/// The timer's thread. It ends when the last handle is dropped.
#[derive(Clone)]
pub struct Timer {
    waiters: Sender<Waiter>,
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system cannot start a thread.
    pub fn start() -> std::io::Result<Self> {
        let (waiters, receiver) = channel();
        std::thread::Builder::new().name("timer".into()).spawn(move || run(&receiver))?;
        Ok(Self { waiters })
    }

    /// Waits until a point in time.
    pub async fn until(&self, until: Instant) {
        let (wake, woken) = oneshot::channel();
        if until <= Instant::now() || self.waiters.send(Waiter { until, wake }).is_err() {
            return;
        }
        let _ = woken.await;
    }
}

fn run(receiver: &Receiver<Waiter>) {
    let mut waiting = BinaryHeap::<Reverse<Waiter>>::new();
    loop {
        let next = match waiting.peek() {
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(Reverse(first)) => receiver.recv_timeout(first.until.saturating_duration_since(Instant::now())),
        };
        match next {
            Ok(waiter) => waiting.push(Reverse(waiter)),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        while waiting.peek().is_some_and(|Reverse(first)| first.until <= now) {
            if let Some(Reverse(first)) = waiting.pop() {
                let _ = first.wake.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn waiters_are_woken_in_order_and_not_early() {
        let timer = Timer::start().unwrap();
        let start = Instant::now();
        let order = std::cell::RefCell::new(Vec::new());
        let wait = |millis: u64| {
            let (timer, order) = (timer.clone(), &order);
            async move {
                timer.until(start + Duration::from_millis(millis)).await;
                assert!(start.elapsed() >= Duration::from_millis(millis));
                order.borrow_mut().push(millis);
            }
        };
        tokio::join!(wait(60), wait(5), wait(30), wait(0));
        assert_eq!(*order.borrow(), [0, 5, 30, 60]);
    }
}
