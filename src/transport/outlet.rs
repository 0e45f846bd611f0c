//! Bounds the bytes that the streams of a connection produce before the client receives them.
//!
//! HTTP/2 buffers some hundred kilobytes for each stream whose client has an open window, even while the socket is
//! full. Therefore streams ask here before they produce more. They wait while the socket is full. After a number of
//! bytes, they give the connection a turn to send. This bounds the memory of a connection for any number of streams.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::limits;

/// The sending side of one connection. Clones refer to the same connection.
#[derive(Debug, Clone, Default)]
pub struct Outlet(Rc<State>);

#[derive(Debug, Default)]
struct State {
    /// Whether the socket is full.
    is_full: Cell<bool>,
    /// The number of times that it became full.
    times: Cell<u64>,
    /// Bytes from streams since the connection last had a turn.
    given: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
    /// Whether the connection must close.
    is_closing: Cell<bool>,
    /// Whether the client is asked to send no more requests on the connection.
    is_leaving: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

/// The state of one stream that waits for its connection.
#[derive(Debug, Default)]
pub struct Wait(u64);

impl Outlet {
    /// Ready when the stream may produce more.
    pub fn poll_room(&self, wait: &mut Wait, cx: &mut Context<'_>) -> Poll<()> {
        let state = &self.0;
        if state.is_full.get() {
            // A stream that another event wakes must not register twice.
            if wait.0 != state.times.get() {
                wait.0 = state.times.get();
                state.waiting.borrow_mut().push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        if state.given.get() >= limits::CONNECTION_UNSENT_BYTES {
            // The bytes have woken the connection's task, which runs first.
            state.given.set(0);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Notes how many bytes a stream passes to its connection.
    pub fn give(&self, bytes: usize) {
        self.0.given.set(self.0.given.get().saturating_add(bytes));
    }

    /// Closes the connection, because its client does not receive any more.
    pub fn close(&self) {
        self.0.is_closing.set(true);
        let task = self.0.task.take();
        task.into_iter().for_each(Waker::wake);
    }

    /// Asks an HTTP/2 client to send no more requests on the connection, which closes once the open ones have ended.
    pub fn leave(&self) {
        self.0.is_leaving.set(true);
        let task = self.0.task.take();
        task.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the client is asked to send no more requests. If not, `leave` will wake the task that polls
    /// [`Outlet::is_closing`].
    pub(super) fn is_leaving(&self) -> bool {
        self.0.is_leaving.get()
    }

    /// Returns whether the connection must close. If not, `close` will wake the polling task.
    pub(super) fn is_closing(&self, cx: &Context<'_>) -> bool {
        let mut task = self.0.task.borrow_mut();
        if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
        self.0.is_closing.get()
    }

    /// Notes that the connection has its turn to send.
    pub(super) fn has_turn(&self) {
        self.0.given.set(0);
    }

    /// Notes that the socket is full.
    pub(super) fn fill(&self) {
        if !self.0.is_full.replace(true) {
            self.0.times.set(self.0.times.get() + 1);
        }
    }

    /// Notes that the socket has taken all bytes.
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
        outlet.give(limits::CONNECTION_UNSENT_BYTES - 1);
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready());
        outlet.give(1);
        assert!(outlet.poll_room(&mut wait, &mut cx).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready(), "others are not held up by a window");
        outlet.give(limits::CONNECTION_UNSENT_BYTES);
        outlet.has_turn();
        assert!(outlet.poll_room(&mut wait, &mut cx).is_ready());
    }

    #[test]
    fn closing_an_outlet_wakes_the_connection() {
        let (outlet, (count, waker)) = (Outlet::default(), count());
        let cx = Context::from_waker(&waker);
        assert!(!outlet.is_closing(&cx));
        outlet.close();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(outlet.is_closing(&cx));
    }
}
