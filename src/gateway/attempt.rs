//! A request from its first to its last byte: the place that it takes, and what is measured of it.

use std::cell::RefCell;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, UNIX_EPOCH};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::USER_AGENT;
use actix_web::rt::task::JoinHandle;
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use metrics::Gauge;

use super::Gateway;
use super::flow::Lane;
use super::handler::{Head, header};
use crate::ahead::Ahead;
use crate::limits;
use crate::metrics::requests::Route;
use crate::metrics::slowest::SlowRequest;
use crate::transport::{Outlet, Wait};
use crate::wall_clock;
use crate::watchdog::{Stage, Work, during};

/// What is known of a request so far.
pub(super) struct Course {
    /// When the request came.
    pub(super) began: Instant,
    /// When its user was found.
    pub(super) authenticated: Instant,
    /// When it is given up.
    pub(super) ends: Option<Instant>,
    /// What it is for, once that is known and to be counted.
    pub(super) route: Option<Route>,
    lane: Option<Lane>,
    open: Option<Gauge>,
}

impl Course {
    fn begin() -> Self {
        let now = Instant::now();
        Self { began: now, authenticated: now, ends: None, route: None, lane: None, open: None }
    }

    /// Takes a place; false when there is none, which is counted.
    pub(super) fn enter(&mut self, gateway: &Gateway, lane: Lane) -> bool {
        if !gateway.flow.enter(lane) {
            self.terminated(gateway, 429);
            return false;
        }
        self.lane = Some(lane);
        if lane == Lane::Watch
            && let Some(route) = &self.route
        {
            let metrics = &gateway.registry.metrics;
            let open = metrics.requests.long_running(metrics.meter(), route);
            open.increment(1.0);
            self.open = Some(open);
        }
        true
    }

    /// Gives the place of a request with an end to others, and lasts from now on as a watch does; false when there are
    /// too many of these.
    pub(super) fn lasts(&mut self, gateway: &Gateway) -> bool {
        let before = self.lane.take();
        let entered = self.enter(gateway, Lane::Watch);
        before.into_iter().for_each(|lane| gateway.flow.leave(lane));
        if entered {
            self.ends = None;
        }
        entered
    }

    /// The place that it has.
    pub(super) fn lane(&self) -> Option<Lane> {
        self.lane
    }

    /// Gives the place back.
    pub(super) fn leave(&mut self, gateway: &Gateway) {
        if let Some(lane) = self.lane.take() {
            gateway.flow.leave(lane);
        }
    }

    /// The server refused, or gave up, to protect itself.
    pub(super) fn terminated(&mut self, gateway: &Gateway, code: u16) {
        if let Some(route) = self.route.take() {
            let metrics = &gateway.registry.metrics;
            metrics.requests.terminated(metrics.meter(), &route, code);
        }
    }

    /// What is told of it once its answer has been taken. Watches and connections pay nothing for that.
    fn kept(&self, line: Line<'_>) -> Option<Box<(String, String)>> {
        let is_told = self.route.as_ref().is_some_and(|route| !route.lasts());
        is_told.then(|| Box::new((line.path.to_owned(), line.client.to_owned())))
    }

    fn answered(&mut self, gateway: &Gateway, code: u16, bytes: u64, line: Line<'_>) {
        if let Some(route) = self.route.take() {
            let (metrics, took) = (&gateway.registry.metrics, self.began.elapsed());
            metrics.requests.answered(metrics.meter(), &route, code, took, bytes);
            if !route.lasts() {
                metrics.slowest.ended(self.began + took, took, || line.slow(&route, took, code, bytes));
            }
        }
    }
}

/// What of a request's head is told if it was slow.
#[derive(Clone, Copy)]
pub(super) struct Line<'r> {
    path: &'r str,
    client: &'r str,
}

impl<'r> Line<'r> {
    pub(super) fn of(head: &Head<'r>) -> Self {
        Self { path: head.path, client: header(head.request, &USER_AGENT) }
    }

    fn slow(self, route: &Route, took: Duration, code: u16, bytes: u64) -> SlowRequest {
        let (verb, resource) = route.named();
        SlowRequest {
            at_seconds: wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            seconds: took.as_secs_f64(),
            verb: verb.to_owned(),
            resource,
            path: self.path.chars().take(limits::SLOW_REQUEST_PATH_CHARACTERS).collect(),
            code,
            bytes,
            client: self.client.chars().take(limits::SLOW_REQUEST_CLIENT_CHARACTERS).collect(),
        }
    }
}

/// A request that is being answered. It gives its place back when it ends, however that comes.
pub(super) struct Attempt {
    pub(super) gateway: web::Data<Gateway>,
    pub(super) course: Course,
}

impl Attempt {
    pub(super) fn begin(gateway: web::Data<Gateway>) -> Self {
        Self { gateway, course: Course::begin() }
    }

