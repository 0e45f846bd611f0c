//! Tests of the checker: the right invariant finds each kind of broken promise, and none reports an allowed history.

use super::check;
use super::history::{
    Delivery, End, EventKind, History, Intent, Interval, Key, List, RefusedPage, Scope, Session, Start, Stream, Table,
    Write, WriteOutcome,
};
use super::story::{bookmark, create, delete, deleted, event, get, healthy, list, scope, seen, update};

/// Breaks a healthy history, and checks that this invariant finds the violation.
fn expect(invariant: &str, break_it: impl FnOnce(&mut History)) {
    let mut history = healthy();
    break_it(&mut history);
    let found = check(&history);
    assert!(found.iter().any(|violation| violation.invariant == invariant), "not found by {invariant}: {found:#?}");
}

/// Changes a healthy history, and checks that it is still allowed.
fn allow(change_it: impl FnOnce(&mut History)) {
    let mut history = healthy();
    change_it(&mut history);
    assert_eq!(check(&history), []);
}

/// Returns the events of the second session of the resumed stream.
fn second(history: &mut History) -> &mut Vec<Delivery> {
    &mut history.streams[0].sessions[1].deliveries
}

#[test]
fn a_healthy_history_passes() {
    allow(|_| {});
}

#[test]
fn an_unanswered_write_may_take_effect_at_any_time_later() {
    allow(|history| {
        let late = seen(150, "u3", "v5");
        second(history).push(event(EventKind::Added, "c", late.clone(), 900));
        history.lists.push(list((950, 960), 150, &[("a", seen(110, "u1", "v2")), ("c", late)]));
        history.lists.remove(1);
    });
}

#[test]
fn a_read_during_a_write_may_see_it_or_not() {
    for found in [Some(seen(100, "u1", "v1")), Some(seen(110, "u1", "v2"))] {
        allow(|history| history.gets.push(get("a", (35, 36), found)));
    }
    for found in [Some(seen(120, "u2", "v3")), None] {
        allow(|history| history.gets.push(get("b", (75, 76), found)));
    }
}

#[test]
fn a_cached_read_may_be_old() {
    allow(|history| {
        let mut old = get("a", (90, 95), Some(seen(100, "u1", "v1")));
        old.is_recent = false;
        history.gets.push(old);
    });
}

#[test]
fn an_expired_stream_may_list_again() {
    allow(|history| {
        let old = &mut history.streams[1].sessions;
        let start = Start::After { revision: 10, delivered: 1 };
        old.insert(
            0,
            Session { member: 0, start, invoked: 1_100, told_at: 0, deliveries: Vec::new(), end: End::Expired },
        );
    });
}

#[test]
fn a_put_may_create_a_lease_but_not_with_a_uid() {
    let lease = |outcome| Write {
        key: Key { table: Table::LEASES, namespace: "x".to_owned(), name: "l".to_owned() },
        ..update("l", (90, 91), 80, "v9", outcome)
    };
    allow(|history| history.writes.push(lease(WriteOutcome::Conflict)));
    expect("refusals", |history| history.writes.push(lease(WriteOutcome::NotFound)));
}

/// Adds a pod that is deleted with the expectation `expected`. `marked` is the pod's value after the change that
/// precedes the deletion.
fn delete_pod(history: &mut History, expected: u64, marked: &str) {
    let pod = Key { table: Table::PODS, namespace: "x".to_owned(), name: "p".to_owned() };
    let of_pod = |write: Write| Write { key: pod.clone(), ..write };
    let event = |kind, seen, at| Delivery::Event { kind, key: pod.clone(), seen, at };
    history.writes.push(of_pod(create("p", (310, 320), "v7", WriteOutcome::Put(seen(200, "u5", "v7")))));
    history.writes.push(of_pod(delete("p", (330, 340), Some(expected), deleted("u5"))));
    let deliveries = vec![
        event(EventKind::Added, seen(200, "u5", "v7"), 321),
        event(EventKind::Modified, seen(210, "u5", marked), 341),
        event(EventKind::Deleted, seen(220, "u5", marked), 342),
    ];
    let start = Start::After { revision: 90, delivered: 5 };
    let session = Session { member: 0, start, invoked: 6, told_at: 342, deliveries, end: End::Closed };
    let scope = Scope { table: Table::PODS, namespace: None };
    history.streams.push(Stream { scope, sessions: vec![session], is_caught_up: true });
}

#[test]
fn a_pod_is_marked_before_it_is_deleted() {
    allow(|history| delete_pod(history, 200, "v7"));
    expect("compare_and_set", |history| delete_pod(history, 199, "v7"));
    expect("values", |history| delete_pod(history, 200, "v8"));
}

#[test]
fn two_values_of_one_revision_are_found() {
    expect("values", |history| history.gets[0].found = Some(seen(110, "u1", "v9")));
}

#[test]
fn two_objects_of_one_revision_are_found() {
    expect("values", |history| history.gets.push(get("c", (90, 95), Some(seen(110, "u1", "v2")))));
}

