//! Starts every task and thread of the store and of the server. The function that starts one states its kind, and
//! thereby the meaning of its end:
//!
//! | function | kind | its end |
//! |---|---|---|
//! | [`service`] | work that goes on as long as its owner holds the [`Task`] | after a panic it starts again |
//! | [`owned`] | a part of its owner's work, which the owner waits for or ends | the owner finds out |
//! | [`detached`], [`detached_on`], [`detached_here`] | work that continues when its starter has gone | it is done |
//! | [`blocking`] | work that waits for a disk or a device | its starter waits for it |
//! | [`thread`] | work that needs a thread of its own | its owner joins the thread, or it ends with the process |
//!
//! The log shows every panic, with the name of the task or thread. The values that the task held are dropped: a
//! receiver that waits for its message gets an error.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{io, thread};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::sleep;

use crate::limits::TASK_RESTART_DELAY;

/// A task that ends when this is dropped. Waiting for it returns the result of the task.
#[derive(Debug)]
#[must_use = "the task ends when this is dropped"]
pub struct Task<T = ()>(JoinHandle<T>);

impl<T> Task<T> {
    /// Returns whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts work that goes on until it is done or its owner drops it. After a panic it begins again.
pub fn service(name: &'static str, work: impl AsyncFn() + 'static) -> Task {
    let work = async move || {
        work().await;
        ControlFlow::Break(())
    };
    owned(name, async move { persist(name, work, || ()).await })
}

/// Starts work on this thread. The work ends when its owner drops it.
pub fn owned<T: 'static>(name: &'static str, work: impl Future<Output = T> + 'static) -> Task<T> {
    Task(detached_here(name, work))
}

/// Starts work that continues when its starter has gone, on the current runtime.
#[expect(clippy::disallowed_methods, reason = "tasks are started here")]
pub fn detached<T: Send + 'static>(
    name: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(reported(name, work))
}

/// Starts work that continues when its starter has gone, on the given runtime.
#[expect(clippy::disallowed_methods, reason = "tasks are started here")]
pub fn detached_on<T: Send + 'static>(
    runtime: &Handle,
    name: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    runtime.spawn(reported(name, work))
}

/// Starts work that continues when its starter has gone, on this thread.
#[expect(clippy::disallowed_methods, reason = "tasks are started here")]
pub fn detached_here<T: 'static>(name: &'static str, work: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    tokio::task::spawn_local(reported(name, work))
}

/// Runs work that waits, on a thread where that blocks nothing else. The handle returns a panic as an error.
#[expect(clippy::disallowed_methods, reason = "tasks are started here")]
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Starts a thread. `stack` is the number of bytes of its stack. `None` is the default of the standard library.
///
/// # Errors
/// The system starts no further thread.
#[expect(clippy::disallowed_methods, reason = "threads are started here")]
pub fn thread<T: Send + 'static>(
    name: &str,
    stack: Option<usize>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::JoinHandle<T>> {
    let builder = thread::Builder::new().name(name.to_owned());
    let builder = match stack {
        Some(bytes) => builder.stack_size(bytes),
        None => builder,
    };
    builder.spawn(work)
}

/// Runs work until it returns a break. After a failure, which the work returns in words, and after a panic, this logs
/// it and begins the work again after a pause. It holds the value of `pausing` during the pause.
pub async fn persist<G>(name: &'static str, work: impl AsyncFn() -> ControlFlow<(), String>, pausing: impl Fn() -> G) {
    loop {
        let why = match AssertUnwindSafe(work()).catch_unwind().await {
            Ok(ControlFlow::Break(())) => return,
            Ok(ControlFlow::Continue(why)) => why,
            Err(_) => "it panicked".to_owned(),
        };
        tracing::error!(task = name, why, "a task failed and begins again");
        let _held = pausing();
        sleep(TASK_RESTART_DELAY).await;
    }
}

/// Runs work. Logs its panic, which the handle of the task then returns as an error.
pub async fn reported<F: Future>(name: &'static str, work: F) -> F::Output {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
        tracing::error!(task = name, "a task panicked");
        resume_unwind(panic)
    })
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
