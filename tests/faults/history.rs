//! What clients did and saw: the only input of the checker.
//!
//! Every operation has the time at which it was sent and, unless its answer never came, the time at which it was
//! answered: microseconds of one monotonic clock. No value is written twice; rivals may ask for the same one, of whom
//! one at most gets it.

use std::fmt;

/// Microseconds since the recording began.
pub type Micros = u64;

/// A `resourceVersion`.
pub type Revision = u64;

/// A table under test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table {
    pub name: &'static str,
    /// Whether a PUT that names the uid of an absent object is answered with 409, because PUT may create this kind.
    pub is_created_by_put: bool,
    /// Whether an object is marked before it is deleted, which is a change of its own.
    pub marks_deletions: bool,
}

impl Table {
    pub const CONFIG_MAPS: Table = Table::plain("ConfigMaps");
    pub const LEASES: Table = Table { is_created_by_put: true, ..Table::plain("Leases") };
    pub const PODS: Table = Table { marks_deletions: true, ..Table::plain("Pods") };
    pub const EVENTS: Table = Table { is_created_by_put: true, ..Table::plain("Events") };
    /// A custom type.
    pub const WIDGETS: Table = Table::plain("Widgets");
    pub const ALL: [Table; 5] = [Table::CONFIG_MAPS, Table::LEASES, Table::PODS, Table::EVENTS, Table::WIDGETS];

    /// A table without peculiarities.
    pub const fn plain(name: &'static str) -> Table {
        Table { name, is_created_by_put: false, marks_deletions: false }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An object's place.
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

/// What a list or a watch is about.
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

/// When an operation was under way.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub invoked: Micros,
    pub returned: Micros,
}

/// What a write asks for.
#[derive(Debug, Clone)]
pub enum Intent {
    Create {
        value: String,
    },
    /// Replaces the object that has this revision and uid.
    Update {
        value: String,
        expected: Revision,
    },
    /// Deletes the object, if it has this revision or whatever it has.
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

/// What became of a write.
#[derive(Debug, Clone)]
pub enum WriteOutcome {
    /// Acknowledged, with the object as it is now.
    Put(Seen),
    /// Acknowledged: the object with this uid is gone.
    Deleted { uid: String },
    /// 409: there is such an object.
    AlreadyExists,
    /// 409: it is not what was expected.
    Conflict,
    /// 404.
    NotFound,
    /// An answer that says that it did not happen and never will, and nothing of why.
    NotDone,
    /// No answer, or one that does not say: the write happened, will happen, or will not.
    Unknown,
    /// An answer that no such write should get.
    Unexpected(String),
}

#[derive(Debug, Clone)]
pub struct Write {
    pub key: Key,
    pub intent: Intent,
    /// `returned` means nothing when the outcome is unknown.
    pub at: Interval,
    pub outcome: WriteOutcome,
}

/// A read that was answered.
#[derive(Debug, Clone)]
pub struct Get {
    pub key: Key,
    pub at: Interval,
    /// Asked for the most recent state, not for any.
    pub is_recent: bool,
    /// `None`: 404.
    pub found: Option<Seen>,
}

/// A list that was answered, with all its pages.
#[derive(Debug, Clone)]
pub struct List {
    pub scope: Scope,
    /// From when its first page was asked for until the last one came.
    pub at: Interval,
    pub is_recent: bool,
    /// Of every page, in order.
    pub revisions: Vec<Revision>,
    pub items: Vec<(Key, Seen)>,
    /// Read from some member once all was over.
    pub is_final: bool,
}

/// A list that could not go on: the page behind one that was sent was answered with 410.
#[derive(Debug, Clone)]
pub struct RefusedPage {
    pub scope: Scope,
    pub revision: Revision,
    /// When the page before came, and when the refused one was asked for.
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
        /// It ends the initial events.
        ends_initial: bool,
    },
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// After a revision, which the stream was brought to at some time.
    After { revision: Revision, delivered: Micros },
    /// With the present objects.
    InitialEvents,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection or the watch ended.
    Closed,
    /// 410, at once or as an event.
    Expired,
}

/// One connection of a stream.
#[derive(Debug, Clone)]
pub struct Session {
    pub member: usize,
    pub start: Start,
    pub invoked: Micros,
    /// When it was told anything last.
    pub told_at: Micros,
    pub deliveries: Vec<Delivery>,
    pub end: End,
}

/// A watcher that goes on where it was, on whichever member.
#[derive(Debug, Clone)]
pub struct Stream {
    pub scope: Scope,
    pub sessions: Vec<Session>,
    /// It was told of the last write of all.
    pub is_caught_up: bool,
}

/// All of it.
#[derive(Debug, Default, Clone)]
pub struct History {
    pub writes: Vec<Write>,
    pub gets: Vec<Get>,
    pub lists: Vec<List>,
    pub refused_pages: Vec<RefusedPage>,
    pub streams: Vec<Stream>,
    /// How long members keep changes for watchers.
    pub window: Micros,
}
