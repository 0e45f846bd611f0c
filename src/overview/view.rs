//! The overview: the state of a member and its cluster in one message.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::requests::Requests;
use super::warnings::Warning;
use crate::administration::messages::ClusterView;
use crate::metrics::route::slash_joined;
use crate::metrics::slowest::SlowRequest;
use crate::prometheus::{Meter, families, read_labels};

/// GET: an [`Overview`] as JSON, at a path that Kubernetes does not have. A user needs the verb `get` on it.
pub const OVERVIEW_PATH: &str = "/flotilla/v1/overview";

/// The state of a member and its cluster, as the member knows it. A value that the operating system does not provide is
/// absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// Version of its program.
    pub version: String,
    /// Whether it is ready for requests.
    pub ready: bool,
    /// The checks of `/readyz` that fail.
    pub failing: Vec<String>,
    /// Its clock, in seconds since 1970.
    pub clock_seconds: f64,
    /// Seconds by which that clock is behind the latest reading of any clock of the cluster.
    pub clock_behind_seconds: f64,
    /// The time for which it has been serving, in seconds.
    pub uptime_seconds: f64,
    /// Its cluster.
    pub cluster: ClusterView,
    /// The groups without a leader that a majority follows, as far as the member knows.
    pub leaderless_groups: Vec<String>,
    /// Log entries that other members lack in groups that it leads.
    pub lags: Vec<Lag>,
    /// Resident memory of its process.
    pub memory_bytes: Option<f64>,
    /// Time on processors, in seconds.
    pub processor_seconds: f64,
    /// The disk of its data directory.
    pub disk: Option<Disk>,
    /// Its write-ahead log.
    pub log: Log,
    /// The changes that serve watches and older snapshots.
    pub history: History,
    /// Requests in progress that only read.
    pub reads_in_progress: u64,
    /// Requests in progress that may change something.
    pub writes_in_progress: u64,
    /// Open watches, and other long-running requests.
    pub watches: u64,
    /// Upper bounds of the buckets of request durations, rising, in seconds. The last bucket has none.
    pub request_bounds_seconds: Vec<f64>,
    /// Requests by type, the most frequent first.
    pub requests: Vec<Requests>,
    /// The slowest recent requests, the slowest first.
    pub slowest: Vec<SlowRequest>,
    /// The watches and controllers that are furthest behind.
    pub watches_behind: Vec<WatchLag>,
    /// Resources with objects or followers, those that take most memory first.
    pub resources: Vec<ResourceView>,
    /// The number of further resources with objects or followers.
    pub resources_omitted: u64,
    /// Its certificates.
    pub certificates: Vec<Certificate>,
    /// The last warnings and errors of its log, the newest first.
    pub warnings: Vec<Warning>,
}

/// Log entries that a member lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lag {
    /// The group.
    pub group: String,
    /// Name of the member.
    pub member: String,
    /// Entries of the group's log that the member lacks, as far as the leader knows.
    pub entries: u64,
}

/// A disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Its size.
    pub size_bytes: u64,
    /// Free space that the process may use.
    pub free_bytes: u64,
}

/// A write-ahead log. Totals are those since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// Its size on disk.
    pub disk_bytes: u64,
    /// Its files.
    pub segments: u64,
    /// Entries that no snapshot supersedes.
    pub entries: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Number of fsyncs.
    pub fsyncs: u64,
    /// Total time of the fsyncs, in seconds.
    pub fsync_seconds: f64,
    /// Writes that wait for their outcome.
    pub writes_waiting: u64,
}

impl Log {
    /// Returns the mean time of an fsync, in seconds. Returns `None` before the first fsync.
    pub fn fsync_mean_seconds(&self) -> Option<f64> {
        (self.fsyncs > 0).then(|| self.fsync_seconds / self.fsyncs as f64)
    }
}

/// A history window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Its length.
    pub window_seconds: u64,
    /// Changes in it.
    pub changes: u64,
    /// Memory that they take.
    pub bytes: u64,
}

/// A watch that has changes to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchLag {
    /// The watched resource.
    pub resource: String,
    /// The objects that it selects, as in `namespace=a name=b`; empty for all.
    pub selects: String,
    /// Age of the first change that it has not sent, in seconds.
    pub seconds: f64,
}

/// A resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceView {
    /// The resource, as in `pods` or `apps/deployments`.
    pub resource: String,
    /// Objects that are stored.
    pub objects: u64,
    /// Memory that they take.
    pub bytes: u64,
    /// Shards in which they are kept.
    pub shards: u64,
    /// Changes within the history window.
    pub changes: u64,
    /// Memory that these changes take.
    pub history_bytes: u64,
    /// Watches and controllers that follow it.
    pub followers: u64,
    /// Events sent to watches since the server started.
    pub events: u64,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Its purpose.
    pub name: String,
    /// The time of its end, in seconds since 1970.
    pub ends_seconds: i64,
}

/// Counts the events that were sent to watches, by resource.
pub fn sent_events(meter: &Meter) -> HashMap<String, u64> {
    let mut events = HashMap::new();
    for (labels, histogram) in meter.all_of(&families::WATCH_EVENTS_SIZES) {
        let labels = read_labels(&labels);
        let label = |name| labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| value);
        *events.entry(resource_name(label("group"), label("resource"))).or_default() +=
            histogram.counts().iter().sum::<u64>();
    }
    events
}

/// Returns the name of a resource in an overview.
pub fn resource_name(group: &str, resource: &str) -> String {
    slash_joined([group, resource, ""])
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn an_overview_reads_back_as_written() {
        let written = serde_json::to_string(&example()).expect("JSON");
        assert_eq!(serde_json::from_str::<Overview>(&written).expect("an overview"), example());
        assert!(written.contains("\"fsyncSeconds\":2.0"), "{written}");
    }
}
