//! The stream of one watch: decides which part comes next, and when the stream ends.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use flotilla_cluster::{Change, Interest, Object, Subscription, Table};
use futures_util::future::LocalBoxFuture;
use tokio::time::{Instant, Sleep};

use super::encode::Encoder;
use super::end::End;
use super::event::{judge, to_convert};
use super::reminder::Reminder;
use super::wake_batch::BatchedWaker;
use super::{Start, decides, lost};
use crate::limits;
use crate::registry::{Listing, OneByOne};
use crate::selector::Selection;
use crate::status::{ApiError, ApiResult};
use crate::turn::Turn;
use crate::unsent::{Pieces, UnsentBytes};

/// The phase of a stream.
enum StreamPhase {
    /// The existing objects are being sent.
    Objects(Box<OneByOne>),
    /// Changes are followed.
    Following(Subscription),
    /// Nothing more is sent.
    Ended,
}

/// One watch.
pub struct Stream {
    table: Arc<Table>,
    interest: Interest,
    selection: Selection,
    encoder: Encoder,
    /// Changes that will be sent once a webhook has converted their objects.
    held: Vec<Arc<Change>>,
    converting: Option<LocalBoxFuture<'static, ApiResult<()>>>,
    phase: StreamPhase,
    failure: Option<ApiError>,
    bookmarks: bool,
    /// Whether a bookmark must mark the end of the initial events.
    tell_end: bool,
    next_bookmark: Instant,
    /// Whether the groups of the table were asked to close a newer revision for the next bookmark.
    freshening: bool,
    ends: Instant,
    /// Sleeps until the next bookmark or the end. Reused, because a watch of many changes waits often.
    alarm: Pin<Box<Sleep>>,
    end: End,
    ending: LocalBoxFuture<'static, ()>,
    /// Records wake-ups by `alarm` and `ending`.
    reminder: Reminder,
    /// The waker that changes use.
    waker: BatchedWaker,
    /// The bytes that are sent next.
    next: Pieces,
    unsent: UnsentBytes,
    turn: Turn,
}

impl Stream {
    pub(super) fn new(
        table: Arc<Table>,
        interest: Interest,
        start: Start,
        encoder: Encoder,
        (listing, lifetime): (&Listing, Duration),
        end: End,
        waker: BatchedWaker,
    ) -> Self {
        let mut failure = None;
        let mut tell_end = false;
        let phase = match start {
            Start::Objects(page) => {
                tell_end = listing.bookmarks;
                StreamPhase::Objects(Box::new(OneByOne::of(page)))
            }
            Start::After(after) => match table.subscribe(interest.clone(), after) {
                Ok(subscription) => StreamPhase::Following(subscription),
                Err(compacted) => {
                    failure = Some(lost(after, compacted));
                    StreamPhase::Ended
                }
            },
            Start::Failed(error) => {
                failure = Some(error);
                StreamPhase::Ended
            }
        };
        let now = Instant::now();
        let ends = now + lifetime;
        let next_bookmark = if listing.bookmarks { bookmark_after(now, ends) } else { ends };
        Self {
            selection: if decides(&interest, &listing.selection) {
                Selection::default()
            } else {
                listing.selection.clone()
            },
            ends,
            next_bookmark,
            freshening: false,
            alarm: Box::pin(tokio::time::sleep_until(ends.min(next_bookmark))),
            ending: Box::pin(end.clone().comes()),
            end,
            reminder: Reminder::new(),
            waker,
            next: Pieces::default(),
            unsent: UnsentBytes::default(),
            turn: Turn::begin(),
            bookmarks: listing.bookmarks,
            table,
            interest,
            encoder,
            held: Vec::new(),
            converting: None,
            phase,
            failure,
            tell_end,
        }
    }

