//! Wakes a watch for rare events: its next bookmark, its end, the end of the server.
//!
//! Polling these sources takes locks that all watches share, and a watch of many changes waits often. A source that was
//! polled wakes the watch, so it need not be polled again before that. But it wakes only once, maybe while the watch
//! reads changes or its task waits for the client, and maybe for no reason. The reminder therefore records the wake-up
//! until the sources are polled again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

struct WakeUp {
    watch: AtomicWaker,
    is_due: AtomicBool,
}

impl Wake for WakeUp {
    fn wake(self: Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.watch.wake();
    }
}

/// Remembers whether one of a watch's rare sources has woken it.
pub struct Reminder {
    wake_up: Arc<WakeUp>,
    waker: Waker,
}

impl Reminder {
    /// Creates a reminder whose sources were not polled yet.
    pub fn new() -> Self {
        let wake_up = Arc::new(WakeUp { watch: AtomicWaker::new(), is_due: AtomicBool::new(true) });
        Self { waker: Arc::clone(&wake_up).into(), wake_up }
    }

    /// Makes the next poll ask the sources again.
    pub fn renew(&self) {
        self.wake_up.is_due.store(true, Ordering::Release);
    }

    /// Polls the sources, unless they were pending and none has woken this reminder since.
    pub fn poll(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<()>) -> Poll<()> {
        self.wake_up.watch.register(cx.waker());
        if !self.wake_up.is_due.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.wake_up.is_due.swap(false, Ordering::AcqRel);
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.renew();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[test]
    fn pending_sources_are_polled_after_a_wake_up_and_ready_ones_always() {
        let reminder = Reminder::new();
        let (asked, result, last) = (Cell::new(0), Cell::new(Poll::Pending), RefCell::new(Waker::noop().clone()));
        let poll = |times| {
            let polled = reminder.poll(&mut Context::from_waker(Waker::noop()), |cx| {
                *last.borrow_mut() = cx.waker().clone();
                asked.set(asked.get() + 1);
                result.get()
            });
            assert_eq!(asked.take(), times);
            polled
        };
        assert!(poll(1).is_pending() && poll(0).is_pending());
        last.borrow().wake_by_ref();
        // Woken for no reason: the source must be polled again to wake once more.
        assert!(poll(1).is_pending() && poll(0).is_pending());
        last.borrow().wake_by_ref();
        result.set(Poll::Ready(()));
        assert!(poll(1).is_ready() && poll(1).is_ready());
        result.set(Poll::Pending);
        assert!(poll(1).is_pending() && poll(0).is_pending());
        reminder.renew();
        assert!(poll(1).is_pending() && poll(0).is_pending());
    }

    #[test]
    fn the_task_that_polled_last_is_woken() {
        let reminder = Reminder::new();
        let mut last = None;
        let wakers: [Arc<WakeUp>; 2] = std::array::from_fn(|_| Arc::clone(&Reminder::new().wake_up));
        for wake_up in &wakers {
            wake_up.is_due.store(false, Ordering::Relaxed);
            let waker = Arc::clone(wake_up).into();
            let _ = reminder.poll(&mut Context::from_waker(&waker), |cx| {
                last = Some(cx.waker().clone());
                Poll::Pending
            });
        }
        last.unwrap().wake();
        assert_eq!(wakers.map(|wake_up| wake_up.is_due.load(Ordering::Relaxed)), [false, true]);
    }
}
