//! Replicas of one cluster in one process, for tests.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use crate::disk::simulated::SimulatedDisk;
use crate::machine::Machine;
use crate::peer::test_net::Authority;
pub(super) use crate::peer::test_net::undisturbed;
use crate::{
    DivideError, Draft, Expectation, Initial, Key, Layout, MembersError, Membership, Mutation, OpenError, Options,
    Outcome, ReadError, Revision, Store, Table, TableId, TableOptions, Write, WriteError,
};

/// The members of a cluster, each with its disk.
pub(super) struct Cluster {
    /// The number of data groups, over which the pods are spread.
    groups: u8,
    authority: Authority,
    pub(super) addresses: BTreeMap<String, SocketAddr>,
    pub(super) disks: BTreeMap<String, SimulatedDisk>,
}

impl Cluster {
    pub(super) fn new(names: &[&str], groups: u8) -> Cluster {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init(); // once for all tests
        let addresses = names.iter().map(|name| ((*name).into(), unused_address())).collect();
        let disks = names.iter().map(|name| ((*name).into(), SimulatedDisk::default())).collect();
        Cluster { groups, authority: Authority::new(), addresses, disks }
    }

    /// Opens a member and waits until it is ready.
    pub(super) async fn open(&self, name: &str) -> Store {
        let store = self.begin(name).await;
        tokio::time::timeout(PATIENCE, store.ready()).await.expect("ready in time");
        store
    }

    /// Opens a member, whose peers may be down.
    pub(super) async fn begin(&self, name: &str) -> Store {
        self.try_to_open(name).await.unwrap()
    }

    pub(super) async fn try_to_open(&self, name: &str) -> Result<Store, OpenError> {
        self.try_to_open_as(Machine::with_disk(Arc::new(self.disks[name].clone())), self.membership(name)).await
    }

    pub(super) fn membership(&self, name: &str) -> Membership {
        Membership {
            name: name.into(),
            peer_listen: self.addresses[name],
            advertise: self.addresses[name].to_string(),
            serves: String::new(),
            initial: Initial::Members(
                self.addresses.iter().map(|(name, address)| (name.clone(), address.to_string())).collect(),
            ),
            tls: self.authority.issue(name),
        }
    }

    pub(super) async fn begin_as(&self, machine: Machine, membership: Membership) -> Store {
        self.try_to_open_as(machine, membership).await.unwrap()
    }

    async fn try_to_open_as(&self, machine: Machine, membership: Membership) -> Result<Store, OpenError> {
        let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
        let (membership, groups) = (Some(membership), self.groups);
        let shards = (groups > 0).then_some(u16::from(groups));
        let tables = [(pods(), TableOptions { shards, ..TableOptions::default() })].into();
        let options =
            Options { wal_segment_bytes: 1 << 20, membership, groups, tables, on_fatal, ..Options::new("/store") };
        Store::open_on(machine, None, options).await
    }

    pub(super) async fn open_all(&self) -> Vec<Store> {
        futures_util::future::join_all(self.addresses.keys().map(|name| self.open(name))).await
    }
}

/// Returns an address that nothing listens on, and that nothing takes from a replica while it is restarted. Linux
/// answers on all of 127.0.0.0/8, and every process of tests has a host of its own there. Connections come from
/// 127.0.0.1.
pub(super) fn unused_address() -> SocketAddr {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(1024);
    let [_, high, middle, low] = std::process::id().to_be_bytes(); // at most 2^22
    let host = Ipv4Addr::new(127, 64 + high, middle, low);
    (host, NEXT_PORT.fetch_add(1, Ordering::Relaxed)).into()
}

pub(super) fn pods() -> TableId {
    TableId::new("pods")
}

pub(super) fn put(key: &str, expectation: Expectation) -> Write {
    let draft = Draft { bytes: vec![b'0'; 200], layout: Layout::default(), ..Draft::default() };
    Write { table: pods(), key: Key::new(key), expectation, mutation: Mutation::Put(draft) }
}

pub(super) async fn create(store: &Store, key: &str) -> Revision {
    commit(store, || put(key, Expectation::Absent)).await
}

/// Creates an object, and repeats that if no leader answers in time, as it happens on a busy machine.
pub(super) async fn commit(store: &Store, write: impl Fn() -> Write) -> Revision {
    let (began, mut may_be_there) = (Instant::now(), false);
    loop {
        match store.write(write()).await {
            Ok(Outcome::Committed { object, .. }) => return object.revision(),
            Ok(Outcome::Conflict { current: Some(object) }) if may_be_there => return object.revision(),
            Ok(Outcome::Conflict { current }) => panic!("there is {current:?}"),
            Err(error) => {
                let passes = matches!(error, WriteError::Unavailable | WriteError::Unknown);
                assert!(passes && began.elapsed() < PATIENCE, "{error}");
                may_be_there |= !error.is_definite();
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the objects of a consistent read.
pub(super) async fn read(store: &Store, key: &str) -> Option<Revision> {
    let table = store.table(&pods());
    catch_up(store, &table).await;
    table.get(key).map(|object| object.revision())
}

/// Waits until a store shows what was acknowledged before. Asks again if no leader answers in time.
pub(super) async fn catch_up(store: &Store, table: &Table) {
    let began = Instant::now();
    while let Err(error) = store.barrier(table).await {
        assert!(matches!(error, ReadError::Unavailable) && began.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes a change of members or leaders, and repeats it while it fails for a reason that passes, such as an election.
pub(super) async fn again(mut change: impl AsyncFnMut() -> Result<(), MembersError>) {
    let began = Instant::now();
    while let Err(error) = change().await {
        let passes = !matches!(
            error,
            MembersError::Alone
                | MembersError::NoMember
                | MembersError::Unknown(_)
                | MembersError::UnknownGroup(_)
                | MembersError::Other { .. }
        );
        assert!(passes && began.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Transfers all groups to a member until it leads, as `leads` tells. On a busy machine an election may follow a
/// transfer at once, and then nothing gives the leadership back.
pub(super) async fn lead(store: &Store, name: &str, mut leads: impl FnMut() -> bool) {
    let began = Instant::now();
    while !leads() {
        assert!(began.elapsed() < PATIENCE, "{name} leads");
        again(async || store.transfer(None, name).await).await;
        let transferred = Instant::now();
        while !leads() && transferred.elapsed() < PATIENCE / 20 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Divides the pods, and repeats that while no leader answers in time.
pub(super) async fn divide(store: &Store, shards: u16) {
    let began = Instant::now();
    while let Err(error) = store.divide(&pods(), shards).await {
        let passes = matches!(
            error,
            DivideError::Read(ReadError::Unavailable)
                | DivideError::Write(WriteError::Unavailable | WriteError::Unknown)
        );
        assert!(passes && began.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How long tests wait for an event that must happen: only a test that hangs takes longer, even on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a condition holds.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
