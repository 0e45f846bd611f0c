//! Whether a connection takes what is made for it.
//!
//! HTTP/2 keeps up to some hundred kilobytes for each stream whose client leaves it room, whether or not the socket
//! takes them. So streams ask here before they make more: they wait while the socket is full, and let the connection
//! send what they have given it. What a connection holds is thus bounded, however many streams it has.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::limits;

/// The way out of one connection. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Outlet(Rc<State>);

#[derive(Debug, Default)]
struct State {
    /// Whether the socket takes nothing for now.
    is_full: Cell<bool>,
    /// How often it was full.
    times: Cell<u64>,
    /// Bytes that streams gave since the connection had its turn.
    given: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
    /// Whether the connection is to end.
    is_closing: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

/// The wait of one stream for its connection.
#[derive(Debug, Default)]
pub struct Wait(u64);

impl Outlet {
    /// Ready when a stream may make more.
    pub fn poll_room(&self, wait: &mut Wait, cx: &mut Context<'_>) -> Poll<()> {
        let state = &self.0;
        if state.is_full.get() {
            // What wakes a stream meanwhile does not make it wait twice.
            if wait.0 != state.times.get() {
                wait.0 = state.times.get();
                state.waiting.borrow_mut().push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        if state.given.get() >= limits::CONNECTION_AHEAD_BYTES {
            // The connection's task was woken by what it was given, and runs first.
            state.given.set(0);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Notes what a stream gives its connection.
    pub fn give(&self, bytes: usize) {
        self.0.given.set(self.0.given.get().saturating_add(bytes));
    }

    /// Closes the connection: its client takes nothing any more.
    pub fn close(&self) {
        self.0.is_closing.set(true);
        let task = self.0.task.take();
        task.into_iter().for_each(Waker::wake);
    }

    /// Whether the connection is to end; if not, `close` wakes who polls.
    pub(super) fn is_closing(&self, cx: &Context<'_>) -> bool {
        let mut task = self.0.task.borrow_mut();
        if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
        self.0.is_closing.get()
    }

    /// The connection has its turn to send.
    pub(super) fn has_turn(&self) {
        self.0.given.set(0);
    }

    /// The socket takes nothing for now.
    pub(super) fn fill(&self) {
        if !self.0.is_full.replace(true) {
            self.0.times.set(self.0.times.get() + 1);
        }
    }

    /// The socket has taken everything.
    pub(super) fn empty(&self) {
        if self.0.is_full.replace(false) {
            let waiting = self.0.waiting.take();
            waiting.into_iter().for_each(Waker::wake);
        }
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

    fn count() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), count.into())
    }

    #[test]
    fn streams_wait_while_the_socket_is_full() {
        let (outlet, (count, waker)) = (Outlet::default(), count());
        let (mut cx, mut wait) = (Context::from_waker(&waker), Wait::default());
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready());
        for times in 1..3 {
            outlet.fill();
            for _ in 0..1_000 {
                assert!(outlet.poll_room(&mut wait, &mut cx).is_pending());
            }
            assert_eq!(outlet.0.waiting.borrow().len(), 1);
            outlet.fill();
            outlet.empty();
            assert_eq!(count.0.load(Ordering::Relaxed), times);
            assert!(outlet.poll_room(&mut wait, &mut cx).is_ready());
        }
    }

    #[test]
    fn streams_let_their_connection_send() {
        let (outlet, (count, waker)) = (Outlet::default(), count());
        let (mut cx, mut wait) = (Context::from_waker(&waker), Wait::default());
        outlet.give(limits::CONNECTION_AHEAD_BYTES - 1);
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready());
        outlet.give(1);
        assert!(outlet.poll_room(&mut wait, &mut cx).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready(), "others are not held up by a window");
        outlet.give(limits::CONNECTION_AHEAD_BYTES);
        outlet.has_turn();
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready());
    }

    #[test]
    fn who_closes_wakes_the_connection() {
        let (outlet, (count, waker)) = (Outlet::default(), count());
        let cx = Context::from_waker(&waker);
        assert!(!outlet.is_closing(&cx));
        outlet.close();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(outlet.is_closing(&cx));
    }
}
