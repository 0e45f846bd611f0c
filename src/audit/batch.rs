//! The queue of events that wait for a thread, and the batches in which the thread takes them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::config::BatchOptions;
use crate::limits;

/// An event that waits, or is being written or sent.
#[derive(Debug)]
pub struct Waiting {
    /// The event.
    pub line: Bytes,
    _held: Held,
}

/// Counts the events that a queue and its batches hold, and their bytes.
#[derive(Debug, Default)]
struct Total {
    events: AtomicUsize,
    bytes: AtomicUsize,
}

/// The part of an event in the total. Dropping it subtracts the part.
#[derive(Debug)]
struct Held {
    of: Arc<Total>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.events.fetch_sub(1, Ordering::Relaxed);
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The reasons why an event was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotQueued {
    /// Too many events wait.
    Full,
    /// The thread has ended.
    Over,
}

impl fmt::Display for NotQueued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many wait",
            Self::Over => "the server stops",
        })
    }
}

/// The sending end of the queue.
#[derive(Debug)]
pub struct Queue {
    sender: mpsc::Sender<Waiting>,
    total: Arc<Total>,
}

/// The receiving end of the queue, which forms batches.
#[derive(Debug)]
pub struct Batches {
    receiver: mpsc::Receiver<Waiting>,
    closing: watch::Receiver<bool>,
    /// The largest number of events, and of bytes, of a batch. An event with more bytes is a batch of its own.
    size: (usize, usize),
    wait: Duration,
    throttle: Option<Throttle>,
    /// An event that did not fit into the last batch.
    next: Option<Waiting>,
}

/// Makes a queue. Batches have at most `bytes` bytes. The queue is emptied without waiting once `closing` is true.
pub fn queue(options: &BatchOptions, bytes: usize, closing: watch::Receiver<bool>) -> (Queue, Batches) {
    let (sender, receiver) = mpsc::channel(options.buffer_size.clamp(1, Semaphore::MAX_PERMITS));
    let batches = Batches {
        receiver,
        closing,
        size: (options.max_size, bytes),
        wait: options.max_wait.0,
        throttle: options.throttle.map(|(rate, burst)| Throttle::new(rate, burst, Instant::now())),
        next: None,
    };
    (Queue { sender, total: Arc::default() }, batches)
}

impl Queue {
    /// Puts an event into the queue.
    ///
    /// # Errors
    /// Too many events wait, or the thread has ended.
    pub fn put(&self, line: Bytes) -> Result<(), NotQueued> {
        let bytes = line.len();
        self.total.events.fetch_add(1, Ordering::Relaxed);
        let before = self.total.bytes.fetch_add(bytes, Ordering::Relaxed);
        let held = Held { of: Arc::clone(&self.total), bytes };
        if before > 0 && before + bytes > limits::AUDIT_WAITING_BYTES {
            return Err(NotQueued::Full);
        }
        self.sender.try_send(Waiting { line, _held: held }).map_err(|error| match error {
            TrySendError::Full(_) => NotQueued::Full,
            TrySendError::Closed(_) => NotQueued::Over,
        })
    }

    /// Returns the number of events that wait, or are being written or sent.
    pub fn held(&self) -> usize {
        self.total.events.load(Ordering::Relaxed)
    }
}

impl Batches {
    /// Returns the next batch, once it is full or its first event has waited long enough. Returns `None` if no event
    /// will come.
    pub async fn next(&mut self) -> Option<Vec<Waiting>> {
        let first = match self.next.take() {
            Some(first) => first,
            None => self.event(None).await?,
        };
        let ends = Instant::now() + self.wait;
        let (mut batch, mut bytes) = (Vec::new(), first.line.len());
        batch.push(first);
        while batch.len() < self.size.0
            && let Some(event) = self.event(Some(ends)).await
        {
            if bytes + event.line.len() > self.size.1 {
                self.next = Some(event);
                break;
            }
            bytes += event.line.len();
            batch.push(event);
        }
        self.pause().await;
        Some(batch)
    }

