//! Short histories for the checker's tests.

use super::history::{
    Delivery, End, EventKind, Get, History, Intent, Interval, Key, List, Micros, Revision, Scope, Seen, Session, Start,
    Stream, Table, Write, WriteOutcome,
};

pub const WINDOW: Micros = 1_000;

pub fn key(name: &str) -> Key {
    Key { table: Table::CONFIG_MAPS, namespace: "x".to_owned(), name: name.to_owned() }
}

pub fn seen(revision: Revision, uid: &str, value: &str) -> Seen {
    Seen { revision, uid: uid.to_owned(), value: value.to_owned() }
}

pub fn scope() -> Scope {
    Scope { table: Table::CONFIG_MAPS, namespace: None }
}

fn at((invoked, returned): (Micros, Micros)) -> Interval {
    Interval { invoked, returned }
}

pub fn write(name: &str, time: (Micros, Micros), intent: Intent, outcome: WriteOutcome) -> Write {
    Write { key: key(name), intent, at: at(time), outcome }
}

pub fn create(name: &str, time: (Micros, Micros), value: &str, outcome: WriteOutcome) -> Write {
    write(name, time, Intent::Create { value: value.to_owned() }, outcome)
}

pub fn update(name: &str, time: (Micros, Micros), expected: Revision, value: &str, outcome: WriteOutcome) -> Write {
    write(name, time, Intent::Update { value: value.to_owned(), expected }, outcome)
}

pub fn delete(name: &str, time: (Micros, Micros), expected: Option<Revision>, outcome: WriteOutcome) -> Write {
    write(name, time, Intent::Delete { expected }, outcome)
}

pub fn deleted(uid: &str) -> WriteOutcome {
    WriteOutcome::Deleted { uid: uid.to_owned() }
}

pub fn get(name: &str, time: (Micros, Micros), found: Option<Seen>) -> Get {
    Get { key: key(name), at: at(time), is_recent: true, found }
}

pub fn list(time: (Micros, Micros), revision: Revision, items: &[(&str, Seen)]) -> List {
    let items = items.iter().map(|(name, seen)| (key(name), seen.clone())).collect();
    List { scope: scope(), at: at(time), is_recent: true, revisions: vec![revision], items, is_final: false }
}

pub fn event(kind: EventKind, name: &str, seen: Seen, at: Micros) -> Delivery {
    Delivery::Event { kind, key: key(name), seen, at }
}

pub fn bookmark(revision: Revision) -> Delivery {
    Delivery::Bookmark { revision, ends_initial: false }
}

/// Returns a history without violations: `a` is created and updated, `b` is created and deleted, and clients read, list
/// and watch both.
pub fn healthy() -> History {
    let a = || seen(110, "u1", "v2");
    let first = Session {
        member: 0,
        start: Start::After { revision: 90, delivered: 5 },
        invoked: 6,
        told_at: 0,
        deliveries: vec![
            event(EventKind::Added, "a", seen(100, "u1", "v1"), 25),
            event(EventKind::Modified, "a", a(), 45),
        ],
        end: End::Closed,
    };
    let second = Session {
        member: 1,
        start: Start::After { revision: 110, delivered: 45 },
        invoked: 46,
        told_at: 0,
        deliveries: vec![
            event(EventKind::Added, "b", seen(120, "u2", "v3"), 65),
            event(EventKind::Deleted, "b", seen(130, "u2", "v3"), 85),
            bookmark(140),
        ],
        end: End::Closed,
    };
    let initial = Session {
        member: 2,
        start: Start::InitialEvents,
        invoked: 100,
        told_at: 0,
        deliveries: vec![
            event(EventKind::Added, "a", a(), 101),
            Delivery::Bookmark { revision: 140, ends_initial: true },
        ],
        end: End::Closed,
    };
    let stream = |sessions| Stream { scope: scope(), sessions, is_caught_up: true };
    History {
        writes: vec![
            create("a", (10, 20), "v1", WriteOutcome::Put(seen(100, "u1", "v1"))),
            update("a", (30, 40), 100, "v2", WriteOutcome::Put(a())),
            create("b", (50, 60), "v3", WriteOutcome::Put(seen(120, "u2", "v3"))),
            delete("b", (70, 80), Some(120), deleted("u2")),
            update("a", (71, 72), 100, "v4", WriteOutcome::Conflict),
            create("c", (81, 82), "v5", WriteOutcome::Unknown),
        ],
        gets: vec![get("a", (90, 95), Some(a())), get("b", (90, 95), None)],
        lists: vec![
            list((100, 110), 135, &[("a", a())]),
            List { is_final: true, ..list((200, 210), 140, &[("a", a())]) },
        ],
        refused_pages: Vec::new(),
        streams: vec![stream(vec![first, second]), stream(vec![initial])],
        window: WINDOW,
    }
}
