//! The history of a run: the requests and answers of its clients. It is the only input of the checker.
//!
//! Every operation has the time at which it was sent and, if an answer came, the time of the answer, in microseconds of
//! one monotonic clock. No value is written twice, with one exception: two writers may send the same value for the same
//! expected revision, and at most one of them succeeds.

use std::fmt;

/// Microseconds since the recording began.
pub type Micros = u64;

/// A `resourceVersion`.
pub type Revision = u64;

/// A table that the clients use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table {
    pub name: &'static str,
    /// Whether PUT may create objects of this kind. If so, a PUT that names the uid of an absent object gets 409.
    pub is_created_by_put: bool,
    /// Whether a deletion first marks the object. The mark has a revision of its own.
    pub marks_deletions: bool,
}

impl Table {
    pub const CONFIG_MAPS: Table = Table::plain("ConfigMaps");
    pub const LEASES: Table = Table { is_created_by_put: true, ..Table::plain("Leases") };
    pub const PODS: Table = Table { marks_deletions: true, ..Table::plain("Pods") };
    pub const EVENTS: Table = Table { is_created_by_put: true, ..Table::plain("Events") };
    /// A table of custom objects.
    pub const WIDGETS: Table = Table::plain("Widgets");
    pub const ALL: [Table; 5] = [Table::CONFIG_MAPS, Table::LEASES, Table::PODS, Table::EVENTS, Table::WIDGETS];

    /// Returns a table without these peculiarities.
    pub const fn plain(name: &'static str) -> Table {
        Table { name, is_created_by_put: false, marks_deletions: false }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An object's table, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub table: Table,
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} {}/{}", self.table, self.namespace, self.name)
    }
}

/// The objects that a list or watch covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub table: Table,
    /// `None`: all namespaces.
    pub namespace: Option<String>,
}

impl Scope {
    pub fn holds(&self, key: &Key) -> bool {
        self.table == key.table && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

/// An object as a client saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub revision: Revision,
    pub uid: String,
    pub value: String,
}

/// When an operation was in progress.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub invoked: Micros,
    pub returned: Micros,
}

/// The intended effect of a write.
#[derive(Debug, Clone)]
pub enum Intent {
    Create {
        value: String,
    },
    /// Replaces the object if it has this revision and uid.
    Update {
        value: String,
        expected: Revision,
    },
    /// Deletes the object. With `expected`, only if it has this revision.
    Delete {
        expected: Option<Revision>,
    },
}

impl Intent {
    pub fn value(&self) -> Option<&str> {
        match self {
            Intent::Create { value } | Intent::Update { value, .. } => Some(value),
            Intent::Delete { .. } => None,
        }
    }
}

/// The answer to a write.
#[derive(Debug, Clone)]
pub enum WriteOutcome {
    /// Success, with the object after the write.
    Put(Seen),
    /// Success: the object with this uid is gone.
    Deleted { uid: String },
    /// 409: the object already exists.
    AlreadyExists,
    /// 409: the object does not have the expected revision or uid.
    Conflict,
    /// 404.
    NotFound,
    /// An answer that guarantees that the write did not take effect and never will, without a reason that can be
    /// checked.
    NotDone,
    /// No answer, or one that does not tell whether the write took effect. It may still take effect later.
    Unknown,
    /// An answer that this write should never get.
    Unexpected(String),
}

#[derive(Debug, Clone)]
pub struct Write {
    pub key: Key,
    pub intent: Intent,
    /// Only its beginning has a meaning if the outcome is unknown.
    pub at: Interval,
    pub outcome: WriteOutcome,
}

/// A read that was answered.
#[derive(Debug, Clone)]
pub struct Get {
    pub key: Key,
    pub at: Interval,
    /// Whether the client requested the most recent state. Otherwise it accepted any state.
    pub is_recent: bool,
    /// `None` for a 404.
    pub found: Option<Seen>,
}

/// A list of which every page was answered.
#[derive(Debug, Clone)]
pub struct List {
    pub scope: Scope,
    /// From the request for the first page until the answer with the last one.
    pub at: Interval,
    pub is_recent: bool,
    /// The revision of each page, in order.
    pub revisions: Vec<Revision>,
    pub items: Vec<(Key, Seen)>,
    /// Whether the client chose the member for this list, and requested it after all other operations had ended.
    pub is_final: bool,
}

/// A list that could not be continued: the request for a later page got 410.
#[derive(Debug, Clone)]
pub struct RefusedPage {
    pub scope: Scope,
    pub revision: Revision,
    /// When the previous page arrived, and when the refused one was requested.
    pub delivered: Micros,
    pub invoked: Micros,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

#[derive(Debug, Clone)]
pub enum Delivery {
    Event {
        kind: EventKind,
        key: Key,
        seen: Seen,
        at: Micros,
    },
    Bookmark {
        revision: Revision,
        /// Whether it marks the end of the initial events.
        ends_initial: bool,
    },
}

/// Where a watch session begins.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// After a revision, which the stream had received at this time.
    After { revision: Revision, delivered: Micros },
    /// With the existing objects as initial events.
    InitialEvents,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection or the watch ended.
    Closed,
    /// The watch got 410, as its answer or as an event.
    Expired,
}

/// One connection of a stream.
#[derive(Debug, Clone)]
pub struct Session {
    pub member: usize,
    pub start: Start,
    pub invoked: Micros,
    /// When the last event or bookmark arrived.
    pub told_at: Micros,
    pub deliveries: Vec<Delivery>,
    pub end: End,
}

/// A watcher that resumes where it was, on any member.
#[derive(Debug, Clone)]
pub struct Stream {
    pub scope: Scope,
    pub sessions: Vec<Session>,
    /// Whether the stream received the last write of the run.
    pub is_caught_up: bool,
}

/// Everything that the clients recorded.
#[derive(Debug, Default, Clone)]
pub struct History {
    pub writes: Vec<Write>,
    pub gets: Vec<Get>,
    pub lists: Vec<List>,
    pub refused_pages: Vec<RefusedPage>,
    pub streams: Vec<Stream>,
    /// How long members keep changes for watches.
    pub window: Micros,
}
