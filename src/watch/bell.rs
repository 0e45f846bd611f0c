//! Waking the watches of a worker together.
//!
//! The store wakes whom a change concerns from its own thread, and a worker looks at what was woken from elsewhere only
//! when it has nothing else to do: it would run one watch, then that watch's connection, which sends one event, then the
//! next watch. So the store rings a bell instead. One task of the worker answers it and wakes from within all watches
//! that were rung for: they run first and their connections behind them, each sending the events of all its watches.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::poll_fn;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

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
            self.task.wake();
        }
    }
}

/// Wakes those whose ropes are pulled, for as long as the worker lives.
async fn answer(bell: Arc<Bell>) {
    let mut pulled = Vec::new();
    poll_fn(|cx| {
        bell.task.register(cx.waker());
        std::mem::swap(&mut *bell.pulled.lock(), &mut pulled);
        pulled.drain(..).for_each(|pull| pull.wake_watch());
        Poll::<()>::Pending
    })
    .await;
}

/// The lower end of a rope.
struct Pull {
    bell: Weak<Bell>,
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
    /// A rope to the bell of this worker.
    pub fn new() -> Self {
        let pull = Arc::new(Pull { bell: Bell::here(), watch: AtomicWaker::new(), is_pulled: AtomicBool::new(false) });
        Self { waker: Arc::clone(&pull).into(), pull }
    }

    /// Polls a future that, when there is something new, pulls the rope instead of waking the task.
    pub fn poll<F: Future>(&self, cx: &mut Context<'_>, future: Pin<&mut F>) -> Poll<F::Output> {
        self.pull.watch.register(cx.waker());
        future.poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::rc::Rc;

    use tokio::sync::Notify;

    use super::*;

    /// Notes in which order tasks run: watches that wait for changes, and another task that the first one wakes.
    async fn order_of(watches: usize) -> Vec<usize> {
        let order = Rc::new(RefCell::new(Vec::new()));
        let changes: Vec<Arc<Notify>> = (0..watches).map(|_| Arc::new(Notify::new())).collect();
        let connection = Rc::new(Notify::new());
        let mut tasks = Vec::new();
        for (number, change) in changes.iter().cloned().enumerate() {
            let (order, connection) = (Rc::clone(&order), Rc::clone(&connection));
            tasks.push(actix_web::rt::spawn(async move {
                let rope = Rope::new();
                let mut changed = pin!(change.notified());
                poll_fn(|cx| rope.poll(cx, changed.as_mut())).await;
                order.borrow_mut().push(number);
                connection.notify_one();
            }));
        }
        let noted = Rc::clone(&order);
        tasks.push(actix_web::rt::spawn(async move {
            connection.notified().await;
            noted.borrow_mut().push(usize::MAX);
        }));
        actix_web::rt::time::sleep(std::time::Duration::from_millis(10)).await;
        std::thread::spawn(move || changes.iter().for_each(|change| change.notify_one())).join().unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        order.take()
    }

    #[actix_web::test]
    async fn watches_that_are_woken_from_elsewhere_run_before_their_connection() {
        let expected: Vec<usize> = (0..50).chain([usize::MAX]).collect();
        assert_eq!(order_of(50).await, expected);
    }

    #[test]
    fn a_bell_of_a_worker_that_is_gone_is_replaced() {
        for _ in 0..3 {
            assert_eq!(actix_web::rt::System::new().block_on(order_of(2)).len(), 3);
        }
    }

    #[actix_web::test]
    async fn a_rope_is_in_the_bell_once_however_often_it_is_pulled() {
        let rope = Rope::new();
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
