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
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use futures_util::stream::FuturesUnordered;
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn waiters_are_not_woken_early() {
        let timer = Timer::start().unwrap();
        let start = Instant::now();
        for millis in [5, 0, 30] {
            timer.until(start + Duration::from_millis(millis)).await;
            assert!(start.elapsed() >= Duration::from_millis(millis));
        }
    }

    /// Has waiters wait for 60, 5 and 30 units. Returns the order in which they are woken. Returns `None` if the first
    /// was due before all were known to the timer.
    async fn order_of_waking(unit: Duration) -> Option<Vec<u32>> {
        // A message is sent once the timer takes it. By then the timer has seen all earlier ones.
        let (waiters, receiver) = sync_channel(0);
        std::thread::spawn(move || run(&receiver));
        let start = Instant::now();
        // The futures are polled in the order in which they are woken.
        let mut woken = FuturesUnordered::new();
        for units in [60_u32, 5, 30] {
            let (wake, waking) = oneshot::channel();
            let until = start + unit * units;
            waiters.send(Waiter { until, wake }).unwrap();
            woken.push(async move {
                waking.await.unwrap();
                assert!(Instant::now() >= until);
                units
            });
        }
        if woken.next().now_or_never().is_some() {
            return None;
        }
        let (wake, _last) = oneshot::channel();
        waiters.send(Waiter { until: start + unit * 60, wake }).unwrap();
        if start.elapsed() >= unit * 5 {
            return None;
        }
        Some(woken.collect().await)
    }

    #[tokio::test]
    async fn waiters_are_woken_in_order() {
        // Where a thread may stop for long, only a long time lets the timer know all waiters before the first is due.
        for exponent in 0..12 {
            if let Some(order) = order_of_waking(Duration::from_millis(1 << exponent)).await {
                assert_eq!(order, [5, 30, 60]);
                return;
            }
        }
        panic!("a waiter was always due before the last was known");
    }
}
