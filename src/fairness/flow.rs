//! The requests of one FlowSchema, which take the seats of its level.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::header::HeaderValue;
use compact_str::CompactString;

use super::counts::Counts;
use super::level::Level;
use super::pool::{Pool, Seat, Taken};
use super::waiting::{Waiter, Waiting};
use crate::wall_clock;

/// The property of requests that distinguishes the flows of a FlowSchema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinguisher {
    /// All its requests are one flow.
    Nothing,
    /// The requests of each user are a flow.
    User,
    /// The requests for each namespace are a flow.
    Namespace,
}

/// The reason why a request got no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its queue was full, or too many requests waited in the server.
    QueueFull,
    /// Requests of its level do not wait.
    ConcurrencyLimit,
    /// It waited for too long.
    TimeOut,
    /// Its client went away, or the server stops.
    Cancelled,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::ConcurrencyLimit, Self::TimeOut, Self::Cancelled];

    /// Returns its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::TimeOut => "time-out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The answer to a request for a seat.
#[derive(Debug)]
pub enum Entered {
    /// The request has a seat.
    Seated(Seat),
    /// The request waits.
    Waits(Box<Waiting>),
    /// The request gets no seat.
    Refused,
}

/// The requests of one FlowSchema.
#[derive(Debug)]
pub struct Flow {
    /// The name of the FlowSchema.
    pub schema: CompactString,
    /// The uid of the FlowSchema. Empty if the FlowSchema has no object.
    pub schema_uid: HeaderValue,
    /// The uid of its level's object. Empty if there is no object.
    pub level_uid: HeaderValue,
    pub(super) distinguisher: Distinguisher,
    /// Its level.
    pub level: Arc<Level>,
    pub(super) counts: Arc<Counts>,
    pub(super) pool: Arc<Pool>,
    /// Random: clients must not predict which flows share a queue.
    pub(super) hasher: std::hash::RandomState,
}

impl Flow {
    /// Takes a seat for a request, or lets it wait.
    pub fn enter(self: &Arc<Self>, user: &str, namespace: &str) -> Entered {
        if self.level.take_at_once() {
            self.counts.seated_at_once(self.level.is_exempt);
            return Entered::Seated(Seat::AT_ONCE);
        }
        self.enter_or_wait(match self.distinguisher {
            Distinguisher::Nothing => "",
            Distinguisher::User => user,
            Distinguisher::Namespace => namespace,
        })
    }

    #[cold]
    fn enter_or_wait(self: &Arc<Self>, distinguisher: &str) -> Entered {
        let hash = self.hasher.hash_one((self.schema.as_str(), distinguisher));
        let mut receiver = None;
        let waiter = || {
            let (waiter, seat) = Waiter::new(&self.schema, distinguisher, wall_clock::timestamp());
            receiver = Some(seat);
            waiter
        };
        let refused = match (self.pool.enter(&self.level, hash, waiter), receiver) {
            (Taken::Seat(seat), _) => {
                self.counts.seated_at_once(self.level.is_exempt);
                return Entered::Seated(seat);
            }
            (Taken::Queued(position), Some(seat)) => {
                self.counts.waits();
                let (flow, since) = (Arc::clone(self), Instant::now());
                return Entered::Waits(Box::new(Waiting { flow, position, seat, since, is_over: false }));
            }
            (Taken::ConcurrencyLimit, _) => Reason::ConcurrencyLimit,
            (Taken::QueueFull | Taken::Queued(_), _) => Reason::QueueFull,
        };
        self.counts.refused(refused);
        Entered::Refused
    }

    /// Gives back the seat of a request that held it for `took`. `is_watch` says that the request was a watch, which
    /// holds a seat only while it begins.
    pub fn leave(&self, seat: Seat, took: Duration, is_watch: bool) {
        self.counts.left(took, is_watch);
        self.pool.leave(&self.level, seat, took);
    }

    /// Records that a client is refused, and returns after how many seconds it should try again.
    pub fn retry_after(&self, uptime: Duration) -> u64 {
        self.level.retry_after.lock().refused(uptime.as_secs())
    }
}