    /// Returns the next event. Returns `None` if no event will come, or none comes in time.
    async fn event(&mut self, ends: Option<Instant>) -> Option<Waiting> {
        let Self { receiver, closing, .. } = self;
        if let Ok(event) = receiver.try_recv() {
            return Some(event);
        }
        let in_time = async {
            match ends {
                Some(ends) => tokio::time::sleep_until(ends).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = closed(closing) => {}
            event = receiver.recv() => return event,
            () = in_time => return None,
        }
        receiver.close();
        receiver.recv().await
    }

    /// Waits until a batch may be sent.
    async fn pause(&mut self) {
        let Some(throttle) = &mut self.throttle else { return };
        let at = throttle.take(Instant::now());
        tokio::select! {
            () = tokio::time::sleep_until(at) => {}
            () = closed(&mut self.closing) => {}
        }
    }
}

/// Waits until the server stops.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await; // an error says that the sender is gone: the server stops
}

/// Limits the number of batches in a second, and the number of batches at once after a rest (a token bucket).
#[derive(Debug)]
struct Throttle {
    interval: Duration,
    burst: u32,
    /// The time at which the next batch could pass if `burst` were 1.
    free: Instant,
}

impl Throttle {
    fn new(rate: f32, burst: u32, now: Instant) -> Self {
        let interval = Duration::try_from_secs_f32(rate.recip()).unwrap_or(Duration::MAX).min(limits::AUDIT_PAUSE_MAX);
        Self { interval, burst, free: now }
    }

    /// Reserves the turn of a batch. Returns the time at which it may pass.
    fn take(&mut self, now: Instant) -> Instant {
        let ahead = self.interval.saturating_mul(self.burst.saturating_sub(1)).min(limits::AUDIT_PAUSE_MAX);
        let passes = now.max(self.free.checked_sub(ahead).unwrap_or(now));
        self.free = self.free.max(now) + self.interval;
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AuditMode, Span};

    fn options(buffer_size: usize, max_size: usize, seconds: u64) -> BatchOptions {
        let max_wait = Span(Duration::from_secs(seconds));
        BatchOptions { mode: AuditMode::Batch, buffer_size, max_size, max_wait, throttle: None, truncate: None }
    }

    fn lengths(batch: Option<Vec<Waiting>>) -> Vec<usize> {
        batch.into_iter().flatten().map(|event| event.line.len()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn batches_are_full_or_have_waited() {
        let (close, closing) = watch::channel(false);
        let (queue, mut batches) = queue(&options(5, 3, 30), 100, closing);
        for _ in 0..5 {
            queue.put(Bytes::from_static(b"x")).unwrap();
        }
        assert_eq!(queue.put(Bytes::from_static(b"x")), Err(NotQueued::Full));
        let began = Instant::now();
        assert_eq!(lengths(batches.next().await), [1, 1, 1]);
        assert_eq!((began.elapsed().as_secs(), lengths(batches.next().await)), (0, vec![1, 1]));
        assert_eq!((began.elapsed().as_secs(), queue.held()), (30, 0));
        for length in [60, 41, 200] {
            queue.put(vec![b'x'; length].into()).unwrap();
        }
        assert_eq!(lengths(batches.next().await), [60], "more has no place");
        assert_eq!((lengths(batches.next().await), lengths(batches.next().await)), (vec![41], vec![200]));
        queue.put(Bytes::from_static(b"x")).unwrap();
        let began = Instant::now();
        close.send_replace(true);
        assert_eq!((lengths(batches.next().await), lengths(batches.next().await)), (vec![1], vec![]));
        assert_eq!((began.elapsed(), queue.put(Bytes::new())), (Duration::ZERO, Err(NotQueued::Over)));
    }

    #[tokio::test]
    async fn bytes_that_wait_are_bounded() {
        let (_close, closing) = watch::channel(false);
        let (queue, mut batches) = queue(&options(9, 1, 0), 100, closing);
        let line = Bytes::from(vec![b'x'; limits::AUDIT_WAITING_BYTES / 2 + 1]);
        queue.put(line.clone()).unwrap();
        assert_eq!(queue.put(line.clone()), Err(NotQueued::Full));
        let batch = batches.next().await;
        assert_eq!(queue.put(line.clone()), Err(NotQueued::Full), "it is on its way");
        drop(batch);
        queue.put(line).unwrap();
        assert_eq!(queue.held(), 1);
    }

    #[test]
    fn batches_are_throttled() {
        let now = Instant::now();
        let mut throttle = Throttle::new(10.0, 3, now);
        let millis: Vec<u128> = (0..5).map(|_| (throttle.take(now) - now).as_millis()).collect();
        assert_eq!(millis, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(9);
        assert_eq!((0..3).map(|_| throttle.take(later)).collect::<Vec<_>>(), [later; 3]);
    }
}
