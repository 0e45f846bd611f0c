//! Three replicas in one process, over the real transport.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::peer::test_net::Authority;
use crate::wal::simulated_disk::SimulatedDisk;
use crate::{Draft, Expectation, Key, Layout, Membership, Mutation, Options, Outcome, Revision, Store, TableId, Write};

/// The members of a cluster, each with its disk.
struct Cluster {
    authority: Authority,
    addresses: BTreeMap<String, SocketAddr>,
    disks: BTreeMap<String, SimulatedDisk>,
}

impl Cluster {
    fn new(names: &[&str]) -> Cluster {
        // Ports that were free a moment ago.
        let listeners: Vec<TcpListener> = names.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses = names.iter().zip(&listeners);
        let addresses = addresses.map(|(name, listener)| ((*name).into(), listener.local_addr().unwrap())).collect();
        let disks = names.iter().map(|name| ((*name).into(), SimulatedDisk::default())).collect();
        Cluster { authority: Authority::new(), addresses, disks }
    }

    async fn open(&self, name: &str) -> Store {
        let membership = Membership {
            name: name.into(),
            peer_listen: self.addresses[name],
            initial: self.addresses.iter().map(|(name, address)| (name.clone(), address.to_string())).collect(),
            tls: self.authority.issue(),
        };
        let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
        let membership = Some(membership);
        let options = Options { wal_segment_bytes: 1 << 20, membership, on_fatal, ..Options::new("/store") };
        Store::open_on(Arc::new(self.disks[name].clone()), None, options).await.unwrap()
    }

    async fn open_all(&self) -> Vec<Store> {
        futures_util::future::join_all(self.addresses.keys().map(|name| self.open(name))).await
    }
}

fn pods() -> TableId {
    TableId::new("pods")
}

fn put(key: &str, expectation: Expectation) -> Write {
    let draft = Draft { bytes: vec![b'0'; 200], layout: Layout::default(), ..Draft::default() };
    Write { table: pods(), key: Key::new(key), expectation, mutation: Mutation::Put(draft) }
}

async fn create(store: &Store, key: &str) -> Revision {
    match store.write(put(key, Expectation::Absent)).await.unwrap() {
        Outcome::Committed { object, .. } => object.revision(),
        Outcome::Conflict { .. } => panic!("{key} is there"),
    }
}

/// What a most recent read shows.
async fn read(store: &Store, key: &str) -> Option<Revision> {
    let table = store.table(&pods());
    store.barrier(&table).await.unwrap();
    table.get(key).map(|object| object.revision())
}

#[tokio::test]
async fn any_replica_writes_and_reads() {
    let cluster = Cluster::new(&["a", "b", "c"]);
    let stores = cluster.open_all().await;
    for (number, store) in stores.iter().enumerate() {
        let key = format!("ns/{number}");
        let revision = create(store, &key).await;
        // What a write has come to is seen at once where it was made, and by most recent reads everywhere.
        assert_eq!(store.table(&pods()).get(&key).map(|object| object.revision()), Some(revision));
        for other in &stores {
            assert_eq!(read(other, &key).await, Some(revision));
        }
        // A conflict shows what is there, wherever it is found.
        for other in &stores {
            match other.write(put(&key, Expectation::Absent)).await.unwrap() {
                Outcome::Conflict { current } => assert_eq!(current.unwrap().revision(), revision),
                Outcome::Committed { .. } => panic!("{key} was there"),
            }
        }
    }
    for store in stores {
        store.shutdown().await;
    }
}

#[tokio::test]
async fn a_cluster_outlives_each_of_its_members() {
    let cluster = Cluster::new(&["a", "b", "c"]);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    let mut written = Vec::new();
    for (round, name) in ["a", "b", "c"].into_iter().enumerate() {
        stores.remove(name).unwrap().shutdown().await;
        let began = Instant::now();
        for (other, store) in &stores {
            let key = format!("ns/{round}-{other}");
            written.push((key.clone(), create(store, &key).await));
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        stores.insert(name.into(), cluster.open(name).await);
        for (key, revision) in &written {
            assert_eq!(read(&stores[name], key).await, Some(*revision), "{key} on {name}");
        }
    }
    for store in stores.into_values() {
        store.shutdown().await;
    }
}
