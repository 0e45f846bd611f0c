//! Delays waking tasks until all subscribers of a change have been notified.
//!
//! A task that is woken earlier may run at once, on another processor or in place of this thread, and would find only
//! the first few of the changes that it could have handled together.

use std::cell::RefCell;
use std::task::Waker;

thread_local! {
    /// The tasks to wake when this thread has notified all subscribers. `None` while it is not notifying.
    static WAITING: RefCell<Option<Vec<Waker>>> = const { RefCell::new(None) };
}

/// Wakes a task once this thread has notified all subscribers, or at once when it is not notifying. Tasks that handle
/// many subscriptions use it for their wakers.
pub fn wake_after_notifying(waker: Waker) {
    let waker = WAITING.with_borrow_mut(|waiting| match waiting {
        Some(waiting) => {
            waiting.push(waker);
            None
        }
        None => Some(waker),
    });
    waker.into_iter().for_each(Waker::wake);
}

/// Runs `notify`, which notifies subscribers, and wakes the tasks of [`wake_after_notifying`] after it.
pub(crate) fn notify<T>(notify: impl FnOnce() -> T) -> T {
    let is_first = WAITING.with_borrow_mut(|waiting| waiting.is_none() && waiting.insert(Vec::new()).is_empty());
    let _notifying = is_first.then(|| Notifying);
    notify()
}

/// Wakes the tasks when this thread has finished notifying.
struct Notifying;

impl Drop for Notifying {
    fn drop(&mut self) {
        WAITING.take().into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn tasks_are_woken_after_the_outermost_notification() {
        let count = Arc::new(Count::default());
        let woken = || count.0.load(Ordering::Relaxed);
        let ring = || wake_after_notifying(Arc::clone(&count).into());
        ring();
        assert_eq!(woken(), 1);
        notify(|| {
            ring();
            notify(ring);
            assert_eq!(woken(), 1);
        });
        assert_eq!(woken(), 3);
        ring();
        assert_eq!(woken(), 4);
    }

    #[test]
    fn tasks_are_woken_when_notifying_panics() {
        let count = Arc::new(Count::default());
        let ring = || wake_after_notifying(Arc::clone(&count).into());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            notify(|| {
                ring();
                panic!("while telling");
            })
        }));
        assert!(panicked.is_err() && count.0.load(Ordering::Relaxed) == 1);
    }
}
