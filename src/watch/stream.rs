//! The stream itself: what to send next, and when to end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flotilla_cluster::{Change, Interest, Revision, SnapshotError, Subscription, Table};
use rand::Rng;
use tokio::time::Instant;

use super::encode::Encoder;
use super::event::judge;
use super::{Start, lost};
use crate::boot::Drain;
use crate::limits;
use crate::registry::selector::Selection;
use crate::registry::{Listing, Page};
use crate::status::{ApiError, ApiResult};

/// Where a stream is.
enum Phase {
    /// The present objects are being sent.
    Objects(Box<Page>),
    /// Changes are followed.
    Following(Subscription),
    /// Nothing more comes.
    Ended,
}

/// One watch.
pub struct Stream {
    table: Arc<Table>,
    interest: Interest,
    selection: Selection,
    encoder: Encoder,
    phase: Phase,
    failure: Option<ApiError>,
    /// Changes up to here are of no interest: the client asked for what comes after a revision yet to come.
    beyond: Revision,
    bookmarks: bool,
    /// Whether the end of the present objects is to be told.
    tell_end: bool,
    next_bookmark: Instant,
    ends: Instant,
    drain: Drain,
}

impl Stream {
    pub(super) fn new(
        table: Arc<Table>,
        interest: Interest,
        start: Start,
        encoder: Encoder,
        listing: &Listing,
        drain: Drain,
    ) -> Self {
        let mut failure = None;
        let mut beyond = Revision::ZERO;
        let mut tell_end = false;
        let phase = match start {
            Start::Objects(page) => {
                tell_end = listing.bookmarks;
                Phase::Objects(Box::new(page))
            }
            Start::After(after) => match table.subscribe(interest.clone(), after) {
                Ok(subscription) => Phase::Following(subscription),
                Err(SnapshotError::Future(future)) => {
                    beyond = after;
                    match table.subscribe(interest.clone(), future.current) {
                        Ok(subscription) => Phase::Following(subscription),
                        Err(error) => {
                            failure = Some(lost(after, &error));
                            Phase::Ended
                        }
                    }
                }
                Err(error) => {
                    failure = Some(lost(after, &error));
                    Phase::Ended
                }
            },
            Start::Failed(error) => {
                failure = Some(error);
                Phase::Ended
            }
        };
        let now = Instant::now();
        Self {
            selection: listing.selection.clone(),
            ends: now + duration(listing.timeout_seconds),
            next_bookmark: now + limits::BOOKMARK_INTERVAL,
            bookmarks: listing.bookmarks,
            table,
            interest,
            encoder,
            phase,
            failure,
            beyond,
            tell_end,
            drain,
        }
    }

    /// The stream as an HTTP body.
    pub fn into_stream(self) -> impl futures_util::Stream<Item = Result<Bytes, ApiError>> {
        futures_util::stream::unfold(self, |mut watch| async move {
            let mut out = Vec::new();
            if let Err(error) = watch.next(&mut out).await {
                watch.encoder.error(&error, &mut out);
                watch.phase = Phase::Ended;
            } else if watch.encoder.asks_for_lists() {
                // Events are about one object each: who wants lists of them gets none, once there is one.
                out.clear();
            }
            (!out.is_empty()).then(|| (Ok(Bytes::from(out)), watch))
        })
    }

    /// Appends what comes next; nothing when the stream ends.
    async fn next(&mut self, out: &mut Vec<u8>) -> ApiResult<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        while out.is_empty() {
            match &mut self.phase {
                Phase::Ended => return Ok(()),
                Phase::Objects(_) => self.objects(out)?,
                Phase::Following(_) => {
                    if !self.follow(out).await? {
                        self.phase = Phase::Ended;
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends present objects; behind the last one, begins to follow.
    fn objects(&mut self, out: &mut Vec<u8>) -> ApiResult<()> {
        let Phase::Objects(page) = &mut self.phase else { return Ok(()) };
        let mut objects = Vec::new();
        while out.len() < limits::WATCH_WRITE_BYTES {
            let more = page.read(&mut objects)?;
            for object in objects.drain(..) {
                self.encoder.present(&object, out)?;
            }
            if !more {
                let revision = page.revision;
                let subscription = self.table.subscribe(self.interest.clone(), revision);
                self.phase = Phase::Following(subscription.map_err(|error| lost(revision, &error))?);
                if self.tell_end {
                    self.encoder.bookmark(revision, true, out)?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends what changed, waiting for it; false when the watch is over.
    async fn follow(&mut self, out: &mut Vec<u8>) -> ApiResult<bool> {
        let Phase::Following(subscription) = &mut self.phase else { return Ok(false) };
        if !subscription.has_changed() {
            let wake = if self.bookmarks { self.ends.min(self.next_bookmark) } else { self.ends };
            tokio::select! {
                () = subscription.changed() => {}
                () = tokio::time::sleep_until(wake) => {}
                () = self.drain.clone().begun() => return Ok(false),
            }
        }
        let now = Instant::now();
        if now >= self.ends {
            return Ok(false);
        }
        let mut changes: Vec<Arc<Change>> = Vec::new();
        while out.len() < limits::WATCH_WRITE_BYTES {
            changes.clear();
            let after = subscription.position();
            let read = subscription.read(limits::WATCH_BATCH_EVENTS, &mut changes);
            let more = read.map_err(|error| lost(after, &SnapshotError::Compacted(error)))?;
            for change in changes.iter().filter(|change| change.revision() > self.beyond) {
                if let Some((kind, shown)) = judge(change, &self.selection) {
                    self.encoder.change(change, kind, &shown, out)?;
                }
            }
            if !more {
                break;
            }
        }
        if self.bookmarks && now >= self.next_bookmark {
            self.next_bookmark = now + limits::BOOKMARK_INTERVAL;
            self.encoder.bookmark(subscription.position().max(self.beyond), false, out)?;
        }
        Ok(true)
    }
}

/// How long a watch lasts: as asked, or a random time, so that watches do not all end at once.
fn duration(asked: Option<i64>) -> Duration {
    match asked {
        Some(seconds @ 1..) => Duration::from_secs(seconds.unsigned_abs()),
        _ => limits::WATCH_TIMEOUT_MIN.mul_f64(rand::rng().random_range(1.0..2.0)),
    }
}