    /// Ends with an answer. One whose body is large, or still to be made, lasts until that has been taken by the
    /// connection.
    pub(super) fn answer(mut self, response: HttpResponse, outlet: Outlet, line: Line<'_>) -> HttpResponse {
        let code = response.status().as_u16();
        let size = response.body().size();
        match size {
            BodySize::None => self.course.answered(&self.gateway, code, 0, line),
            BodySize::Sized(bytes) if bytes <= limits::LIST_CHUNK_BYTES as u64 => {
                self.course.answered(&self.gateway, code, bytes, line);
            }
            BodySize::Sized(_) | BodySize::Stream => {
                let sent = Sent { code, size, line: self.course.kept(line) };
                return response.map_body(|_, body| BoxBody::new(Streamed::of(self, sent, body, outlet)));
            }
        }
        response
    }

    /// A client that does not take its answer has its place no longer than any other, and soon nothing else.
    fn expire(&mut self, ends: Instant, body: Rc<RefCell<Source>>, outlet: Outlet) -> JoinHandle<()> {
        let mut place = Self::begin(self.gateway.clone());
        place.course.lane = self.course.lane.take();
        actix_web::rt::spawn(async move {
            tokio::time::sleep_until(ends.into()).await;
            drop(place);
            body.replace(Source::Over);
            // Who goes on taking is told meanwhile, and this is not reached.
            tokio::time::sleep(limits::READER_STALL).await;
            outlet.close();
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.course.leave(&self.gateway);
        if let Some(open) = &self.course.open {
            open.decrement(1.0);
        }
    }
}

/// Where the bytes of a body come from.
enum Source {
    /// They are made while they are sent.
    Made(BoxBody),
    /// They are there, and nobody else has them. Copies of parts are sent, so that all is gone once its time is over.
    Whole(Bytes, Ahead),
    /// The time of the request is over.
    Over,
}

impl Source {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Box<dyn Error>>>> {
        match self {
            Self::Made(body) => Pin::new(body).poll_next(cx),
            Self::Whole(bytes, _) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes, ahead) => {
                ahead.hold(bytes.len());
                let part = bytes.split_to(bytes.len().min(limits::LIST_CHUNK_BYTES));
                Poll::Ready(Some(Ok(Bytes::copy_from_slice(&part))))
            }
            // The answer has begun: breaking it off is all that can be said.
            Self::Over => Poll::Ready(Some(Err("the answer took too long".into()))),
        }
    }
}

/// What is known of an answer whose body is taken part by part.
struct Sent {
    code: u16,
    size: BodySize,
    /// Path and client, where it may be told that it was slow.
    line: Option<Box<(String, String)>>,
}

/// A body that is taken part by part.
struct Streamed {
    body: Rc<RefCell<Source>>,
    sent: Sent,
    bytes: u64,
    expiry: Option<JoinHandle<()>>,
    attempt: Attempt,
    outlet: Outlet,
    wait: Wait,
    work: Work,
}

impl Streamed {
    fn of(mut attempt: Attempt, sent: Sent, body: BoxBody, outlet: Outlet) -> Self {
        let source = match body.try_into_bytes() {
            Ok(bytes) if bytes.is_unique() => {
                let mut ahead = Ahead::default();
                ahead.hold(bytes.len());
                Source::Whole(bytes, ahead)
            }
            Ok(bytes) => Source::Made(BoxBody::new(bytes)),
            Err(body) => Source::Made(body),
        };
        let served = match &attempt.course.route {
            Some(Route::Resource { served, .. }) => Some(served),
            _ => None,
        };
        let work = Work::new(Stage::Sending, "GET", served);
        let body = Rc::new(RefCell::new(source));
        let expiry = attempt.course.ends.map(|ends| attempt.expire(ends, Rc::clone(&body), outlet.clone()));
        Self { body, sent, bytes: 0, expiry, attempt, outlet, wait: Wait::default(), work }
    }
}

impl MessageBody for Streamed {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.sent.size
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let streamed = &mut *self;
        ready!(streamed.outlet.poll_room(&mut streamed.wait, cx));
        if streamed.attempt.course.ends.is_some_and(|ends| ends <= Instant::now()) {
            streamed.body.replace(Source::Over);
        }
        let next = during(&mut streamed.work, || streamed.body.borrow_mut().poll_next(cx));
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            streamed.bytes += bytes.len() as u64;
            streamed.outlet.give(bytes.len());
        }
        next
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        if let Some(expiry) = &self.expiry {
            expiry.abort();
        }
        let (Attempt { gateway, course }, sent) = (&mut self.attempt, &self.sent);
        let (path, client) = sent.line.as_deref().map_or(("", ""), |(path, client)| (path, client));
        let line = Line { path, client };
        course.answered(gateway, sent.code, self.bytes, line);
    }
}

/// The longest time of a request: what the client asks for, if that is less than what every request gets.
pub(super) fn longest(asked: Option<Duration>) -> Duration {
    asked.map_or(limits::REQUEST_TIMEOUT, |asked| asked.min(limits::REQUEST_TIMEOUT))
}
