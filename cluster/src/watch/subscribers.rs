//! The subscriptions of a table, found by their interests.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll};

use compact_str::CompactString;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use super::{Interest, notify};
use crate::limits::SUBSCRIBERS_EXAMINED_MAX;
use crate::{Change, Revision};

/// The interest of one subscription, and where its unread changes are.
pub(crate) struct Signal {
    interest: Interest,
    /// The unread changes that concern the subscription lie between these two revisions, both included.
    pending: Mutex<Option<(Revision, Revision)>>,
    /// The task that reads the subscription.
    reader: AtomicWaker,
}

impl Signal {
    pub(crate) fn new(interest: Interest, pending: Option<(Revision, Revision)>) -> Signal {
        Signal { interest, pending: Mutex::new(pending), reader: AtomicWaker::new() }
    }

    pub(crate) fn interest(&self) -> &Interest {
        &self.interest
    }

    pub(crate) fn pending(&self) -> Option<(Revision, Revision)> {
        *self.pending.lock()
    }

    /// Marks everything up to `through` as read.
    pub(crate) fn advance(&self, through: Revision) {
        let mut pending = self.pending.lock();
        *pending = match *pending {
            Some((first, last)) if last > through => Some((first.max(through.next()), last)),
            _ => None,
        };
    }

