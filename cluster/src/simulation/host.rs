//! A host: a disk, a wall clock that may be off, and the process of a replica, which is killed, frozen and started
//! again.
//!
//! A process has a runtime of its own, in which time stands still until the simulation lets it pass. To kill a process
//! is to drop its runtime with all tasks; to freeze it is not to run the runtime.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use actix::{System, SystemRunner};
use futures_util::future::LocalBoxFuture;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::draw;
use super::network::HostNetwork;
use super::shared_network::SharedNetwork;
use super::time::Time;
use super::trace::Trace;
use crate::clock::WallClock;
use crate::disk::simulated::{Pace, SimulatedDisk};
use crate::machine::Machine;
use crate::wal::simulated_runner::Tasks;
use crate::{Options, Store};

/// The wall clock of every host when a simulation begins.
const EPOCH_MS: u64 = 1_790_000_000_000;

/// Work that a process does with its store.
type Request = Box<dyn FnOnce(Store) -> LocalBoxFuture<'static, ()>>;

/// Sends requests to a process, once its store is open. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct StoreClient(Rc<RefCell<Option<mpsc::UnboundedSender<Request>>>>);

/// The process has ended, or has no store yet. The request was either refused, or may have been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    Refused,
    Lost,
}

impl StoreClient {
    /// Runs work in the process with its store.
    pub(super) async fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        work: impl FnOnce(Store) -> F + 'static,
    ) -> Result<T, RequestError> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let request: Request = Box::new(move |store| {
            Box::pin(async move {
                let _ = reply.send(work(store).await); // fails if the caller stopped waiting
            })
        });
        let taken = self.0.borrow().as_ref().is_some_and(|client| client.send(request).is_ok());
        if !taken {
            return Err(RequestError::Refused);
        }
        answer.await.map_err(|_| RequestError::Lost)
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.borrow().is_some()
    }
}

/// The condition of a host, which faults change.
#[derive(Clone, Default)]
pub(super) struct Condition {
    /// How far the wall clock is off, in milliseconds.
    pub(super) skew_ms: Arc<AtomicI64>,
    /// How long an access to the disk takes at most, in milliseconds.
    pub(super) disk_ms: Arc<AtomicU64>,
}

/// A host.
pub(super) struct Host {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) client: StoreClient,
    pub(super) condition: Condition,
    pub(super) disk: SimulatedDisk,
    pub(super) is_frozen: bool,
    options: Options,
    shared_network: Arc<SharedNetwork>,
    time: Time,
    trace: Trace,
    process: Option<Process>,
}

struct Process {
    runner: SystemRunner,
    system: System,
    started_ms: u64,
    start: Instant,
    /// The reason for which the process must end, if there is one.
    fatal: Rc<Cell<Option<&'static str>>>,
}

/// How a process ends without being asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crash {
    /// It is killed. The operating system goes on, and writes the data that it was given.
    Kill,
    /// The host loses its power: each sector that was not durable is kept or lost.
    PowerLoss,
}

