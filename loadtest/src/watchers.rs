//! Rows with watches: the cost and the latency of a delivery. Changes come one after the other, or many at a steady
//! rate.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
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

/// The number of watchers, and how changes are made.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The number of concurrent watches.
    pub watchers: usize,
    /// How long changes are made.
    pub duration: Duration,
    /// The largest number of changes.
    pub changes_max: u64,
    /// How changes are made.
    pub pace: Pace,
}

/// How changes are made.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// One after the other, at intervals in which a server that keeps up delivers the change to all watchers. A
    /// delivery's latency starts when its change is sent.
    Single,
    /// At a steady rate, to many objects and by several clients. A delivery's latency starts when its change is
    /// answered, and is zero if the event arrives before the answer.
    Steady { per_second: u32, clients: usize },
}

/// The interval between changes, in which a server that keeps up finishes all deliveries.
const CHANGE_EVERY: Duration = Duration::from_millis(50);

/// The number of objects that are changed at a steady rate.
const OBJECTS: usize = 128;

/// The text before the time at which a change was sent, in microseconds of Unix time.
const STAMP: &[u8] = br#""stamp":"t"#;

struct Deliveries {
    pace: Pace,
    /// When each change was answered, by its stamp.
    answered: RefCell<HashMap<u64, u64>>,
    /// The last stamp.
    stamped: Cell<u64>,
    start: Instant,
    /// The Unix time of the start, in microseconds. Objects of earlier runs have smaller stamps.
    base: u64,
    count: Cell<u64>,
    latency: RefCell<Histogram<u64>>,
    first_error: RefCell<Option<String>>,
}

impl Deliveries {
    fn new(pace: Pace) -> Self {
        Self {
            pace,
            answered: RefCell::default(),
            stamped: Cell::new(0),
            start: Instant::now(),
            base: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros),
            count: Cell::new(0),
            latency: RefCell::new(report::histogram()),
            first_error: RefCell::new(None),
        }
    }

    /// Returns the present time as a stamp.
    fn now(&self) -> u64 {
        self.base + micros(self.start.elapsed())
    }

    /// Returns a stamp that no other change has.
    fn stamp(&self) -> u64 {
        self.stamped.set(self.now().max(self.stamped.get() + 1));
        self.stamped.get()
    }

    /// Records that the change with this stamp was answered.
    fn answer(&self, stamp: u64) {
        self.answered.borrow_mut().insert(stamp, self.now());
    }

    /// Records that the event with this stamp arrived.
    fn take(&self, stamp: u64, arrived: u64) {
        if stamp >= self.base {
            let since = match self.pace {
                Pace::Single => stamp,
                Pace::Steady { .. } => self.answered.borrow().get(&stamp).copied().unwrap_or(arrived),
            };
            self.count.set(self.count.get() + 1);
            self.latency.borrow_mut().saturating_record(arrived.saturating_sub(since));
        }
    }
}

/// Measures the time until each watcher has received the event of a change.
pub async fn run(
    plan: Plan,
    namespace: &str,
    connector: &Arc<Connector>,
    processes: &Processes,
) -> Result<Figures, Error> {
    let collection = objects::config_maps(namespace);
    let objects = match plan.pace {
        Pace::Single => 1,
        Pace::Steady { .. } => OBJECTS,
    };
    let mut writer = connector.open().await?;
    for number in 0..objects {
        writer.must(&Call::with_json(Method::POST, &collection, object(number, "none")), &[409]).await?;
    }
    let deliveries = Rc::new(Deliveries::new(plan.pace));
    let tasks = tokio::task::LocalSet::new();
    let watch = Call::get(format!("{collection}?watch=1&allowWatchBookmarks=true&labelSelector=watched"));
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
    tasks.run_until(measure(plan, &collection, writer, &deliveries, processes)).await
}

fn name(number: usize) -> String {
    format!("watched-{number}")
}

/// Returns the JSON of a watched object.
fn object(number: usize, stamp: &str) -> String {
    let metadata = format!(r#"{{"name":"{}","labels":{{"watched":""}}}}"#, name(number));
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata},"data":{{"stamp":"{stamp}"}}}}"#)
}

