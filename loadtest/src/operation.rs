//! The closed loop: each client sends its next request after the answer to the previous one, until the time or the
//! number of requests is reached.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::connection::{Answer, Call, Client, Connector, Error, Protocol};
use crate::limits;
use crate::process::Processes;
use crate::report::{self, Figures, Latency};

/// The requests of one client.
pub trait Operation {
    /// Returns the next request.
    fn next(&mut self) -> Call;

    /// Receives the answer to the last request.
    fn seen(&mut self, _answer: &Answer) {}
}

impl<F: FnMut() -> Call> Operation for F {
    fn next(&mut self) -> Call {
        self()
    }
}

/// The duration and the concurrency of a row.
#[derive(Debug, Clone)]
pub struct Load {
    /// The number of concurrent clients.
    pub clients: usize,
    /// The number of HTTP/2 connections that they share.
    pub connections: usize,
    /// How long the row is measured.
    pub duration: Duration,
    /// How long the row runs before that.
    pub warmup: Duration,
    /// The largest number of requests, warmup included.
    pub requests_max: u64,
    /// The number of requests in one operation.
    pub requests_per_operation: u64,
}

/// State that all clients share.
struct Shared {
    /// When the measurement begins. Earlier answers do not count.
    measure_from: Cell<Option<Instant>>,
    is_over: Cell<bool>,
    /// The number of clients that are still running.
    active: Cell<usize>,
    requests_left: Cell<u64>,
    requests: Cell<u64>,
    bytes: Cell<u64>,
    errors: Cell<u64>,
    first_error: RefCell<Option<String>>,
    latency: RefCell<Histogram<u64>>,
    first_byte: RefCell<Histogram<u64>>,
}

impl Shared {
    fn failed(&self, error: String) {
        self.errors.set(self.errors.get() + 1);
        self.first_error.borrow_mut().get_or_insert(error);
    }

    fn record(&self, answer: &Answer) {
        if self.measure_from.get().is_none() {
            return;
        }
        self.requests.set(self.requests.get() + 1);
        self.bytes.set(self.bytes.get() + answer.bytes);
        self.latency.borrow_mut().saturating_record(micros(answer.total));
        self.first_byte.borrow_mut().saturating_record(micros(answer.first_byte));
    }

    /// Takes one of the remaining requests. Returns `false` if none remains.
    fn take(&self) -> bool {
        let left = self.requests_left.get();
        self.requests_left.set(left.saturating_sub(1));
        left > 0 && !self.is_over.get()
    }
}

/// Returns a duration in whole microseconds.
pub fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

async fn client_loop(
    mut client: Client,
    mut operation: Box<dyn Operation>,
    shared: Rc<Shared>,
    connector: Arc<Connector>,
) {
    while shared.take() {
        let call = operation.next();
        match client.call(&call).await {
            Ok(answer) => {
                operation.seen(&answer);
                if answer.status.is_success() || expected(&call, &answer) {
                    shared.record(&answer);
                } else {
                    let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]).into_owned();
                    shared.failed(format!("{} {}: {} {body}", call.method, call.path, answer.status));
                }
            }
            Err(error) => {
                shared.failed(error.to_string());
                match connector.open().await {
                    Ok(again) => client = again,
                    Err(_) => break,
                }
            }
        }
    }
    shared.active.set(shared.active.get().saturating_sub(1));
}

/// Returns whether the status is a 404 for an object that is missing on purpose, as its name shows.
fn expected(call: &Call, answer: &Answer) -> bool {
    answer.status.as_u16() == 404 && call.path.contains(crate::objects::MISSING)
}

/// Runs `operation(client)` in every client.
pub async fn run(
    row: &str,
    load: &Load,
    connector: &Arc<Connector>,
    processes: &Processes,
    operation: &dyn Fn(usize) -> Box<dyn Operation>,
) -> Result<Figures, Error> {
    let shared = Rc::new(Shared {
        measure_from: Cell::new(None),
        is_over: Cell::new(false),
        active: Cell::new(load.clients),
        requests_left: Cell::new(load.requests_max),
        requests: Cell::new(0),
        bytes: Cell::new(0),
        errors: Cell::new(0),
        first_error: RefCell::new(None),
        latency: RefCell::new(report::histogram()),
        first_byte: RefCell::new(report::histogram()),
    });
    let connections = match connector.protocol() {
        Protocol::Http1 => load.clients,
        Protocol::Http2 => load.connections.clamp(1, load.clients),
    };
    let mut shares = Vec::with_capacity(connections);
    for _ in 0..connections {
        shares.push(connector.open().await?);
    }
    let tasks = tokio::task::LocalSet::new();
    for number in 0..load.clients {
        let client = match connector.protocol() {
            Protocol::Http1 => shares.pop().ok_or(Error::Timeout)?,
            Protocol::Http2 => shares[number % connections].another().await?,
        };
        tasks.spawn_local(client_loop(client, operation(number), shared.clone(), connector.clone()));
    }
    let usage = tasks.run_until(measure(load, &shared, processes)).await?;
    tasks.await;
    Ok(figures(row, load, &shared, &usage, processes))
}

/// The time and memory that the server used during the measurement.
struct Usage {
    requests: u64,
    seconds: f64,
    cpu_seconds: f64,
    resident_start_kib: u64,
    resident_max_kib: u64,
}

async fn measure(load: &Load, shared: &Shared, processes: &Processes) -> Result<Usage, Error> {
    tokio::time::sleep(load.warmup).await;
    let resident_start_kib = processes.resident_kib()?;
    let cpu = processes.cpu_seconds()?;
    let start = Instant::now();
    shared.measure_from.set(Some(start));
    let mut resident_max_kib = resident_start_kib;
    while start.elapsed() < load.duration && shared.active.get() > 0 {
        let left = load.duration.saturating_sub(start.elapsed());
        tokio::time::sleep(left.min(limits::MEMORY_SAMPLE_EVERY)).await;
        resident_max_kib = resident_max_kib.max(processes.resident_kib()?);
    }
    // Requests in progress, at most one per client, are part of the CPU time but not of the count.
    let usage = Usage {
        requests: shared.requests.get(),
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: processes.cpu_seconds()? - cpu,
        resident_start_kib,
        resident_max_kib,
    };
    shared.is_over.set(true);
    Ok(usage)
}

fn figures(row: &str, load: &Load, shared: &Shared, usage: &Usage, processes: &Processes) -> Figures {
    let operations = usage.requests / load.requests_per_operation.max(1);
    let has_processes = !processes.pids.is_empty();
    let (latency, first_byte) = (shared.latency.borrow(), shared.first_byte.borrow());
    let growth = usage.resident_max_kib as i64 - usage.resident_start_kib as i64;
    Figures {
        row: row.into(),
        clients: load.clients,
        operations,
        seconds: usage.seconds,
        per_second: operations as f64 / usage.seconds,
        cpu_us: (has_processes && operations > 0).then(|| usage.cpu_seconds * 1e6 / operations as f64),
        core_percent: has_processes.then(|| usage.cpu_seconds / usage.seconds * 100.0),
        latency: Some(Latency::from(&*latency)),
        first_byte: Some(Latency::from(&*first_byte)),
        bytes: shared.bytes.get().checked_div(shared.requests.get()),
        resident_growth_kib: has_processes.then_some(growth),
        errors: shared.errors.get(),
        first_error: shared.first_error.borrow().clone(),
        ..Figures::default()
    }
}
