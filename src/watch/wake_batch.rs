//! Wakes the watches of a worker together, so that each connection sends the events of all its watches at once.
//!
//! The store runs on threads of its own. A worker polls tasks that another thread woke only when it has nothing else to
//! do, so it would run one watch, then that watch's connection, which sends one event, then the next watch. Therefore
//! the store wakes one task per worker, the batcher, after it has marked all watches that a change concerns. The
//! batcher wakes these watches from within the worker, those of one connection together. They run first and their
//! connection runs after them, and sends the events of all its watches at once. If many watches are marked, those of
//! further connections wait until the first ones have sent, so that the first clients get their events before the last
//! watch has run.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use flotilla_cluster::wake_after_notifying;
use futures_util::future::poll_fn;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::limits;
use crate::tasks;
use crate::transport::ConnectionId;

thread_local! {
    /// The batcher of this worker, while its task lives.
    static BATCHER: RefCell<Weak<WakeBatcher>> = const { RefCell::new(Weak::new()) };
}

/// The watches of a worker that wait to be woken.
#[derive(Default)]
struct WakeBatcher {
    /// The watches that the store marked, each at most once.
    marked: Mutex<Vec<Arc<PendingWake>>>,
    task: AtomicWaker,
}

impl WakeBatcher {
    /// Returns the batcher of this worker. Starts its task if there is none.
    fn here() -> Weak<Self> {
        BATCHER.with_borrow_mut(|here| {
            if here.strong_count() == 0 {
                let batcher = Arc::<Self>::default();
                *here = Arc::downgrade(&batcher);
                tasks::detached_here("waking", run(batcher));
            }
            here.clone()
        })
    }

    fn mark(&self, wake: Arc<PendingWake>) {
        let mut marked = self.marked.lock();
        marked.push(wake);
        if marked.len() == 1 {
            drop(marked);
            self.task.take().into_iter().for_each(wake_after_notifying);
        }
    }
}

/// Wakes marked watches for as long as the worker lives.
async fn run(batcher: Arc<WakeBatcher>) {
    let mut turn = Turn::default();
    poll_fn(|cx| {
        batcher.task.register(cx.waker());
        turn.take(&batcher);
        if turn.wake_some() {
            cx.waker().wake_by_ref();
        }
        Poll::<()>::Pending
    })
    .await;
}

/// The watches to wake, over several turns.
#[derive(Default)]
struct Turn {
    /// The marked watches, those of one connection adjacent.
    due: VecDeque<Arc<PendingWake>>,
    /// Whether connections are now sending the events of the watches that were woken last.
    sending: bool,
    marked: Vec<Arc<PendingWake>>,
}

impl Turn {
    fn take(&mut self, batcher: &WakeBatcher) {
        std::mem::swap(&mut *batcher.marked.lock(), &mut self.marked);
        // A stable sort, so that the watches of a connection are woken in the order in which they were marked.
        self.marked.sort_by_key(|wake| wake.connection);
        self.due.extend(self.marked.drain(..));
    }

    /// Wakes the watches of some connections, or lets these send. Returns whether another turn is needed.
    fn wake_some(&mut self) -> bool {
        if !std::mem::take(&mut self.sending) {
            let (mut woken, mut last) = (0, None);
            while let Some(wake) =
                self.due.pop_front_if(|wake| woken < limits::WATCHES_WOKEN_TOGETHER || last == Some(wake.connection))
            {
                (woken, last) = (woken + 1, Some(wake.connection));
                wake.wake_watch();
            }
            self.sending = !self.due.is_empty();
        }
        !self.due.is_empty()
    }
}

/// A watch that the batcher can wake.
struct PendingWake {
    batcher: Weak<WakeBatcher>,
    connection: ConnectionId,
    watch: AtomicWaker,
    is_marked: AtomicBool,
}

impl PendingWake {
    fn wake_watch(&self) {
        self.is_marked.store(false, Ordering::Release);
        self.watch.wake();
    }
}

impl Wake for PendingWake {
    fn wake(self: Arc<Self>) {
        if self.is_marked.swap(true, Ordering::AcqRel) {
            return;
        }
        match self.batcher.upgrade() {
            Some(batcher) => batcher.mark(self),
            None => self.wake_watch(),
        }
    }
}