    /// Appends the next events; appends nothing when the stream ends.
    fn poll_events(&mut self, cx: &mut Context<'_>, out: &mut Pieces) -> Poll<ApiResult<()>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        while out.is_empty() {
            if let Some(converting) = &mut self.converting {
                let converted = ready!(converting.as_mut().poll(cx));
                self.converting = None;
                converted?;
                for change in std::mem::take(&mut self.held) {
                    let selects = |object: &Object| self.encoder.selects_converted(&self.selection, object);
                    if let Some((kind, shown)) = judge(&change, &self.selection, selects) {
                        self.encoder.change(&change, kind, &shown, out)?;
                    }
                }
                continue;
            }
            match &self.phase {
                StreamPhase::Ended => break,
                StreamPhase::Objects(_) => ready!(self.poll_objects(cx, out))?,
                StreamPhase::Following(_) => {
                    ready!(self.poll_wake(cx));
                    if !self.follow(out)? {
                        self.phase = StreamPhase::Ended;
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends existing objects. After the last one, begins to follow changes. Is pending when a turn is over before
    /// there is anything to send.
    fn poll_objects(&mut self, cx: &mut Context<'_>, out: &mut Pieces) -> Poll<ApiResult<()>> {
        let StreamPhase::Objects(objects) = &mut self.phase else { return Poll::Ready(Ok(())) };
        let most = UnsentBytes::portion(limits::WATCH_WRITE_BYTES);
        while out.len() < most {
            let next = match objects.poll_next(cx, &mut self.turn) {
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
                Poll::Ready(next) => next?,
            };
            if let Some(object) = next {
                self.encoder.present(&object, out)?;
                continue;
            }
            let revision = objects.page.revision;
            let subscription = self.table.subscribe(self.interest.clone(), revision);
            self.phase = StreamPhase::Following(subscription.map_err(|error| lost(revision, error))?);
            if self.tell_end {
                self.encoder.bookmark(revision, true, out)?;
            }
            break;
        }
        Poll::Ready(Ok(()))
    }

    /// Is ready when there is a change, a bookmark is due, or the stream ends.
    fn poll_wake(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let StreamPhase::Following(subscription) = &mut self.phase else { return Poll::Ready(()) };
        if self.waker.poll(cx, |cx| subscription.poll_changed(cx)).is_ready() {
            return Poll::Ready(());
        }
        let (alarm, ending) = (self.alarm.as_mut(), self.ending.as_mut());
        let mut is_over = false;
        let reminded = self.reminder.poll(cx, |cx| {
            is_over = ending.poll(cx).is_ready();
            if is_over { Poll::Ready(()) } else { alarm.poll(cx) }
        });
        if is_over {
            self.phase = StreamPhase::Ended;
        }
        reminded
    }

    /// Sends changes. Returns false when the watch is over.
    fn follow(&mut self, out: &mut Pieces) -> ApiResult<bool> {
        let StreamPhase::Following(subscription) = &mut self.phase else { return Ok(false) };
        let now = Instant::now();
        if now >= self.ends || self.end.has_come() {
            return Ok(false);
        }
        let most = UnsentBytes::portion(limits::WATCH_WRITE_BYTES);
        let mut changes: Vec<Arc<Change>> = Vec::new();
        while out.len() < most {
            changes.clear();
            let after = subscription.position();
            let read = subscription.read(limits::WATCH_BATCH_EVENTS, &mut changes);
            let more = read.map_err(|error| lost(after, error))?;
            if self.encoder.is_converted() && !changes.is_empty() {
                let (mut bytes, mut objects) = (0, Vec::new());
                for (at, change) in changes.iter().enumerate() {
                    let concerned = to_convert(change, &self.selection);
                    if !concerned.is_empty() {
                        bytes += concerned.iter().map(|object| object.bytes().len()).sum::<usize>();
                        objects.extend(concerned);
                        self.held.push(Arc::clone(change));
                    }
                    if bytes >= most && at + 1 < changes.len() {
                        subscription.give_back(change.revision());
                        break;
                    }
                }
                self.converting = self.encoder.convert_ahead(objects);
                return Ok(true);
            }
            for (at, change) in changes.iter().enumerate() {
                if let Some((kind, shown)) = judge(change, &self.selection, |_| true) {
                    self.encoder.change(change, kind, &shown, out)?;
                }
                if out.len() >= most && at + 1 < changes.len() {
                    // The client must take these events first; the log keeps the later changes.
                    subscription.give_back(change.revision());
                    break;
                }
            }
            if !more {
                break;
            }
        }
        if self.bookmarks && now >= self.next_bookmark {
            // If nothing is written, the closed revision is old, so groups are first asked to close a newer one.
            self.freshening = !self.freshening && self.table.freshen();
            if !self.freshening {
                self.encoder.bookmark(subscription.position(), false, out)?;
            }
            self.next_bookmark = match self.freshening {
                true => now + limits::BOOKMARK_FRESHENING,
                false => bookmark_after(now, self.ends),
            };
            self.alarm.as_mut().reset(self.ends.min(self.next_bookmark));
            self.reminder.renew();
        }
        Ok(true)
    }
}

impl futures_util::Stream for Stream {
    type Item = ApiResult<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let watch = self.get_mut();
        if let Some(piece) = watch.next.take() {
            return Poll::Ready(Some(Ok(piece)));
        }
        watch.unsent.hold(0);
        let mut out = std::mem::take(&mut watch.next);
        let polled = watch.poll_events(cx, &mut out);
        if let Err(error) = ready!(polled) {
            watch.encoder.error(&error, &mut out);
            watch.phase = StreamPhase::Ended;
        } else if watch.encoder.asks_for_lists() {
            // An event holds one object and cannot have a list form, so the watch ends once there is an event.
            out.clear();
        }
        watch.unsent.hold(out.own());
        watch.next = out;
        Poll::Ready(watch.next.take().map(Ok))
    }
}

/// Returns when the next bookmark is due: after the usual interval, or earlier if the watch ends soon.
fn bookmark_after(now: Instant, ends: Instant) -> Instant {
    let last = ends.duration_since(now).saturating_sub(limits::BOOKMARK_BEFORE_END);
    let is_last = !last.is_zero() && last < limits::BOOKMARK_INTERVAL;
    now + if is_last { last } else { limits::BOOKMARK_INTERVAL }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
