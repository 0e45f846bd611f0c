//! A request from its first to its last byte: the place that it takes, and what is measured of it.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::rt::task::JoinHandle;
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use metrics::Gauge;

use super::Gateway;
use super::flow::Lane;
use crate::limits;
use crate::metrics::requests::Route;

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

    fn answered(&mut self, gateway: &Gateway, code: u16, bytes: u64) {
        if let Some(route) = self.route.take() {
            let metrics = &gateway.registry.metrics;
            metrics.requests.answered(metrics.meter(), &route, code, self.began.elapsed(), bytes);
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

    /// Ends with an answer. One whose body is still to be made lasts until that has been sent.
    pub(super) fn answer(mut self, response: HttpResponse) -> HttpResponse {
        let code = response.status().as_u16();
        match response.body().size() {
            BodySize::None => self.course.answered(&self.gateway, code, 0),
            BodySize::Sized(bytes) => self.course.answered(&self.gateway, code, bytes),
            BodySize::Stream => {
                let expiry = self.course.ends.map(|ends| self.expire(ends));
                return response
                    .map_body(|_, body| BoxBody::new(Streamed { body, code, bytes: 0, expiry, attempt: self }));
            }
        }
        response
    }

    /// A client that does not take its answer has its place no longer than any other.
    fn expire(&mut self, ends: Instant) -> JoinHandle<()> {
        let mut place = Self::begin(self.gateway.clone());
        place.course.lane = self.course.lane.take();
        actix_web::rt::spawn(async move {
            tokio::time::sleep_until(ends.into()).await;
            drop(place);
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

/// A body that is made while it is sent.
struct Streamed {
    body: BoxBody,
    code: u16,
    bytes: u64,
    expiry: Option<JoinHandle<()>>,
    attempt: Attempt,
}

impl MessageBody for Streamed {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.attempt.course.ends.is_some_and(|ends| ends <= Instant::now()) {
            // The answer has begun: breaking it off is all that can be said.
            return Poll::Ready(Some(Err("the answer took too long".into())));
        }
        let next = Pin::new(&mut self.body).poll_next(cx);
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            self.bytes += bytes.len() as u64;
        }
        next
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        if let Some(expiry) = &self.expiry {
            expiry.abort();
        }
        let Attempt { gateway, course } = &mut self.attempt;
        course.answered(gateway, self.code, self.bytes);
    }
}

/// The longest time of a request: what the client asks for, if that is less than what every request gets.
pub(super) fn longest(asked: Option<Duration>) -> Duration {
    asked.map_or(limits::REQUEST_TIMEOUT, |asked| asked.min(limits::REQUEST_TIMEOUT))
}
