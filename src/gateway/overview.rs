//! The overview of this member and its cluster, made per request from counters that the server keeps anyway.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use actix_web::{HttpResponse, web};
use flotilla_cluster::{LaggingSubscriber, Revision, Store, Table};

use super::Gateway;
use super::head::Head;
use super::members;
use crate::limits;
use crate::metrics::process::{memory, processor_seconds};
use crate::metrics::surroundings;
use crate::overview::{
    self, Certificate, Disk, History, Lag, Log, Overview, ResourceView, WatchLag, resource_name, sent_events,
};
use crate::status::{ApiError, ApiResult};
use crate::tables::Tables;
use crate::version;
use crate::wall_clock;

/// Answers a request whose user is authorized.
pub(super) async fn respond(gateway: &web::Data<Gateway>, head: &Head<'_>) -> ApiResult<HttpResponse> {
    if !matches!(head.method, "GET" | "HEAD") {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    let asked = gateway.clone();
    let overview = web::block(move || asked.overview()).await.map_err(ApiError::internal)?;
    members::encoded(&overview, head.pretty)
}

impl Gateway {
    /// Makes an overview. It reads every table, and takes milliseconds if the store has thousands: do not call it on a
    /// worker.
    pub(super) fn overview(&self) -> Overview {
        let Tables { metrics, store, .. } = &*self.registry.tables;
        let (status, meter) = (store.status(), metrics.meter());
        let lags = status.groups.iter().flat_map(|group| {
            let lag = move |lag: &flotilla_cluster::Lag| Lag {
                group: group.name.clone(),
                member: lag.member.clone(),
                entries: lag.entries,
            };
            group.lags.iter().map(lag)
        });
        let mut requests = overview::requests_by_type(meter);
        requests.truncate(limits::OVERVIEW_REQUESTS);
        let (resources, resources_omitted, history) = self.resources();
        let failing = self.health.results().filter(|(endpoint, _, passes)| *endpoint == "readyz" && !passes);
        let certificates = self.pki.expirations();
        let wal = status.wal;
        Overview {
            version: version::GIT_VERSION.to_owned(),
            ready: self.health.ready(),
            failing: failing.map(|(_, check, _)| check.to_owned()).collect(),
            clock_seconds: wall_clock::unix_seconds(),
            clock_behind_seconds: store.clock_behind().as_secs_f64(),
            uptime_seconds: self.began.elapsed().as_secs_f64(),
            cluster: members::view(store),
            leaderless_groups: status
                .groups
                .iter()
                .filter(|group| !group.is_led)
                .map(|group| group.name.clone())
                .collect(),
            lags: lags.collect(),
            memory_bytes: memory().map(|(_, resident)| resident),
            processor_seconds: processor_seconds(),
            disk: surroundings::disk(&self.data_dir).map(|(size_bytes, free_bytes)| Disk { size_bytes, free_bytes }),
            log: Log {
                disk_bytes: wal.disk_bytes,
                segments: wal.segments as u64,
                entries: wal.entries as u64,
                written_bytes: wal.bytes_written,
                fsyncs: wal.flushes,
                fsync_seconds: wal.flushing.as_secs_f64(),
                writes_waiting: status.writes_waiting as u64,
            },
            history,
            reads_in_progress: self.seats.in_progress(false) as u64,
            writes_in_progress: self.seats.in_progress(true) as u64,
            watches: self.seats.watches() as u64,
            request_bounds_seconds: overview::request_bounds(),
            requests,
            slowest: metrics.slowest.all(Instant::now()),
            watches_behind: lagging_watches(store),
            resources,
            resources_omitted,
            certificates: certificates
                .map(|(name, ends_seconds)| Certificate { name: name.to_owned(), ends_seconds })
                .collect(),
            warnings: overview::recent_warnings(),
        }
    }

    /// Returns the resources with objects, history or followers, the number of those left out, and the history of all.
    fn resources(&self) -> (Vec<ResourceView>, u64, History) {
        let store = &self.registry.tables.store;
        // `Store::table` would create a table that does not exist.
        let made: HashMap<_, Arc<Table>> =
            store.tables().into_iter().map(|table| (table.id().clone(), table)).collect();
        let shards: HashMap<_, usize> =
            store.shards().into_iter().map(|of| (of.table.clone(), of.groups.len())).collect();
        let mut events = sent_events(self.registry.tables.metrics.meter());
        let mut history = History { window_seconds: self.history.as_secs(), changes: 0, bytes: 0 };
        let mut all = Vec::new();
        for served in self.registry.tables.resources.stored() {
            let Some(table) = made.get(&served.table) else { continue };
            let (usage, resource) = (table.usage(), resource_name(served.group(), &served.resource.name));
            let followed = events.remove(&resource).unwrap_or_default();
            history.changes += usage.changes as u64;
            history.bytes += usage.history_bytes as u64;
            if usage.objects > 0 || usage.changes > 0 || usage.subscriptions > 0 {
                all.push(ResourceView {
                    resource,
                    objects: usage.objects,
                    bytes: usage.object_bytes as u64,
                    shards: shards.get(&served.table).copied().unwrap_or(1) as u64,
                    changes: usage.changes as u64,
                    history_bytes: usage.history_bytes as u64,
                    followers: usage.subscriptions as u64,
                    events: followed,
                });
            }
        }
        all.sort_by_key(|it| Reverse((it.bytes, it.events, it.followers)));
        let omitted = all.len().saturating_sub(limits::OVERVIEW_RESOURCES);
        all.truncate(limits::OVERVIEW_RESOURCES);
        (all, omitted as u64, history)
    }
}

/// Returns the subscribers that are furthest behind, among those of all tables.
fn lagging_watches(store: &Store) -> Vec<WatchLag> {
    // If there are too many subscribers to examine, each call examines others.
    let from = rand::random_range(0..usize::MAX);
    let mut all: Vec<(String, Revision, LaggingSubscriber)> = Vec::new();
    for table in store.tables() {
        let floor = table.horizon();
        let late = table.lagging_subscribers(from, limits::OVERVIEW_WATCHES).into_iter();
        all.extend(late.map(|late| (table.id().to_string(), late.first_unread().max(floor), late)));
    }
    all.sort_by_key(|(_, first, _)| *first);
    all.truncate(limits::OVERVIEW_WATCHES);
    let now_ms = wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let lag = |(resource, first, late): (String, Revision, LaggingSubscriber)| WatchLag {
        resource,
        selects: selects(&late),
        seconds: now_ms.saturating_sub(first.unix_ms()) as f64 / 1_000.0,
    };
    all.into_iter().map(lag).collect()
}

/// Returns the interest of a subscriber as text, as in `namespace=a name=b`.
fn selects(late: &LaggingSubscriber) -> String {
    let interest = late.interest();
    let namespace = interest.namespace.as_ref().map(|namespace| format!("namespace={namespace}"));
    let name = interest.name.as_ref().map(|name| format!("name={name}"));
    let field = interest.field.as_ref().map(|(field, value)| format!("{field}={value}"));
    [namespace, name, field].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
