//! Delays waking tasks until all subscribers of a change have been notified.
//!
//! A task that is woken earlier may run at once, on another processor or in place of this thread, and would find only
//! the first few of the changes that it could have handled together.

use std::cell::RefCell;
use std::task::Waker;

thread_local! {
    /// The tasks to wake when this thread has notified all subscribers; `None` while it is not notifying.
    static TOLD: RefCell<Option<Vec<Waker>>> = const { RefCell::new(None) };
}

/// Wakes a task once this thread has notified all subscribers; at once when it is not notifying. For wakers of
/// subscriptions whose task handles many of them.
pub fn wake_when_told(waker: Waker) {
    let waker = TOLD.with_borrow_mut(|told| match told {
        Some(told) => {
            told.push(waker);
            None
        }
        None => Some(waker),
    });
    waker.into_iter().for_each(Waker::wake);
}

/// Runs `tell`, which notifies subscribers, and wakes the tasks of [`wake_when_told`] after it.
pub(crate) fn tell<T>(tell: impl FnOnce() -> T) -> T {
    let is_first = TOLD.with_borrow_mut(|told| told.is_none() && told.insert(Vec::new()).is_empty());
    let _telling = is_first.then(|| Telling);
    tell()
}

/// Wakes the tasks when this thread has finished notifying.
struct Telling;

impl Drop for Telling {
    fn drop(&mut self) {
        TOLD.take().into_iter().flatten().for_each(Waker::wake);
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
    fn tasks_are_woken_behind_the_outermost_telling() {
        let count = Arc::new(Count::default());
        let woken = || count.0.load(Ordering::Relaxed);
        let ring = || wake_when_told(Arc::clone(&count).into());
        ring();
        assert_eq!(woken(), 1);
        tell(|| {
            ring();
            tell(ring);
            assert_eq!(woken(), 1);
        });
        assert_eq!(woken(), 3);
        ring();
        assert_eq!(woken(), 4);
    }

    #[test]
    fn tasks_are_woken_when_telling_panics() {
        let count = Arc::new(Count::default());
        let ring = || wake_when_told(Arc::clone(&count).into());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tell(|| {
                ring();
                panic!("while telling");
            })
        }));
        assert!(panicked.is_err() && count.0.load(Ordering::Relaxed) == 1);
    }
}