/// Makes changes according to the plan, and waits for their deliveries.
async fn measure(
    plan: Plan,
    collection: &str,
    mut writer: Client,
    deliveries: &Rc<Deliveries>,
    processes: &Processes,
) -> Result<Figures, Error> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cpu = processes.cpu_seconds()?;
    let start = Instant::now();
    let changes = match plan.pace {
        Pace::Single => change(plan, collection, &mut writer, deliveries).await?,
        Pace::Steady { per_second, clients } => {
            steadily(plan, (per_second, clients), collection, &writer, deliveries).await?
        }
    };
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

/// Changes one object again and again. Returns the number of changes.
async fn change(plan: Plan, collection: &str, writer: &mut Client, deliveries: &Deliveries) -> Result<u64, Error> {
    let (start, mut changes) = (Instant::now(), 0);
    while start.elapsed() < plan.duration && changes < plan.changes_max {
        let body = format!(r#"{{"data":{{"stamp":"t{}"}}}}"#, deliveries.stamp());
        let mut call = Call::with_json(Method::PATCH, format!("{collection}/{}", name(0)), body);
        call.body = call.body.map(|(_, bytes)| ("application/merge-patch+json", bytes));
        writer.must(&call, &[]).await?;
        changes += 1;
        tokio::time::sleep(CHANGE_EVERY).await;
    }
    Ok(changes)
}

/// Changes objects at a steady rate, by several clients in turn. Returns the number of changes.
async fn steadily(
    plan: Plan,
    (per_second, clients): (u32, usize),
    collection: &str,
    writer: &Client,
    deliveries: &Rc<Deliveries>,
) -> Result<u64, Error> {
    let start = tokio::time::Instant::now();
    let changes = plan.changes_max.min((plan.duration.as_secs_f64() * f64::from(per_second)) as u64) as usize;
    let mut tasks = Vec::new();
    for client in 0..clients {
        let (mut writer, deliveries) = (writer.another().await?, deliveries.clone());
        let collection = collection.to_owned();
        tasks.push(tokio::task::spawn_local(async move {
            for change in (client..changes).step_by(clients) {
                tokio::time::sleep_until(start + Duration::from_secs(1) * change as u32 / per_second).await;
                let (number, stamp) = (change % OBJECTS, deliveries.stamp());
                let path = format!("{collection}/{}", name(number));
                let call = Call::with_json(Method::PUT, path, object(number, &format!("t{stamp}")));
                writer.must(&call, &[]).await?;
                deliveries.answer(stamp);
            }
            Ok::<(), Error>(())
        }));
    }
    for task in tasks {
        task.await.map_err(|error| Error::Io(std::io::Error::other(error)))??;
    }
    let (took, planned) = (start.elapsed(), plan.duration);
    if took > planned.mul_f64(limits::LATENESS_MAX) && changes > 0 {
        deliveries.first_error.borrow_mut().get_or_insert(format!("{changes} changes took {took:?}, not {planned:?}"));
    }
    Ok(changes as u64)
}

/// Reads the lines of a watch, and records when each event with a stamp arrives.
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

/// Returns the stamp in an event.
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
        let deliveries = Deliveries::new(Pace::Single);
        let now = deliveries.now();
        deliveries.take(deliveries.base - 1, now);
        assert_eq!(deliveries.count.get(), 0);
        deliveries.take(now, now + 7);
        assert_eq!((deliveries.count.get(), deliveries.latency.borrow().max()), (1, 7));
    }

    #[test]
    fn at_a_steady_rate_latency_starts_at_the_answer() {
        let deliveries = Deliveries::new(Pace::Steady { per_second: 1, clients: 1 });
        let (one, other) = (deliveries.stamp(), deliveries.stamp());
        assert!(one < other, "each has its own");
        deliveries.answered.borrow_mut().insert(one, one + 10);
        deliveries.take(one, one + 14);
        assert_eq!(deliveries.latency.borrow().max(), 4);
        deliveries.take(other, other + 100);
        assert_eq!((deliveries.count.get(), deliveries.latency.borrow().max()), (2, 4));
    }

    #[test]
    fn stamps_are_found_in_events() {
        assert_eq!(stamp(br#"{"object":{"data":{"stamp":"t1234"}}}"#), Some(1234));
        assert_eq!(stamp(br#"{"object":{"data":{"stamp":"none"}}}"#), None);
        assert_eq!(stamp(br#"{"stamp":"t12"#), None);
    }
}