    /// Returns ready when there are unread changes; otherwise wakes the task once there are.
    pub(crate) fn poll_pending(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.pending().is_none() {
            self.reader.register(cx.waker());
            if self.pending().is_none() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Adds unread changes, and wakes the subscriber when it had none.
    pub(crate) fn mark(&self, first: Revision, last: Revision) {
        let mut pending = self.pending.lock();
        match &mut *pending {
            Some((earliest, latest)) => {
                *earliest = (*earliest).min(first);
                *latest = (*latest).max(last);
            }
            none => {
                *none = Some((first, last));
                drop(pending);
                self.reader.wake();
            }
        }
    }
}

type Bucket = BTreeMap<u64, Arc<Signal>>;

/// Signals by the most selective part of their interest.
#[derive(Default)]
struct Buckets {
    all: Bucket,
    namespaces: HashMap<CompactString, Bucket>,
    names: HashMap<CompactString, Bucket>,
    keys: HashMap<CompactString, Bucket>,
    fields: HashMap<CompactString, HashMap<CompactString, Bucket>>,
    subscribed: u64,
    count: usize,
}

impl Buckets {
    fn insert(&mut self, signal: Arc<Signal>) -> u64 {
        self.subscribed += 1;
        self.count += 1;
        let number = self.subscribed;
        self.bucket(&signal.interest).insert(number, signal);
        number
    }

    fn bucket(&mut self, interest: &Interest) -> &mut Bucket {
        match interest {
            Interest { namespace: Some(namespace), name: Some(name), .. } => {
                self.keys.entry(compact_str::format_compact!("{namespace}/{name}")).or_default()
            }
            Interest { name: Some(name), .. } => self.names.entry(name.clone()).or_default(),
            Interest { field: Some((field, value)), .. } => {
                self.fields.entry(field.clone()).or_default().entry(value.clone()).or_default()
            }
            Interest { namespace: Some(namespace), .. } => self.namespaces.entry(namespace.clone()).or_default(),
            _ => &mut self.all,
        }
    }

    fn remove(&mut self, number: u64, interest: &Interest) {
        let bucket = self.bucket(interest);
        if bucket.remove(&number).is_none() {
            return;
        }
        let empty = bucket.is_empty();
        self.count -= 1;
        if empty {
            self.remove_bucket(interest);
        }
    }

    fn remove_bucket(&mut self, interest: &Interest) {
        match interest {
            Interest { namespace: Some(namespace), name: Some(name), .. } => {
                self.keys.remove(&compact_str::format_compact!("{namespace}/{name}"));
            }
            Interest { name: Some(name), .. } => drop(self.names.remove(name)),
            Interest { field: Some((field, value)), .. } => {
                let Some(values) = self.fields.get_mut(field) else { return };
                values.remove(value);
                if values.is_empty() {
                    self.fields.remove(field);
                }
            }
            Interest { namespace: Some(namespace), .. } => drop(self.namespaces.remove(namespace)),
            _ => {}
        }
    }

    /// Returns all signals, in no particular order.
    fn all(&self) -> impl Iterator<Item = (&u64, &Arc<Signal>)> {
        let values = self.fields.values().flat_map(|values| values.values());
        let named = self.namespaces.values().chain(self.names.values()).chain(self.keys.values());
        std::iter::once(&self.all).chain(named).chain(values).flatten()
    }

    fn wake(&self, change: &Change) {
        let key = change.object().key();
        let ring = |bucket: Option<&Bucket>| {
            let signals = bucket.into_iter().flat_map(|bucket| bucket.values());
            for signal in signals.filter(|signal| signal.interest.concerns(change)) {
                signal.mark(change.revision(), change.revision());
            }
        };
        ring(Some(&self.all));
        ring(key.namespace().and_then(|namespace| self.namespaces.get(namespace)));
        ring(self.names.get(key.name()));
        ring(self.keys.get(key.as_str()));
        for (field, values) in &self.fields {
            let after = change.object().terms().field(field);
            let before = change.previous().and_then(|previous| previous.terms().field(field));
            ring(after.and_then(|value| values.get(value)));
            ring(before.filter(|_| before != after).and_then(|value| values.get(value)));
        }
    }
}

/// A subscriber that has yet to read changes that concern it.
pub struct LaggingSubscriber {
    signal: Arc<Signal>,
    first_unread: Revision,
}

impl LaggingSubscriber {
    /// Returns the filter of the changes that concern it.
    pub fn interest(&self) -> &Interest {
        self.signal.interest()
    }

    /// Returns a lower bound of the revision of the first change that it has not read.
    pub const fn first_unread(&self) -> Revision {
        self.first_unread
    }
}

/// The subscriptions of one table.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<Buckets>);

impl Subscribers {
    pub(crate) fn insert(&self, signal: Arc<Signal>) -> u64 {
        self.0.lock().insert(signal)
    }

    pub(crate) fn remove(&self, number: u64, interest: &Interest) {
        self.0.lock().remove(number, interest);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().count
    }

    /// Returns at most `most` subscribers that have yet to read changes, the one furthest behind first. Examines a
    /// bounded number of subscribers, beginning with the one at `from`, so that several calls with different `from`
    /// examine all.
    pub(crate) fn lagging(&self, from: usize, most: usize) -> Vec<LaggingSubscriber> {
        let mut lagging: Vec<LaggingSubscriber> = {
            let buckets = self.0.lock();
            let from = from.checked_rem(buckets.count).unwrap_or_default();
            let examined = buckets.all().skip(from).chain(buckets.all().take(from)).take(SUBSCRIBERS_EXAMINED_MAX);
            let unread = |signal: &Arc<Signal>| {
                let (first_unread, _) = signal.pending()?;
                Some(LaggingSubscriber { signal: Arc::clone(signal), first_unread })
            };
            examined.filter_map(|(_, signal)| unread(signal)).collect()
        };
        lagging.sort_by_key(|it| it.first_unread);
        lagging.truncate(most);
        lagging
    }

    /// Calls `otherwise` when there are no subscriptions. Returns whether there are any.
    pub(crate) fn unless_any(&self, otherwise: impl FnOnce()) -> bool {
        let buckets = self.0.lock();
        if buckets.count == 0 {
            otherwise();
        }
        buckets.count > 0
    }

    /// Wakes the subscriptions that any of these changes concerns.
    pub(crate) fn wake(&self, changes: &[Arc<Change>]) {
        notify(|| {
            let buckets = self.0.lock();
            changes.iter().for_each(|change| buckets.wake(change));
        });
    }

    /// Wakes all subscriptions, because the changes up to `through` are no longer known one by one.
    pub(crate) fn wake_all(&self, through: Revision) {
        let buckets = self.0.lock();
        // In the order of subscription, as they are woken otherwise.
        let all: BTreeMap<u64, &Arc<Signal>> = buckets.all().map(|(number, signal)| (*number, signal)).collect();
        notify(|| all.into_values().for_each(|signal| signal.mark(Revision::ZERO, through)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subscriber_furthest_behind_comes_first() {
        let subscribers = Subscribers::default();
        let pending = |first: u64| Some((Revision::new(first), Revision::new(90)));
        let named = |name: &str| Interest { name: Some(name.into()), ..Interest::default() };
        for (name, pending) in
            [("current", None), ("late", pending(20)), ("later", pending(10)), ("latest", pending(5))]
        {
            subscribers.insert(Arc::new(Signal::new(named(name), pending)));
        }
        for from in 0..9 {
            let lagging = subscribers.lagging(from, 2);
            let names: Vec<_> = lagging.iter().map(|it| it.interest().name.clone().unwrap_or_default()).collect();
            assert_eq!(names, ["latest", "later"]);
            assert_eq!(lagging[0].first_unread(), Revision::new(5));
        }
        assert!(Subscribers::default().lagging(7, 2).is_empty());
    }
}
