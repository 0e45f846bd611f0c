//! A request and its answer, from the first byte to the last: the seat that they take, and what is measured of them.

use std::cell::RefCell;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, UNIX_EPOCH};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::rt::task::JoinHandle;
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use metrics::Gauge;

use super::Gateway;
use super::head::Head;
use super::seats::Lane;
use crate::ahead::Ahead;
use crate::limits;
use crate::metrics::requests::Route;
use crate::metrics::slowest::SlowRequest;
use crate::served::Served;
use crate::transport::{Outlet, Wait};
use crate::wall_clock;
use crate::watchdog::{Stage, Work, during};

/// What the stages of a request have found out so far. Whatever observes requests hangs on its methods.
pub(super) struct Progress {
    /// When the request came.
    pub(super) began: Instant,
    /// When its user was found.
    pub(super) identified: Instant,
    /// When it is given up; `None` for one that lasts as long as its client wants.
    pub(super) ends: Option<Instant>,
    /// What it is counted as; `None` until that is known, and for what is not counted.
    route: Option<Route>,
    /// Whether the server refused it, or gave it up: then it is counted as that alone.
    is_terminated: bool,
    lane: Option<Lane>,
    open: Option<Gauge>,
}

impl Progress {
    fn begin() -> Self {
        let now = Instant::now();
        Self { began: now, identified: now, ends: None, route: None, is_terminated: false, lane: None, open: None }
    }

    /// Records whether the user was found, whose name this is.
    pub(super) fn identified(&mut self, gateway: &Gateway, user: Option<&str>) {
        self.identified = Instant::now();
        let (access, took) = (&gateway.registry.metrics.access, self.identified - self.began);
        match user {
            Some(name) => access.authenticated(name, took),
            None => access.unknown(took),
        }
    }

    /// Records whether the user may do what the request asks for.
    pub(super) fn authorized(&self, gateway: &Gateway, allowed: bool) {
        gateway.registry.metrics.access.decided(allowed, self.identified.elapsed());
    }

    /// Takes a seat among the requests in progress; false when there is none.
    #[must_use]
    pub(super) fn take_seat(&mut self, gateway: &Gateway, lane: Lane) -> bool {
        let entered = gateway.seats.enter(lane);
        if entered {
            self.lane = Some(lane);
        }
        entered
    }

    /// Gives the seat of a request with an end to others, and takes one of those that have none; false when there are
    /// too many of these.
    #[must_use]
    pub(super) fn last(&mut self, gateway: &Gateway) -> bool {
        let before = self.lane.take();
        let entered = self.take_seat(gateway, Lane::Watch);
        before.into_iter().for_each(|lane| gateway.seats.leave(lane));
        if entered {
            self.ends = None;
        }
        entered
    }

    /// The kind of seat that it has.
    pub(super) fn lane(&self) -> Option<Lane> {
        self.lane
    }

    /// Gives the seat back.
    pub(super) fn leave_seat(&mut self, gateway: &Gateway) {
        if let Some(lane) = self.lane.take() {
            gateway.seats.leave(lane);
        }
    }

    /// Records what the request is counted as, once it ends. One that has no end of its own is counted from now on.
    pub(super) fn counts_as(&mut self, gateway: &Gateway, route: Route) {
        if self.lane == Some(Lane::Watch) {
            let metrics = &gateway.registry.metrics;
            let open = metrics.requests.long_running(metrics.meter(), &route);
            open.increment(1.0);
            self.open = Some(open);
        }
        self.route = Some(route);
    }

    /// Records that the server refused the request, or gave it up, to protect itself.
    pub(super) fn terminated(&mut self, gateway: &Gateway, code: u16) {
        if let Some(route) = &self.route {
            let metrics = &gateway.registry.metrics;
            metrics.requests.terminated(metrics.meter(), route, code);
            self.is_terminated = true;
        }
    }

    /// The resource whose objects the request is about.
    fn served(&self) -> Option<&Arc<Served>> {
        match &self.route {
            Some(Route::Resource { served, .. }) => Some(served),
            _ => None,
        }
    }

    /// Whether it can be one of the slow requests: watches and connections are none, and pay nothing for that.
    fn has_duration(&self) -> bool {
        self.route.as_ref().is_some_and(|route| !route.lasts())
    }

    fn answered(&mut self, gateway: &Gateway, code: u16, bytes: u64, origin: impl FnOnce() -> Origin) {
        let has_duration = self.has_duration();
        let Some(route) = self.route.take() else { return };
        let (metrics, took) = (&gateway.registry.metrics, self.began.elapsed());
        if !self.is_terminated {
            metrics.requests.answered(metrics.meter(), &route, code, took, bytes);
        }
        if has_duration {
            metrics.slowest.ended(self.began + took, took, || origin().slow(&route, took, code, bytes));
        }
    }
}

