//! A request and its answer, from the first byte to the last: the seat that they take, and the metrics that count them.

mod origin;
mod streamed;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use actix_web::body::{BodySize, BoxBody, MessageBody as _};
use actix_web::{HttpResponse, web};
use metrics::Gauge;

use self::origin::Origin;
use self::streamed::{BodySource, Sent, Streamed};
use super::Gateway;
use super::head::Head;
use super::seats::Lane;
use crate::answer;
use crate::audit::Audited;
use crate::fairness::{Flow, Seat};
use crate::limits;
use crate::metrics::route::Route;
use crate::served::Served;
use crate::tasks::{self, Task};
use crate::transport::Outlet;

/// The findings of a request's stages so far. Metrics observe requests through its methods.
pub(super) struct Progress {
    /// When the request arrived.
    pub(super) began: Instant,
    /// When its user was identified, or when it got the seat for which it waited.
    pub(super) identified: Instant,
    /// When the server gives the request up. `None` if the client decides how long it lasts.
    pub(super) ends: Option<Instant>,
    /// The route under which it is counted. `None` until that is known, and for requests that are not counted.
    route: Option<Route>,
    /// Whether the server refused it or gave it up. It is then counted as terminated, and in no other way.
    is_terminated: bool,
    /// The audit events of the request. `None` if it is not recorded.
    pub(super) audited: Option<Box<Audited>>,
    lane: Option<Lane>,
    open: Option<Gauge>,
    /// The flow to which it belongs. `None` until that is known, and for requests that belong to none.
    pub(super) flow: Option<Arc<Flow>>,
    /// Its seat in the level of that flow.
    pub(super) seat: Option<Seat>,
}

impl Progress {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            identified: now,
            ends: None,
            route: None,
            is_terminated: false,
            audited: None,
            lane: None,
            open: None,
            flow: None,
            seat: None,
        }
    }

    /// Records whether authentication found the user, whose name is `user`.
    pub(super) fn identified(&mut self, gateway: &Gateway, user: Option<&str>) {
        self.identified = Instant::now();
        let (access, took) = (&gateway.registry.tables.metrics.access, self.identified - self.began);
        match user {
            Some(name) => access.authenticated(name, took),
            None => access.unknown(took),
        }
    }

    /// Records whether the user may do what the request asks for.
    pub(super) fn authorized(&mut self, gateway: &Gateway, allowed: bool) {
        let took = self.identified.elapsed();
        self.audited.iter_mut().for_each(|audited| audited.took.authorization = took);
        gateway.registry.tables.metrics.access.decided(allowed, took);
    }

    /// Takes a seat among the requests in progress. Returns false if none is free.
    #[must_use]
    pub(super) fn take_seat(&mut self, gateway: &Gateway, lane: Lane) -> bool {
        // A request with a seat in a priority level is bounded by that level.
        let is_bounded = self.seat.is_some() && matches!(lane, Lane::ReadOnly | Lane::Mutating);
        if is_bounded {
            gateway.seats.join(lane);
        }
        let entered = is_bounded || gateway.seats.enter(lane);
        if entered {
            self.lane = Some(lane);
        }
        entered
    }

    /// Exchanges the seat of a bounded request for that of a long-running one. Returns false if no seat for
    /// long-running requests is free.
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
        self.leave_level(false);
    }

    /// Gives the seat in the level back. `is_watch` says that the request has only begun a watch.
    fn leave_level(&mut self, is_watch: bool) {
        if let (Some(flow), Some(seat)) = (&self.flow, self.seat.take()) {
            flow.leave(seat, self.identified.elapsed(), is_watch);
        }
    }

    /// Returns the number of seconds after which a client without a seat should try again.
    pub(super) fn retry_after(&self, gateway: &Gateway) -> u64 {
        self.flow.as_ref().map_or(1, |flow| flow.retry_after(gateway.began.elapsed()))
    }

    /// Records the route under which the request is counted once it ends. A long-running request is counted from now
    /// on.
    pub(super) fn counts_as(&mut self, gateway: &Gateway, route: Route) {
        if self.lane == Some(Lane::Watch) {
            let metrics = &gateway.registry.tables.metrics;
            let open = metrics.requests.long_running(metrics.meter(), &route);
            open.increment(1.0);
            self.open = Some(open);
        }
        self.route = Some(route);
    }

    /// Records that the server refused the request or gave it up, to protect itself.
    pub(super) fn terminated(&mut self, gateway: &Gateway, code: u16) {
        if let Some(route) = &self.route {
            let metrics = &gateway.registry.tables.metrics;
            metrics.requests.terminated(metrics.meter(), route, code);
            self.is_terminated = true;
        }
    }

    /// Records that the time of the request is over, and returns the answer that says so.
    pub(super) fn give_up(&mut self, gateway: &Gateway) -> HttpResponse {
        self.terminated(gateway, 504);
        answer::timed_out(gateway.registry.tables.store.may_have_others())
    }

    /// Returns the resource of the request's objects.
    fn served(&self) -> Option<&Arc<Served>> {
        match &self.route {
            Some(Route::Resource { served, .. }) => Some(served),
            _ => None,
        }
    }

    /// Returns whether the request can be one of the slowest. Watches and connections cannot, and cost nothing here.
    fn has_duration(&self) -> bool {
        self.route.as_ref().is_some_and(|route| !route.lasts())
    }

    fn answered(&mut self, gateway: &Gateway, code: u16, bytes: u64, origin: impl FnOnce() -> Origin) {
        let has_duration = self.has_duration();
        let Some(route) = self.route.take() else { return };
        let (metrics, took) = (&gateway.registry.tables.metrics, self.began.elapsed());
        if !self.is_terminated {
            metrics.requests.answered(metrics.meter(), &route, code, took, bytes);
        }
        if has_duration {
            metrics.slowest.ended(self.began + took, took, || origin().slow(&route, took, code, bytes));
        }
    }
}