/// Lets a change wake one watch through the batcher.
pub struct BatchedWaker {
    wake: Arc<PendingWake>,
    waker: Waker,
}

impl BatchedWaker {
    /// Creates a waker through the batcher of this worker, for a watch whose events this connection sends.
    pub fn of(connection: ConnectionId) -> Self {
        let (watch, is_marked) = (AtomicWaker::new(), AtomicBool::new(false));
        let wake = Arc::new(PendingWake { batcher: WakeBatcher::here(), connection, watch, is_marked });
        Self { waker: Arc::clone(&wake).into(), wake }
    }

    /// Polls a source with a waker that marks the watch, instead of one that wakes the task.
    pub fn poll<T>(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.wake.watch.register(cx.waker());
        poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::Future;
    use std::pin::pin;
    use std::rc::Rc;

    use tokio::sync::Notify;

    use super::*;

    /// Returns the order in which tasks run: watches that wait for changes (by number), and their connections (-1, -2
    /// and so on), which the first of their watches wakes. Watches are assigned to connections in turn.
    async fn order_of(watches: usize, connections: usize) -> Vec<i32> {
        let order = Rc::new(RefCell::new(Vec::new()));
        let changes: Vec<Arc<Notify>> = (0..watches).map(|_| Arc::new(Notify::new())).collect();
        let opened: Vec<_> = (0..connections).map(|_| (ConnectionId::next(), Rc::new(Notify::new()))).collect();
        let (mut tasks, waiting) = (Vec::new(), Rc::new(Cell::new(0)));
        for (number, change) in changes.iter().cloned().enumerate() {
            let (id, connection) = opened[number % connections].clone();
            let (order, waiting) = (Rc::clone(&order), Rc::clone(&waiting));
            tasks.push(actix_web::rt::spawn(async move {
                waiting.set(waiting.get() + 1);
                let waker = BatchedWaker::of(id);
                let mut changed = pin!(change.notified());
                poll_fn(|cx| waker.poll(cx, |cx| changed.as_mut().poll(cx))).await;
                order.borrow_mut().push(number as i32);
                connection.notify_one();
            }));
        }
        for (number, (_, connection)) in opened.into_iter().enumerate() {
            let (order, waiting) = (Rc::clone(&order), Rc::clone(&waiting));
            tasks.push(actix_web::rt::spawn(async move {
                waiting.set(waiting.get() + 1);
                connection.notified().await;
                order.borrow_mut().push(-1 - number as i32);
            }));
        }
        while waiting.get() < tasks.len() {
            actix_web::rt::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        std::thread::spawn(move || changes.iter().for_each(|change| change.notify_one())).join().unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        order.take()
    }

    #[actix_web::test]
    async fn watches_that_are_woken_from_elsewhere_run_before_their_connection() {
        let expected: Vec<i32> = (0..50).chain([-1]).collect();
        assert_eq!(order_of(50, 1).await, expected);
    }

    #[actix_web::test]
    async fn connections_send_before_the_watches_of_others_run() {
        let first = (0..160).step_by(2).chain([-1]);
        let expected: Vec<i32> = first.chain((1..160).step_by(2)).chain([-2]).collect();
        assert_eq!(order_of(160, 2).await, expected);
    }

    #[test]
    fn a_batcher_of_a_worker_that_is_gone_is_replaced() {
        for _ in 0..3 {
            assert_eq!(actix_web::rt::System::new().block_on(order_of(2, 1)).len(), 3);
        }
    }

    #[actix_web::test]
    async fn a_watch_is_marked_once_however_often_it_is_woken() {
        let waker = BatchedWaker::of(ConnectionId::default());
        let batcher = WakeBatcher::here().upgrade().unwrap();
        for _ in 0..3 {
            waker.waker.wake_by_ref();
        }
        assert_eq!(batcher.marked.lock().len(), 1);
        actix_web::rt::task::yield_now().await;
        assert!(batcher.marked.lock().is_empty());
        waker.waker.wake_by_ref();
        assert_eq!(batcher.marked.lock().len(), 1);
    }
}