impl Host {
    pub(super) fn new(
        index: usize,
        options: Options,
        shared_network: Arc<SharedNetwork>,
        time: Time,
        trace: Trace,
    ) -> Host {
        let name = options.membership.as_ref().map_or_else(String::new, |membership| membership.name.clone());
        let condition = Condition::default();
        condition.disk_ms.store(1, Ordering::Relaxed);
        let (client, disk) = (StoreClient::default(), SimulatedDisk::default());
        disk.set_pace(pace(&condition));
        Host {
            index,
            name,
            client,
            condition,
            disk,
            is_frozen: false,
            options,
            shared_network,
            time,
            trace,
            process: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Starts the process.
    pub(super) fn start(&mut self) {
        let runtime = || {
            let built = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            built.expect("a runtime")
        };
        let runner = System::with_tokio_rt(runtime);
        let system = System::current();
        let fatal = Rc::new(Cell::new(None));
        let started = run(self.machine(), self.options.clone(), self.client.clone(), fatal.clone(), self.trace.clone());
        let start = runner.block_on(async {
            actix::spawn(started);
            Instant::now()
        });
        self.process = Some(Process { runner, system, started_ms: self.time.now_ms(), start, fatal });
        self.trace.note(&format!("{} starts", self.name));
    }

    fn machine(&self) -> Machine {
        let (time, skew) = (self.time.clone(), self.condition.skew_ms.clone());
        let clock = move || (EPOCH_MS + time.now_ms()).saturating_add_signed(skew.load(Ordering::Relaxed));
        Machine {
            disk: Arc::new(self.disk.clone()),
            network: Arc::new(HostNetwork { shared_network: self.shared_network.clone(), host: self.index }),
            clock: WallClock::new(clock),
            runner: Arc::new(Tasks { pace: pace(&self.condition) }),
        }
    }

    /// Lets time pass for the process. A frozen one later finds that much time has passed at once. Returns the reason
    /// if the process ended by itself.
    pub(super) fn step(&mut self) -> Option<&'static str> {
        let process = self.process.as_ref().filter(|_| !self.is_frozen)?;
        System::set_current(process.system.clone());
        let until = process.start + Duration::from_millis(self.time.now_ms() - process.started_ms);
        process.runner.block_on(async {
            let missed = until.saturating_duration_since(Instant::now());
            if missed > Duration::from_millis(1) {
                tokio::time::advance(missed - Duration::from_millis(1)).await;
            }
            tokio::time::sleep_until(until).await;
        });
        process.fatal.get()
    }

    /// Ends the process.
    pub(super) fn crash(&mut self, crash: Crash) {
        self.client.0.borrow_mut().take();
        if crash == Crash::PowerLoss {
            self.shared_network.power(self.index, false);
        }
        if let Some(process) = self.process.take() {
            System::set_current(process.system.clone());
            drop(process);
        }
        self.is_frozen = false;
        self.disk = match crash {
            Crash::Kill => self.disk.crash(|_, _| true),
            Crash::PowerLoss => self.disk.crash(|_, _| draw::once_in(2)),
        };
        self.trace.note(&format!("{} ends: {crash:?}", self.name));
    }

    /// Deletes everything on the disk. The process must have ended.
    pub(super) fn lose_disk(&mut self) {
        self.disk = SimulatedDisk::default();
        self.disk.set_pace(pace(&self.condition));
    }

    /// Asks the process to end: it takes no more requests, and hands over its leadership.
    pub(super) fn stop(&mut self) {
        let Some(client) = self.client.0.borrow_mut().take() else { return };
        let stop: Request = Box::new(|store| Box::pin(store.shutdown()));
        let _ = client.send(stop); // it may be ending already
    }

    /// Gives the host its power back and starts the process again.
    pub(super) fn restart(&mut self) {
        self.shared_network.power(self.index, true);
        self.start();
    }
}

/// Returns how long accesses to a disk take.
fn pace(condition: &Condition) -> Pace {
    let disk_ms = condition.disk_ms.clone();
    Arc::new(move || Duration::from_millis(1 + draw::below(disk_ms.load(Ordering::Relaxed))))
}

/// Runs a process: opens the store, and handles requests.
async fn run(
    machine: Machine,
    options: Options,
    client: StoreClient,
    fatal: Rc<Cell<Option<&'static str>>>,
    trace: Trace,
) {
    let failed = Arc::new(parking_lot::Mutex::new(None));
    let failure = failed.clone();
    let options = Options { on_fatal: Arc::new(move |reason| *failure.lock() = Some(reason.to_owned())), ..options };
    let store = match Store::open_here(machine, options).await {
        Ok(store) => store,
        Err(error) => {
            trace.note(&format!("a store cannot be opened: {error}"));
            return fatal.set(Some("its store cannot be opened"));
        }
    };
    let (sender, mut requests) = mpsc::unbounded_channel::<Request>();
    *client.0.borrow_mut() = Some(sender);
    let mut check = tokio::time::interval(Duration::from_millis(1));
    loop {
        tokio::select! {
            biased;
            request = requests.recv() => match request {
                Some(request) => drop(actix::spawn(request(store.clone()))),
                None => return,
            },
            _ = check.tick() => {
                if failed.lock().is_some() {
                    return fatal.set(Some("its log is not durable any more"));
                }
            }
        }
    }
}