/// A request that is being answered. Dropping this frees its seat.
pub(super) struct Exchange {
    pub(super) gateway: web::Data<Gateway>,
    pub(super) progress: Progress,
}

impl Exchange {
    pub(super) fn begin(gateway: web::Data<Gateway>) -> Self {
        Self { gateway, progress: Progress::begin() }
    }

    /// Ends with an answer. If the body is large or not yet made, the exchange ends when the connection has taken the
    /// last of it.
    pub(super) fn answer(mut self, response: HttpResponse, outlet: Outlet, head: &Head<'_>) -> HttpResponse {
        let code = response.status().as_u16();
        let size = response.body().size();
        if self.progress.lane == Some(Lane::Watch) {
            self.progress.leave_level(true);
        }
        match size {
            BodySize::None => self.progress.answered(&self.gateway, code, 0, || Origin::of(head)),
            BodySize::Sized(bytes) if bytes <= limits::LIST_CHUNK_BYTES as u64 => {
                self.progress.answered(&self.gateway, code, bytes, || Origin::of(head));
            }
            BodySize::Sized(_) | BodySize::Stream => {
                let origin = self.progress.has_duration().then(|| Box::new(Origin::of(head)));
                let sent = Sent { code, size, bytes: 0, origin };
                return response.map_body(|_, body| BoxBody::new(Streamed::of(self, sent, body, outlet, head.method)));
            }
        }
        response
    }

    /// Bounds the time in which a client reads its answer. At `ends` this frees the seat and drops the rest of the
    /// body; [`limits::READER_STALL`] later it closes the connection.
    fn expire(&mut self, ends: Instant, body: Rc<RefCell<BodySource>>, outlet: Outlet) -> Task {
        let mut seat = Self::begin(self.gateway.clone());
        seat.progress.lane = self.progress.lane.take();
        seat.progress.seat = self.progress.seat.take();
        seat.progress.flow.clone_from(&self.progress.flow);
        seat.progress.identified = self.progress.identified;
        tasks::owned("slow reader", async move {
            tokio::time::sleep_until(ends.into()).await;
            drop(seat);
            body.replace(BodySource::Over);
            // If the client reads on before that, the body ends with an error, and this task is aborted.
            tokio::time::sleep(limits::READER_STALL).await;
            outlet.close();
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(mut audited) = self.progress.audited.take() {
            audited.end();
        }
        self.progress.leave_seat(&self.gateway);
        if let Some(open) = &self.progress.open {
            open.decrement(1.0);
        }
    }
}