#[test]
fn a_value_that_nobody_wrote_is_found() {
    expect("values", |history| second(history).push(event(EventKind::Added, "z", seen(150, "u9", "v99"), 99)));
}

#[test]
fn a_refused_write_that_happened_is_found() {
    expect("values", |history| second(history).push(event(EventKind::Modified, "a", seen(150, "u1", "v4"), 99)));
}

#[test]
fn a_write_that_happened_twice_is_found() {
    expect("values", |history| second(history).push(event(EventKind::Modified, "a", seen(150, "u1", "v2"), 99)));
}

#[test]
fn a_deletion_without_a_request_is_found() {
    expect("values", |history| second(history).push(event(EventKind::Deleted, "a", seen(150, "u1", "v2"), 99)));
}

#[test]
fn two_updates_of_one_revision_are_found() {
    expect("compare_and_set", |history| {
        let outcome = WriteOutcome::Put(seen(145, "u1", "v6"));
        history.writes.push(update("a", (35, 45), 100, "v6", outcome));
    });
}

#[test]
fn a_change_acknowledged_to_two_writers_is_found() {
    expect("compare_and_set", |history| {
        let write = history.writes.iter().find(|write| matches!(write.intent, Intent::Update { .. }));
        history.writes.push(write.expect("an update").clone());
    });
}

#[test]
fn a_deletion_of_another_state_is_found() {
    expect("compare_and_set", |history| history.writes[3] = delete("b", (70, 80), Some(119), deleted("u2")));
}

#[test]
fn a_create_over_an_object_is_found() {
    expect("compare_and_set", |history| {
        history.writes.push(create("a", (90, 99), "v6", WriteOutcome::Put(seen(145, "u4", "v6"))));
    });
}

#[test]
fn an_object_that_changes_its_uid_is_found() {
    expect("compare_and_set", |history| {
        history.writes[1].outcome = WriteOutcome::Put(seen(110, "u7", "v2"));
        history.gets.clear();
        history.lists.clear();
        history.streams.clear();
    });
}

#[test]
fn a_lost_write_is_found() {
    expect("durability", |history| history.lists[1].items.clear());
}

#[test]
fn a_write_that_was_undone_is_found() {
    expect("durability", |history| history.lists[1].items[0].1 = seen(100, "u1", "v1"));
}

#[test]
fn a_deletion_that_never_happened_is_found() {
    expect("durability", |history| {
        history.writes.push(delete("a", (90, 95), None, deleted("u1")));
    });
}

#[test]
fn a_deletion_that_was_acknowledged_twice_is_found() {
    expect("durability", |history| history.writes.push(delete("b", (70, 90), None, deleted("u2"))));
}

#[test]
fn deletions_of_a_pod_that_overlap_may_both_be_acknowledged() {
    let other = |invoked, returned| {
        move |history: &mut History| {
            delete_pod(history, 200, "v7");
            let pod = history.writes.last().unwrap().key.clone();
            history.writes.push(Write { key: pod, ..delete("p", (invoked, returned), None, deleted("u5")) });
        }
    };
    allow(other(335, 350));
    allow(other(325, 336));
    expect("durability", other(341, 350));
}

#[test]
fn a_stale_read_is_found() {
    expect("real_time", |history| history.gets[0].found = Some(seen(100, "u1", "v1")));
}

#[test]
fn a_read_that_goes_back_is_found() {
    expect("real_time", |history| {
        // The update is acknowledged after both reads, but the first read saw it.
        history.writes[1].at.returned = 99;
        history.streams.clear();
        history.gets = vec![get("a", (50, 51), Some(seen(110, "u1", "v2")))];
        history.gets.push(get("a", (60, 61), Some(seen(100, "u1", "v1"))));
    });
}

#[test]
fn a_read_older_than_a_watch_event_is_found() {
    expect("real_time", |history| {
        history.writes[1].at.returned = 99;
        history.gets = vec![get("a", (50, 51), Some(seen(100, "u1", "v1")))];
    });
}

#[test]
fn a_read_of_a_value_before_its_write_is_found() {
    expect("real_time", |history| history.gets.push(get("a", (25, 29), Some(seen(110, "u1", "v2")))));
}

#[test]
fn a_write_ordered_before_an_acknowledged_one_is_found() {
    expect("real_time", |history| history.writes[0].at = history.writes[3].at);
}

#[test]
fn a_write_ordered_before_an_acknowledged_one_of_another_object_is_found() {
    let put = |revision| WriteOutcome::Put(seen(revision, "u8", "v8"));
    expect("write_order", |history| history.writes.push(create("d", (85, 95), "v8", put(125))));
    expect("write_order", |history| {
        let lease = Key { table: Table::LEASES, namespace: "x".to_owned(), name: "l".to_owned() };
        history.writes.push(Write { key: lease, ..create("l", (75, 76), "v8", put(105)) });
    });
    // Allowed: the other write was still in progress when this one, with the larger revision, was acknowledged.
    allow(|history| history.writes[2].at = Interval { invoked: 31, returned: 33 });
}