/// What a slow request is found again by.
#[derive(Default)]
struct Origin {
    path: String,
    user_agent: String,
}

impl Origin {
    fn of(head: &Head<'_>) -> Self {
        Self {
            path: head.path.chars().take(limits::SLOW_REQUEST_PATH_CHARACTERS).collect(),
            user_agent: head.user_agent().chars().take(limits::SLOW_REQUEST_USER_AGENT_CHARACTERS).collect(),
        }
    }

    fn slow(self, route: &Route, took: Duration, code: u16, bytes: u64) -> SlowRequest {
        let (verb, resource) = route.named();
        SlowRequest {
            at_seconds: wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            seconds: took.as_secs_f64(),
            verb: verb.to_owned(),
            resource,
            path: self.path,
            code,
            bytes,
            user_agent: self.user_agent,
        }
    }
}

/// A request that is being answered. Its seat is given back when this is dropped.
pub(super) struct Exchange {
    pub(super) gateway: web::Data<Gateway>,
    pub(super) progress: Progress,
}

impl Exchange {
    pub(super) fn begin(gateway: web::Data<Gateway>) -> Self {
        Self { gateway, progress: Progress::begin() }
    }

    /// Ends with an answer. Where its body is large, or still to be made, the exchange ends when the connection has
    /// taken the last of it.
    pub(super) fn answer(mut self, response: HttpResponse, outlet: Outlet, head: &Head<'_>) -> HttpResponse {
        let code = response.status().as_u16();
        let size = response.body().size();
        match size {
            BodySize::None => self.progress.answered(&self.gateway, code, 0, || Origin::of(head)),
            BodySize::Sized(bytes) if bytes <= limits::LIST_CHUNK_BYTES as u64 => {
                self.progress.answered(&self.gateway, code, bytes, || Origin::of(head));
            }
            BodySize::Sized(_) | BodySize::Stream => {
                let origin = self.progress.has_duration().then(|| Box::new(Origin::of(head)));
                let sent = Sent { code, size, bytes: 0, origin };
                return response.map_body(|_, body| BoxBody::new(Streamed::of(self, sent, body, outlet)));
            }
        }
        response
    }

    /// Bounds how long a client may take to read its answer: at `ends` the seat is given back and the rest of the body
    /// is dropped, and the connection is closed [`limits::READER_STALL`] later.
    fn expire(&mut self, ends: Instant, body: Rc<RefCell<Source>>, outlet: Outlet) -> JoinHandle<()> {
        let mut seat = Self::begin(self.gateway.clone());
        seat.progress.lane = self.progress.lane.take();
        actix_web::rt::spawn(async move {
            tokio::time::sleep_until(ends.into()).await;
            drop(seat);
            body.replace(Source::Over);
            // A client that reads on ends the body with an error before this, and aborts this task.
            tokio::time::sleep(limits::READER_STALL).await;
            outlet.close();
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.progress.leave_seat(&self.gateway);
        if let Some(open) = &self.progress.open {
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

/// An answer whose body is taken part by part.
struct Sent {
    code: u16,
    size: BodySize,
    /// How many bytes were taken.
    bytes: u64,
    /// Of a request that can be one of the slow ones.
    origin: Option<Box<Origin>>,
}

/// A body that is taken part by part.
struct Streamed {
    body: Rc<RefCell<Source>>,
    sent: Sent,
    expiry: Option<JoinHandle<()>>,
    exchange: Exchange,
    outlet: Outlet,
    wait: Wait,
    work: Work,
}

impl Streamed {
    fn of(mut exchange: Exchange, sent: Sent, body: BoxBody, outlet: Outlet) -> Self {
        let source = match body.try_into_bytes() {
            Ok(bytes) if bytes.is_unique() => {
                let mut ahead = Ahead::default();
                ahead.hold(bytes.len());
                Source::Whole(bytes, ahead)
            }
            Ok(bytes) => Source::Made(BoxBody::new(bytes)),
            Err(body) => Source::Made(body),
        };
        let work = Work::new(Stage::Sending, "GET", exchange.progress.served());
        let body = Rc::new(RefCell::new(source));
        let expiry = exchange.progress.ends.map(|ends| exchange.expire(ends, Rc::clone(&body), outlet.clone()));
        Self { body, sent, expiry, exchange, outlet, wait: Wait::default(), work }
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
        if streamed.exchange.progress.ends.is_some_and(|ends| ends <= Instant::now()) {
            streamed.body.replace(Source::Over);
        }
        let next = during(&mut streamed.work, || streamed.body.borrow_mut().poll_next(cx));
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            streamed.sent.bytes += bytes.len() as u64;
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
        let (Exchange { gateway, progress }, sent) = (&mut self.exchange, &mut self.sent);
        let origin = sent.origin.take();
        progress.answered(gateway, sent.code, sent.bytes, || origin.map(|origin| *origin).unwrap_or_default());
    }
}
