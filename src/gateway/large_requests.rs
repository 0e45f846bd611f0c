//! Threads that answer large requests, so that no worker computes for long while other clients wait.
//!
//! Decoding, checking and encoding an object cost up to 0.2 us for each of its bytes. A worker serves hundreds of
//! connections; a request that would keep it for more than a few milliseconds is answered by one of these threads. They
//! have a lower priority than the workers: where processors are scarce, small requests come first.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Arbiter, ArbiterHandle};
use actix_web::HttpResponse;
use actix_web::body::MessageBody as _;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use super::head::MovedHead;
use super::resources::Request;
use super::uploads::Body;
use crate::limits;
use crate::request::path::ResourcePath;
use crate::request::verb::Verb;
use crate::status::{ApiError, ApiResult};
use crate::tasks;

/// The niceness of these threads above that of workers, in steps of nice(2).
const NICE: i32 = 5;

/// The threads.
#[derive(Debug)]
pub(super) struct LargeRequestThreads {
    threads: Vec<ArbiterHandle>,
    next: AtomicUsize,
}

impl LargeRequestThreads {
    /// Starts this number of threads.
    pub(super) fn start(threads: usize) -> Self {
        let threads = (0..threads.max(1)).map(|_| {
            let thread = Arbiter::new().handle();
            thread.spawn_fn(|| {
                // If this fails, the thread has the priority of the workers.
                let _ = setpriority_process(Some(rustix::thread::gettid()), NICE);
            });
            thread
        });
        Self { threads: threads.collect(), next: AtomicUsize::new(0) }
    }

    /// Runs work on one of the threads, until it is done or its caller has gone.
    ///
    /// # Errors
    /// 500 if the work panics, 503 if the server is stopping.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> LocalBoxFuture<'static, T> + Send + 'static,
    ) -> ApiResult<T> {
        let (done, waiting) = oneshot::channel();
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len();
        let is_started = self.threads[at].spawn_fn(move || {
            tasks::detached_here("large request", async move {
                let mut done = done;
                let worked = tokio::select! {
                    worked = AssertUnwindSafe(async move { work().await }).catch_unwind() => worked,
                    () = done.closed() => return,
                };
                let _ = done.send(worked.map_err(|_| {
                    tracing::error!("a large request failed unexpectedly");
                    ApiError::internal("the server failed to answer; the failure has been logged")
                }));
            });
        });
        let stopping = || ApiError::unavailable("this server is stopping", 1);
        if !is_started {
            return Err(stopping());
        }
        waiting.await.map_err(|_| stopping())?
    }
}

/// An answer on its way from one thread to another.
struct MovedAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl MovedAnswer {
    /// Takes apart an answer whose whole body is in memory.
    fn of(response: HttpResponse) -> ApiResult<Self> {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().try_into_bytes();
        let body = body.map_err(|_| ApiError::internal("the answer is still being made"))?;
        Ok(Self { status, headers, body })
    }

    fn open(self) -> HttpResponse {
        let mut response = HttpResponse::new(self.status);
        *response.headers_mut() = self.headers;
        response.map_body(|_, _| actix_web::body::BoxBody::new(self.body))
    }
}

impl Request<'_> {
    /// Returns whether the request would keep a worker for long: its body and the object that it changes have many
    /// bytes together.
    ///
    /// The answer about a whole collection is sent while it is made. Only the thread of the connection can do that.
    pub(super) fn is_large(&self, verb: Verb, body: &Body) -> bool {
        let stored = match verb {
            Verb::Update | Verb::Patch if !self.name.is_empty() => {
                let registry = &self.gateway.registry;
                registry
                    .tables
                    .current(&self.served, self.namespace, self.name)
                    .map_or(0, |object| object.bytes().len())
            }
            _ => 0,
        };
        verb != Verb::DeleteCollection && body.len() + stored >= limits::LARGE_REQUEST_BYTES
    }

    /// Answers a large request on another thread.
    pub(super) async fn answer_aside(self, verb: Verb, of: ResourcePath, body: Body) -> ApiResult<HttpResponse> {
        let (head, mut caller) = (MovedHead::of(self.head), self.caller.clone());
        let (body, data, router, served) = (body.read(), self.gateway.clone(), self.router.clone(), self.served);
        let work = move || {
            let answering = async move {
                let head = head.head();
                let request = Request {
                    gateway: &data,
                    router: &router,
                    head: &head,
                    served,
                    namespace: of.namespace.as_deref().unwrap_or(""),
                    name: of.name.as_deref().unwrap_or(""),
                    subresource: of.subresource.as_deref().unwrap_or(""),
                    caller: &mut caller,
                };
                let answered = request.answer(verb, &of, Body::Read(body)).await.and_then(MovedAnswer::of);
                (answered, (caller.notices, caller.record))
            };
            answering.boxed_local()
        };
        let (answered, (notices, record)) = self.gateway.large_requests.run(work).await?;
        (self.caller.notices, self.caller.record) = (notices, record);
        answered.map(MovedAnswer::open)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[actix_web::test]
    async fn work_is_done_on_another_thread_and_a_panic_is_an_answer() {
        let threads = LargeRequestThreads::start(1);
        let here = thread::current().id();
        let there = threads.run(|| async { thread::current().id() }.boxed_local()).await.unwrap();
        assert_ne!(here, there);
        let failed = threads.run(|| async { panic!("not thought of") }.boxed_local()).await;
        assert_eq!(failed.map(|()| 0).unwrap_err().code, 500);
        assert_eq!(threads.run(|| async { 7 }.boxed_local()).await.unwrap(), 7, "the thread goes on");
    }

    #[actix_web::test]
    async fn work_that_nobody_waits_for_ends() {
        let threads = LargeRequestThreads::start(1);
        let (ended, ends) = oneshot::channel::<()>();
        let work = threads.run(move || {
            async move {
                let _held = ended;
                std::future::pending::<()>().await
            }
            .boxed_local()
        });
        drop(Box::pin(work)); // not begun at all
        assert!(ends.await.is_err());
        let (ended, ends) = oneshot::channel::<()>();
        let mut work = Box::pin(threads.run(move || {
            async move {
                let _held = ended;
                std::future::pending::<()>().await
            }
            .boxed_local()
        }));
        assert!(futures_util::poll!(&mut work).is_pending());
        drop(work);
        assert!(ends.await.is_err());
    }
}
