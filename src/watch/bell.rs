//! Waking the watches of a worker together.
//!
//! The store wakes whom a change concerns from its own thread, and a worker looks at what was woken from elsewhere only
//! when it has nothing else to do: it would run one watch, then that watch's connection, which sends one event, then
//! the next watch. So the store rings a bell instead, when it has told all whom a change concerns. One task of the
//! worker answers it and wakes from within the watches that were rung for, those of a connection together: they run
//! first and their connection behind them, which sends the events of all its watches at once. When many were rung for,
//! the next connections' watches wait for that, so that the first clients have their events before the last watch has
//! run.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use flotilla_cluster::wake_when_told;
use futures_util::future::poll_fn;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::limits;
use crate::transport::ConnectionId;

thread_local! {
    /// The bell of this worker, while its task lives.
    static BELL: RefCell<Weak<Bell>> = const { RefCell::new(Weak::new()) };
}

/// What the watches of a worker are rung with.
#[derive(Default)]
struct Bell {
    /// Whose ropes were pulled; each is here once at most.
    pulled: Mutex<Vec<Arc<Pull>>>,
    task: AtomicWaker,
}

impl Bell {
    /// The bell of this worker, which is hung up when there is none.
    fn here() -> Weak<Self> {
        BELL.with_borrow_mut(|here| {
            if here.strong_count() == 0 {
                let bell = Arc::<Self>::default();
                *here = Arc::downgrade(&bell);
                actix_web::rt::spawn(answer(bell));
            }
            here.clone()
        })
    }

    fn ring(&self, pull: Arc<Pull>) {
        let mut pulled = self.pulled.lock();
        pulled.push(pull);
        if pulled.len() == 1 {
            drop(pulled);
            self.task.take().into_iter().for_each(wake_when_told);
        }
    }
}

/// Wakes those whose ropes are pulled, for as long as the worker lives.
async fn answer(bell: Arc<Bell>) {
    let mut turn = Turn::default();
    poll_fn(|cx| {
        bell.task.register(cx.waker());
        turn.take(&bell);
        if turn.wake_some() {
            cx.waker().wake_by_ref();
        }
        Poll::<()>::Pending
    })
    .await;
}

/// Whom to wake next.
#[derive(Default)]
struct Turn {
    /// Those that were rung for, the watches of a connection next to each other.
    due: VecDeque<Arc<Pull>>,
    /// Whether connections send what the watches that were woken last gave them.
    sending: bool,
    pulled: Vec<Arc<Pull>>,
}

impl Turn {
    fn take(&mut self, bell: &Bell) {
        std::mem::swap(&mut *bell.pulled.lock(), &mut self.pulled);
        // Stable, so that each connection's are woken as they were rung for.
        self.pulled.sort_by_key(|pull| pull.connection);
        self.due.extend(self.pulled.drain(..));
    }

    /// Wakes the watches of some connections, or lets those send; whether there are more to be woken in the next turn.
    fn wake_some(&mut self) -> bool {
        if !std::mem::take(&mut self.sending) {
            let (mut woken, mut last) = (0, None);
            while let Some(pull) =
                self.due.pop_front_if(|pull| woken < limits::WATCHES_WOKEN_TOGETHER || last == Some(pull.connection))
            {
                (woken, last) = (woken + 1, Some(pull.connection));
                pull.wake_watch();
            }
            self.sending = !self.due.is_empty();
        }
        !self.due.is_empty()
    }
}

/// The lower end of a rope.
struct Pull {
    bell: Weak<Bell>,
    connection: ConnectionId,
    watch: AtomicWaker,
    is_pulled: AtomicBool,
}

impl Pull {
    fn wake_watch(&self) {
        self.is_pulled.store(false, Ordering::Release);
        self.watch.wake();
    }
}

impl Wake for Pull {
    fn wake(self: Arc<Self>) {
        if self.is_pulled.swap(true, Ordering::AcqRel) {
            return;
        }
        match self.bell.upgrade() {
            Some(bell) => bell.ring(self),
            None => self.wake_watch(),
        }
    }
}

/// What others pull to have the bell rung for one watch.
pub struct Rope {
    pull: Arc<Pull>,
    waker: Waker,
}

impl Rope {
    /// A rope to the bell of this worker, for a watch whose events are sent by a connection.
    pub fn of(connection: ConnectionId) -> Self {
        let (watch, is_pulled) = (AtomicWaker::new(), AtomicBool::new(false));
        let pull = Arc::new(Pull { bell: Bell::here(), connection, watch, is_pulled });
        Self { waker: Arc::clone(&pull).into(), pull }
    }

    /// Polls what, when there is something new, pulls the rope instead of waking the task.
    pub fn poll<T>(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.pull.watch.register(cx.waker());
        poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::rc::Rc;

    use tokio::sync::Notify;

    use super::*;

    /// Notes in which order tasks run: watches that wait for changes (their numbers), and their connections (-1, -2 and
    /// so on), which the first of their watches wakes. The watches are those of the connections in turn.
    async fn order_of(watches: usize, connections: usize) -> Vec<i32> {
        let order = Rc::new(RefCell::new(Vec::new()));
        let changes: Vec<Arc<Notify>> = (0..watches).map(|_| Arc::new(Notify::new())).collect();
        let opened: Vec<_> = (0..connections).map(|_| (ConnectionId::next(), Rc::new(Notify::new()))).collect();
        let mut tasks = Vec::new();
        for (number, change) in changes.iter().cloned().enumerate() {
            let (id, connection) = opened[number % connections].clone();
            let order = Rc::clone(&order);
            tasks.push(actix_web::rt::spawn(async move {
                let rope = Rope::of(id);
                let mut changed = pin!(change.notified());
                poll_fn(|cx| rope.poll(cx, |cx| changed.as_mut().poll(cx))).await;
                order.borrow_mut().push(number as i32);
                connection.notify_one();
            }));
        }
        for (number, (_, connection)) in opened.into_iter().enumerate() {
            let order = Rc::clone(&order);
            tasks.push(actix_web::rt::spawn(async move {
                connection.notified().await;
                order.borrow_mut().push(-1 - number as i32);
            }));
        }
        actix_web::rt::time::sleep(std::time::Duration::from_millis(10)).await;
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
    fn a_bell_of_a_worker_that_is_gone_is_replaced() {
        for _ in 0..3 {
            assert_eq!(actix_web::rt::System::new().block_on(order_of(2, 1)).len(), 3);
        }
    }

    #[actix_web::test]
    async fn a_rope_is_in_the_bell_once_however_often_it_is_pulled() {
        let rope = Rope::of(ConnectionId::default());
        let bell = Bell::here().upgrade().unwrap();
        for _ in 0..3 {
            rope.waker.wake_by_ref();
        }
        assert_eq!(bell.pulled.lock().len(), 1);
        actix_web::rt::task::yield_now().await;
        assert!(bell.pulled.lock().is_empty());
        rope.waker.wake_by_ref();
        assert_eq!(bell.pulled.lock().len(), 1);
    }
}
