//! What this member tells of itself and its cluster: put together when somebody asks, out of what is counted anyway.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use actix_web::{HttpResponse, web};
use flotilla_cluster::{Behind, Revision, Store, Table};

use super::Gateway;
use super::attempt::Course;
use super::flow::Lane;
use super::handler::Head;
use super::members;
use crate::answer;
use crate::limits;
use crate::metrics::process::{memory, processor_seconds};
use crate::metrics::surroundings;
use crate::overview::{
    self, Certificate, Disk, History, Lag, Log, Overview, ResourceView, WatchLag, events, resource_name,
};
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::version;
use crate::wall_clock;

/// Answers a request of somebody who may make it.
pub(super) async fn respond(
    gateway: &web::Data<Gateway>,
    head: &Head<'_>,
    course: &mut Course,
) -> ApiResult<HttpResponse> {
    if !matches!(head.method, "GET" | "HEAD") {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    if !course.enter(gateway, Lane::Exempt { mutating: false }) {
        return Ok(answer::too_many_requests());
    }
    let asked = gateway.clone();
    let told = web::block(move || asked.overview()).await.map_err(ApiError::internal)?;
    members::encoded(&told, head.pretty)
}

impl Gateway {
    /// This member and its cluster now. It looks at every table, and so takes milliseconds where there are thousands:
    /// not to be called on a worker.
    pub(super) fn overview(&self) -> Overview {
        let Registry { metrics, store, .. } = &*self.registry;
        let (status, meter) = (store.status(), metrics.meter());
        let lags = status.groups.iter().flat_map(|group| {
            let lag = move |lag: &flotilla_cluster::Lag| Lag {
                group: group.name.clone(),
                member: lag.member.clone(),
                entries: lag.entries,
            };
            group.lags.iter().map(lag)
        });
        let mut requests = overview::by_type(meter);
        requests.truncate(limits::OVERVIEW_REQUESTS);
        let (resources, resources_untold, history) = self.resources();
        let failing = self.health.results().filter(|(endpoint, _, passes)| *endpoint == "readyz" && !passes);
        let certificates = self.pki.expirations();
        let wal = status.wal;
        Overview {
            version: version::GIT_VERSION.to_owned(),
            ready: self.health.ready(),
            failing: failing.map(|(_, check, _)| check.to_owned()).collect(),
            clock_seconds: wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            clock_behind_seconds: store.clock_behind().as_secs_f64(),
            uptime_seconds: self.began.elapsed().as_secs_f64(),
            cluster: members::view(store),
            unled: status.groups.iter().filter(|group| !group.is_led).map(|group| group.name.clone()).collect(),
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
            reads_in_progress: self.flow.in_progress(false) as u64,
            writes_in_progress: self.flow.in_progress(true) as u64,
            watches: self.flow.watches() as u64,
            request_bounds_seconds: overview::bounds(),
            requests,
            slowest: metrics.slowest.all(Instant::now()),
            watches_behind: behind(store),
            resources,
            resources_untold,
            certificates: certificates
                .map(|(name, ends_seconds)| Certificate { name: name.to_owned(), ends_seconds })
                .collect(),
            warnings: overview::recent(),
        }
    }

    /// What is stored and followed, how many more of these resources there are, and the history of all.
    fn resources(&self) -> (Vec<ResourceView>, u64, History) {
        let store = &self.registry.store;
        // Asking for a table makes it.
        let made: HashMap<_, Arc<Table>> =
            store.tables().into_iter().map(|table| (table.id().clone(), table)).collect();
        let shards: HashMap<_, usize> =
            store.shards().into_iter().map(|of| (of.table.clone(), of.groups.len())).collect();
        let mut events = events(self.registry.metrics.meter());
        let mut history = History { window_seconds: self.history.as_secs(), changes: 0, bytes: 0 };
        let mut all = Vec::new();
        for served in self.registry.resources.stored() {
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
        all.sort_by(|a, b| (b.bytes, b.events, b.followers).cmp(&(a.bytes, a.events, a.followers)));
        let untold = all.len().saturating_sub(limits::OVERVIEW_RESOURCES);
        all.truncate(limits::OVERVIEW_RESOURCES);
        (all, untold as u64, history)
    }
}

/// Who is furthest behind in what was changed, over all tables.
fn behind(store: &Store) -> Vec<WatchLag> {
    // Where there are too many to look at all of them, another look sees others.
    let from = rand::random_range(0..usize::MAX);
    let mut all: Vec<(String, Revision, Behind)> = Vec::new();
    for table in store.tables() {
        let floor = table.horizon();
        let late = table.behind(from, limits::OVERVIEW_WATCHES).into_iter();
        all.extend(late.map(|late| (table.id().to_string(), late.first().max(floor), late)));
    }
    all.sort_by_key(|(_, first, _)| *first);
    all.truncate(limits::OVERVIEW_WATCHES);
    let now_ms = wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let lag = |(resource, first, late): (String, Revision, Behind)| WatchLag {
        resource,
        selects: selects(&late),
        seconds: now_ms.saturating_sub(first.unix_ms()) as f64 / 1_000.0,
    };
    all.into_iter().map(lag).collect()
}

/// What a subscriber wants of its table, in words.
fn selects(late: &Behind) -> String {
    let interest = late.interest();
    let namespace = interest.namespace.as_ref().map(|namespace| format!("namespace={namespace}"));
    let name = interest.name.as_ref().map(|name| format!("name={name}"));
    let field = interest.field.as_ref().map(|(field, value)| format!("{field}={value}"));
    [namespace, name, field].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