#[test]
fn a_write_ordered_before_an_earlier_read_is_found() {
    let late = |revision| create("d", (300, 310), "v8", WriteOutcome::Put(seen(revision, "u8", "v8")));
    expect("write_order", |history| history.writes.push(late(138)));
    expect("write_order", |history| {
        // Only the list of another table is of a later revision.
        history.writes.push(late(150));
        let scope = Scope { table: Table::LEASES, namespace: None };
        history.lists.push(List { scope, ..list((210, 220), 160, &[]) });
    });
}

#[test]
fn a_404_for_an_existing_object_is_found() {
    expect("refusals", |history| history.gets[0].found = None);
}

#[test]
fn an_unjustified_404_of_a_write_is_found() {
    expect("refusals", |history| {
        history.writes.push(update("a", (90, 95), 110, "v6", WriteOutcome::NotFound));
    });
}

#[test]
fn an_unjustified_conflict_is_found() {
    expect("refusals", |history| {
        history.writes.push(update("a", (90, 95), 110, "v6", WriteOutcome::Conflict));
    });
}

#[test]
fn an_unjustified_already_exists_is_found() {
    expect("refusals", |history| history.writes.push(create("b", (90, 95), "v6", WriteOutcome::AlreadyExists)));
}

#[test]
fn an_unexpected_answer_is_found() {
    expect("refusals", |history| {
        history.writes.push(create("b", (90, 95), "v6", WriteOutcome::Unexpected("403".to_owned())));
    });
}

#[test]
fn a_list_that_misses_an_object_is_found() {
    expect("snapshots", |history| history.lists[0].items.clear());
}

#[test]
fn a_list_of_two_moments_is_found() {
    expect("snapshots", |history| history.lists[0].items[0].1 = seen(100, "u1", "v1"));
    expect("snapshots", |history| history.lists[0].revisions.push(136));
}

#[test]
fn a_list_that_shows_a_deleted_object_is_found() {
    expect("snapshots", |history| {
        history.lists[0].items.push((super::story::key("b"), seen(120, "u2", "v3")));
    });
}

#[test]
fn initial_events_that_miss_an_object_are_found() {
    expect("snapshots", |history| _ = history.streams[1].sessions[0].deliveries.remove(0));
}

#[test]
fn a_stale_list_is_found() {
    expect("fresh_lists", |history| {
        history.lists.push(list((100, 110), 105, &[("a", seen(100, "u1", "v1"))]));
    });
}

#[test]
fn a_list_that_goes_back_is_found() {
    expect("fresh_lists", |history| {
        let older = list((150, 160), 132, &[("a", seen(110, "u1", "v2"))]);
        history.lists.push(List { is_final: false, ..older });
    });
}

#[test]
fn events_out_of_order_are_found() {
    expect("watch_order", |history| second(history).swap(0, 1));
}

#[test]
fn a_repeated_event_is_found() {
    expect("watch_order", |history| {
        let again = second(history)[1].clone();
        second(history).insert(2, again);
    });
}

#[test]
fn an_event_repeated_after_resuming_is_found() {
    expect("watch_order", |history| {
        let again = history.streams[0].sessions[0].deliveries[1].clone();
        second(history).insert(0, again);
    });
}

#[test]
fn an_event_of_another_namespace_is_found() {
    expect("watch_order", |history| {
        history.streams[0].scope = Scope { namespace: Some("y".to_owned()), ..scope() };
    });
}

#[test]
fn a_missed_event_is_found() {
    expect("watch_complete", |history| _ = second(history).remove(0));
}

#[test]
fn an_event_missed_between_sessions_is_found() {
    expect("watch_complete", |history| _ = history.streams[0].sessions[0].deliveries.remove(0));
}

#[test]
fn a_wrong_kind_of_event_is_found() {
    expect("watch_complete", |history| {
        second(history)[0] = event(EventKind::Modified, "b", seen(120, "u2", "v3"), 65);
    });
}

#[test]
fn a_watch_that_stays_behind_is_found() {
    expect("watch_complete", |history| history.streams[0].is_caught_up = false);
}

#[test]
fn a_bookmark_ahead_of_changes_is_found() {
    expect("bookmarks", |history| second(history).insert(0, bookmark(125)));
    // The watch never delivers the change.
    expect("watch_complete", |history| _ = second(history).drain(..2));
}

#[test]
fn a_bookmark_that_goes_back_is_found() {
    expect("bookmarks", |history| second(history).push(bookmark(135)));
}

#[test]
fn a_410_within_the_window_is_found() {
    expect("resumption", |history| {
        let start = Start::After { revision: 110, delivered: 45 };
        let refused = Session { member: 0, start, invoked: 500, told_at: 0, deliveries: Vec::new(), end: End::Expired };
        history.streams.push(Stream { scope: scope(), sessions: vec![refused], is_caught_up: true });
    });
    expect("resumption", |history| {
        history.refused_pages.push(RefusedPage { scope: scope(), revision: 110, delivered: 45, invoked: 50 });
    });
}
