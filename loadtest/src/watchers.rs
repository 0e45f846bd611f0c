//! One change to many watchers: what a delivery costs and how long it takes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use hdrhistogram::Histogram;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;

use crate::connection::{Call, Client, Connector, Error};
use crate::limits;
use crate::objects;
use crate::operation::micros;
use crate::process::Processes;
use crate::report::{self, Figures, Latency};

/// How many watchers see how many changes.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Concurrent watches.
    pub watchers: usize,
    /// How long changes are made.
    pub duration: Duration,
    /// How many are made at most.
    pub changes_max: u64,
}

/// Time between changes, so that every delivery is done before the next begins on a server that keeps up.
const CHANGE_EVERY: Duration = Duration::from_millis(50);

/// In front of the time at which a change was sent, in microseconds of Unix time.
const STAMP: &[u8] = br#""stamp":"t"#;

struct Deliveries {
    start: Instant,
    /// Unix time of the start, in microseconds: what earlier runs left behind was stamped before.
    base: u64,
    count: Cell<u64>,
    latency: RefCell<Histogram<u64>>,
    first_error: RefCell<Option<String>>,
}

impl Deliveries {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            base: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros),
            count: Cell::new(0),
            latency: RefCell::new(report::histogram()),
            first_error: RefCell::new(None),
        }
    }

    /// The time for stamps.
    fn now(&self) -> u64 {
        self.base + micros(self.start.elapsed())
    }

    /// Notes an event that arrived.
    fn take(&self, sent: u64, arrived: u64) {
        if sent >= self.base {
            self.count.set(self.count.get() + 1);
            self.latency.borrow_mut().saturating_record(arrived.saturating_sub(sent));
        }
    }
}

/// Measures the time from sending a change until each watcher has its event.
pub async fn run(
    plan: Plan,
    namespace: &str,
    connector: &Arc<Connector>,
    processes: &Processes,
) -> Result<Figures, Error> {
    let mut writer = connector.open().await?;
    let path = format!("{}/watched", objects::config_maps(namespace));
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"watched"},"data":{"stamp":"none"}}"#;
    writer.must(&Call::with_json(Method::POST, objects::config_maps(namespace), body), &[409]).await?;
    let deliveries = Rc::new(Deliveries::new());
    let tasks = tokio::task::LocalSet::new();
    let watch = Call::get(format!(
        "{}?watch=1&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dwatched",
        objects::config_maps(namespace)
    ));
    let mut connection: Option<Client> = None;
    for number in 0..plan.watchers {
        let mut client = match &connection {
            Some(open) if number % limits::WATCHES_PER_CONNECTION_MAX != 0 => open.another().await?,
            _ => connector.open().await?,
        };
        let response = client.send(&watch).await?;
        if !response.status().is_success() {
            let (what, status) = (watch.path.clone(), response.status());
            return Err(Error::Refused { what, status, body: String::new() });
        }
        let deliveries = deliveries.clone();
        connection = Some(client);
        tasks.spawn_local(async move {
            if let Err(error) = follow(response.into_body(), &deliveries).await {
                deliveries.first_error.borrow_mut().get_or_insert(error.to_string());
            }
        });
    }
    tasks.run_until(change(plan, &path, &mut writer, &deliveries, processes)).await
}

async fn change(
    plan: Plan,
    path: &str,
    writer: &mut Client,
    deliveries: &Deliveries,
    processes: &Processes,
) -> Result<Figures, Error> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cpu = processes.cpu_seconds()?;
    let start = Instant::now();
    let mut changes = 0;
    while start.elapsed() < plan.duration && changes < plan.changes_max {
        let body = format!(r#"{{"data":{{"stamp":"t{}"}}}}"#, deliveries.now());
        let mut call = Call::with_json(Method::PATCH, path, body);
        call.body = call.body.map(|(_, bytes)| ("application/merge-patch+json", bytes));
        writer.must(&call, &[]).await?;
        changes += 1;
        tokio::time::sleep(CHANGE_EVERY).await;
    }
    let expected = changes * plan.watchers as u64;
    let made = Instant::now();
    while deliveries.count.get() < expected && made.elapsed() < limits::DELIVERY_WAIT {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (count, seconds) = (deliveries.count.get(), start.elapsed().as_secs_f64());
    let cpu = processes.cpu_seconds()? - cpu;
    let missing = expected.saturating_sub(count);
    let error = deliveries.first_error.borrow().clone();
    Ok(Figures {
        row: "watch".into(),
        clients: plan.watchers,
        operations: count,
        seconds,
        per_second: count as f64 / seconds,
        cpu_us: (!processes.pids.is_empty() && count > 0).then(|| cpu * 1e6 / count as f64),
        latency: Some(Latency::from(&*deliveries.latency.borrow())),
        errors: missing + u64::from(error.is_some() && missing == 0),
        first_error: error.or_else(|| (missing > 0).then(|| "events that did not arrive".into())),
        ..Figures::default()
    })
}

/// Reads a watch's lines and notes when each stamped one arrives.
async fn follow(mut body: Incoming, deliveries: &Deliveries) -> Result<(), Error> {
    let mut line = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let now = deliveries.now();
        line.extend_from_slice(&data);
        while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let event = line.split_to(end + 1);
            if let Some(sent) = stamp(&event) {
                deliveries.take(sent, now);
            }
        }
        if line.len() > limits::WATCH_LINE_BYTES_MAX {
            return Err(Error::LongLine);
        }
    }
    Ok(())
}

/// The time at which the change of an event was sent.
fn stamp(event: &[u8]) -> Option<u64> {
    let at = event.windows(STAMP.len()).position(|window| window == STAMP)?;
    let digits = &event[at + STAMP.len()..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_earlier_runs_are_not_counted() {
        let deliveries = Deliveries::new();
        let now = deliveries.now();
        deliveries.take(deliveries.base - 1, now);
        assert_eq!(deliveries.count.get(), 0);
        deliveries.take(now, now + 7);
        assert_eq!((deliveries.count.get(), deliveries.latency.borrow().max()), (1, 7));
    }

    #[test]
    fn stamps_are_found_in_events() {
        assert_eq!(stamp(br#"{"object":{"data":{"stamp":"t1234"}}}"#), Some(1234));
        assert_eq!(stamp(br#"{"object":{"data":{"stamp":"none"}}}"#), None);
        assert_eq!(stamp(br#"{"stamp":"t12"#), None);
    }
}
