//! Everything for which time passes: the hosts, the network between them, and the clients outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::chance::Seeded;
use super::draw;
use super::host::{Crash, Host, StoreClient};
use super::network::address;
use super::shared_network::SharedNetwork;
use super::time::Time;
use super::trace::Trace;
use crate::disk::KeyWrapping;
use crate::disk::simulated_keys::Adding;
use crate::peer::test_net::Authority;
use crate::{Initial, Membership, Options, PeerTls, TableId, TableOptions};

/// A table in the group `default`.
pub(super) const PLAIN: &str = "plain";
/// A table that is spread over groups.
pub(super) const SPREAD: &str = "spread";
/// The history window, which is longer than any simulation.
const HISTORY: Duration = Duration::from_secs(300);

/// Everything in one simulation.
pub(super) struct World {
    pub(super) hosts: Vec<Host>,
    pub(super) shared_network: Arc<SharedNetwork>,
    pub(super) time: Time,
    pub(super) trace: Trace,
    /// Failures that no fault explains.
    pub(super) failures: Vec<String>,
    climate: BaseConditions,
    outside: Outside,
    _seeded: Seeded,
}

/// The condition of hosts and links without a fault.
#[derive(Clone, Copy)]
struct BaseConditions {
    /// How long an access to a disk takes at most, in milliseconds.
    disk_ms: u64,
    /// How much longer than the minimum a message takes at most, in milliseconds.
    jitter_ms: u64,
}

/// The runtime of the clients.
struct Outside {
    runtime: Runtime,
    tasks: LocalSet,
    start: Instant,
}

impl World {
    pub(super) fn new(seed: u64, hosts: usize, is_printed: bool) -> World {
        let seeded = Seeded::with(seed);
        let time = Time::default();
        let trace = Trace::new(time.clone(), is_printed);
        let shared_network = SharedNetwork::new(hosts, time.clone(), trace.clone());
        let host = |index| Host::new(index, options(index, hosts), shared_network.clone(), time.clone(), trace.clone());
        let hosts = (0..hosts).map(host).collect();
        let built = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let (runtime, tasks) = (built.expect("a runtime"), LocalSet::new());
        let start = runtime.block_on(async { Instant::now() });
        let outside = Outside { runtime, tasks, start };
        let climate = BaseConditions { disk_ms: *draw::one_of(&[2, 5, 30]), jitter_ms: *draw::one_of(&[2, 2, 20]) };
        let world =
            World { hosts, shared_network, time, trace, failures: Vec::new(), climate, outside, _seeded: seeded };
        (0..world.hosts.len()).for_each(|host| world.calm_disk(host));
        world.calm_network();
        world
    }

    /// Makes a disk as fast as it is without a fault.
    pub(super) fn calm_disk(&self, host: usize) {
        self.hosts[host].condition.disk_ms.store(self.climate.disk_ms, Ordering::Relaxed);
    }

    /// Makes links as fast as they are without a fault.
    pub(super) fn calm_network(&self) {
        self.shared_network.set_jitter(self.climate.jitter_ms);
    }

    /// Starts a client.
    pub(super) fn spawn(&self, client: impl Future<Output = ()> + 'static) {
        self.outside.tasks.spawn_local(client);
    }

    pub(super) fn clients(&self) -> Vec<StoreClient> {
        self.hosts.iter().map(|host| host.client.clone()).collect()
    }

    /// Lets a millisecond pass.
    pub(super) fn step(&mut self) {
        self.time.set(self.time.now_ms() + 1);
        self.shared_network.tick();
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        draw::shuffle(&mut order);
        for index in order {
            if let Some(why) = self.hosts[index].step() {
                self.failures.push(format!("{} ended: {why}", self.hosts[index].name));
                self.hosts[index].crash(Crash::Kill);
            }
        }
        let until = self.outside.start + Duration::from_millis(self.time.now_ms());
        let Outside { runtime, tasks, .. } = &self.outside;
        runtime.block_on(tasks.run_until(async move { tokio::time::sleep_until(until).await }));
    }

    /// Lets time pass until a condition holds, for at most `for_ms`. Returns whether it holds.
    pub(super) fn wait(&mut self, for_ms: u64, mut holds: impl FnMut(&World) -> bool) -> bool {
        let end = self.time.now_ms() + for_ms;
        while !holds(self) {
            if self.time.now_ms() >= end {
                return false;
            }
            self.step();
        }
        true
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Before the source of random numbers is dropped.
        self.hosts.iter_mut().filter(|host| host.is_running()).for_each(|host| host.crash(Crash::Kill));
    }
}

/// Returns the options of a host's store.
fn options(host: usize, hosts: usize) -> Options {
    let name = |host: usize| format!("host{}", host + 1);
    let initial: BTreeMap<String, String> = (0..hosts).map(|host| (name(host), address(host).to_string())).collect();
    let (peer_listen, advertise) = (address(host), address(host).to_string());
    let initial = Initial::Members(initial);
    let membership =
        Membership { name: name(host), peer_listen, advertise, serves: String::new(), initial, tls: tls() };
    let spread = TableOptions { shards: Some(4), ..TableOptions::default() };
    Options {
        history_age_max: HISTORY,
        wal_segment_bytes: 64 << 10,
        // One of the hosts encrypts its files: nothing may depend on that.
        key_wrapping: (host == 1).then(|| Adding::with(Some(1), &[1]) as Arc<dyn KeyWrapping>),
        membership: Some(membership),
        groups: 2,
        tables: [(TableId::new(SPREAD), spread)].into(),
        ..Options::new("/store")
    }
}

/// Returns a TLS configuration, which no simulated connection uses.
fn tls() -> PeerTls {
    static TLS: OnceLock<PeerTls> = OnceLock::new();
    TLS.get_or_init(|| Authority::new().issue("anybody")).clone()
}
