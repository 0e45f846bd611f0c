//! Stored objects, and the work of the store.

use std::collections::{BTreeMap, HashMap, HashSet};

use flotilla_cluster::{GroupStatus, Store, TableId, TableUsage};

use crate::prometheus::Labels;
use crate::prometheus::Page;
use crate::served::Resources;
use crate::status::qualified;
use crate::unreadable;

/// A number of each group: name, meaning, value.
type OfGroup = (&'static str, &'static str, fn(&GroupStatus) -> u64);

const GROUP: &[OfGroup] = &[
    ("flotilla_group_term", "Raft term of a group.", |group| group.term),
    ("flotilla_group_last_index", "Index of the last entry of a group's log.", |group| group.last_index),
    ("flotilla_group_commit_index", "Index of the last entry that is known to be committed.", |g| g.commit_index),
    ("flotilla_group_applied_index", "Index of the last entry that is applied here.", |group| group.applied_index),
    ("flotilla_group_has_leader", "Whether a leader leads the group, and a majority follows it: 1 or 0.", |group| {
        u64::from(group.is_led)
    }),
    ("flotilla_group_snapshot_index", "Index of the last entry that a snapshot includes.", |g| g.snapshot_index),
];

/// A number of each resource: name, meaning, value.
type OfTable = (&'static str, &'static str, fn(&TableUsage) -> u64);

const TABLE: &[OfTable] = &[
    ("apiserver_resource_objects", "Stored objects.", |table| table.objects),
    ("apiserver_resource_size_estimate_bytes", "Memory of stored objects, in bytes.", |t| t.object_bytes as u64),
    ("flotilla_history_changes", "Changes within the history window.", |table| table.changes as u64),
    ("flotilla_history_bytes", "Memory of the history, in bytes.", |table| table.history_bytes as u64),
    ("flotilla_snapshots", "Snapshots that lists hold.", |table| table.snapshots as u64),
    ("flotilla_subscriptions", "Cursors into changes: watches and controllers.", |t| t.subscriptions as u64),
];

/// Appends the metrics of the store.
pub fn write(store: &Store, resources: &Resources, page: &mut Page) {
    let status = store.status();
    let count = status.writes_waiting as f64;
    page.gauge("flotilla_writes_waiting", "Writes that wait for their outcome.").sample(&[], count);
    let bytes = status.writes_waiting_bytes as f64;
    page.gauge("flotilla_writes_waiting_bytes", "Bytes of writes that wait for their outcome.").sample(&[], bytes);
    let wal = status.wal;
    page.counter("flotilla_wal_fsyncs_total", "How often the write-ahead log was made durable.")
        .sample(&[], wal.flushes as f64);
    page.counter("flotilla_wal_fsync_seconds_total", "Time that writing and making durable took, in seconds.")
        .sample(&[], wal.flushing.as_secs_f64());
    page.counter("flotilla_wal_written_bytes_total", "Bytes written to the write-ahead log.")
        .sample(&[], wal.bytes_written as f64);
    page.gauge("flotilla_wal_segments", "Segments of the write-ahead log.").sample(&[], wal.segments as f64);
    page.gauge("flotilla_wal_entries", "Log entries that no snapshot supersedes.").sample(&[], wal.entries as f64);
    page.gauge("apiserver_storage_size_bytes", "Disk that the write-ahead log takes, in bytes.")
        .sample(&[("storage_cluster_id", "default")], wal.disk_bytes as f64);
    let help = "Versions of stored objects that were found not to be readable, by resource.";
    let mut unreadable = page.counter("flotilla_unreadable_objects_total", help);
    for ((group, resource), count) in unreadable::counts() {
        unreadable.sample(&[("group", &group), ("resource", &resource)], count as f64);
    }
    groups(&status.groups, store.node(), page);
    members(store, page);
    tables(store, resources, page);
    page.gauge("flotilla_history_limit_bytes", "Memory that the history of one resource may take, in bytes.")
        .sample(&[], status.history_bytes_max as f64);
}

fn groups(groups: &[GroupStatus], node: u64, page: &mut Page) {
    let mut leads = page.gauge("flotilla_group_leader", "Whether this replica leads the group: 1 or 0.");
    for group in groups {
        leads.sample(&[("group", &group.name)], if group.leader == Some(node) { 1.0 } else { 0.0 });
    }
    let lag = "Log entries that another member of a group which this replica leads is not known to have.";
    let mut lags = page.gauge("flotilla_group_lag_entries", lag);
    for group in groups {
        let mut entries = BTreeMap::<&str, u64>::new();
        for lag in &group.lags {
            let most = entries.entry(&lag.member).or_default();
            *most = lag.entries.max(*most);
        }
        for (member, entries) in entries {
            lags.sample(&[("group", &group.name), ("member", member)], entries as f64);
        }
    }
    for (name, help, value) in GROUP {
        let mut samples = page.gauge(name, help);
        for group in groups {
            samples.sample(&[("group", &group.name)], value(group) as f64);
        }
    }
}

fn members(store: &Store, page: &mut Page) {
    let cluster = store.cluster();
    // While a member is being replaced, two replicas have its name.
    let mut reachable = BTreeMap::<&str, bool>::new();
    for member in cluster.members.iter().filter(|member| member.id != store.node()) {
        *reachable.entry(&member.name).or_default() |= member.reachable;
    }
    let help = "Whether another member is connected with this one: 1 or 0.";
    let mut samples = page.gauge("flotilla_member_reachable", help);
    for (member, reachable) in reachable {
        samples.sample(&[("member", member)], if reachable { 1.0 } else { 0.0 });
    }
}

fn tables(store: &Store, resources: &Resources, page: &mut Page) {
    // `Store::table` would create a missing table.
    let made: HashMap<TableId, TableUsage> =
        store.tables().iter().map(|table| (table.id().clone(), table.usage())).collect();
    let stored = resources.stored().into_iter();
    let with_usage = stored.map(|served| (made.get(&served.table).cloned().unwrap_or_default(), served));
    let served = resources.all();
    let on: HashSet<&TableId> = served.iter().filter(|of| !of.off).map(|of| &of.table).collect();
    // Resources that are off in all versions show only what is left of them.
    let all: Vec<_> = with_usage.filter(|(usage, of)| on.contains(&of.table) || usage.objects > 0).collect();
    for (name, help, value) in TABLE {
        let mut samples = page.gauge(name, help);
        for (usage, served) in &all {
            let labels: Labels<'_> = &[("group", served.group()), ("resource", &served.resource.name)];
            samples.sample(labels, value(usage) as f64);
        }
    }
    let mut samples = page.gauge("apiserver_storage_objects", "Stored objects, under the older name.");
    for (usage, served) in &all {
        let resource = qualified(served.group(), &served.resource.name);
        samples.sample(&[("resource", &resource)], usage.objects as f64);
    }
}
