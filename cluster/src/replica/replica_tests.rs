//! Three replicas in one process, over the real transport.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::net::TcpSocket;

use super::test_cluster::{Cluster, PATIENCE, again, commit, create, lead, pods, put, read, undisturbed, until};
use crate::disk::simulated::SimulatedDisk;
use crate::limits::BALANCE_INTERVAL;
use crate::machine::Machine;
use crate::peer::{Connecting, Listener, Network, TlsNetwork};
use crate::{
    Draft, Expectation, Initial, Interest, Key, Layout, Membership, Mutation, Options, Outcome, PeerTls, ReadError,
    Standing, Store, TableOptions, Write, WriteError,
};

#[tokio::test]
async fn any_replica_writes_and_reads() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let stores = cluster.open_all().await;
    for (number, store) in stores.iter().enumerate() {
        let key = format!("ns/{number}");
        let revision = create(store, &key).await;
        // The outcome of a write is visible at once where it was made, and to consistent reads everywhere.
        assert_eq!(store.table(&pods()).get(&key).map(|object| object.revision()), Some(revision));
        for other in &stores {
            assert_eq!(read(other, &key).await, Some(revision));
        }
        // A conflict returns the present object, on whichever replica it is found.
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
async fn a_cluster_survives_the_loss_of_each_member() {
    let cluster = Cluster::new(&["a", "b", "c"], 3);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    let mut written = Vec::new();
    for (round, name) in ["a", "b", "c"].into_iter().enumerate() {
        stores.remove(name).unwrap().shutdown().await;
        let began = Instant::now();
        for (other, store) in &stores {
            let key = format!("ns/{round}-{other}");
            written.push((key.clone(), create(store, &key).await));
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        stores.insert(name.into(), cluster.open(name).await);
        for (key, revision) in &written {
            assert_eq!(read(&stores[name], key).await, Some(*revision), "{key} on {name}");
        }
    }
    for store in stores.into_values() {
        store.shutdown().await;
    }
}

#[tokio::test]
async fn a_member_that_lost_its_disk_is_replaced_by_one_command() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 2);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    for number in 0..50 {
        create(&stores["a"], &format!("ns/{number}")).await;
    }
    let lost = stores.remove("c").unwrap();
    let old = lost.node();
    lost.shutdown().await;
    cluster.disks.insert("c".into(), SimulatedDisk::default());
    let admitting = async {
        let address = cluster.addresses["c"].to_string();
        again(async || stores["a"].admit("c", &address).await).await;
    };
    let (replacement, ()) = tokio::join!(cluster.open("c"), admitting);
    assert_ne!(replacement.node(), old);
    let replaced = || {
        let members = stores["b"].cluster().members;
        members.len() == 3 && members.iter().all(|member| member.votes && member.id != old)
    };
    until("everybody knows of the replacement", replaced).await;
    for number in 0..50 {
        assert!(read(&replacement, &format!("ns/{number}")).await.is_some());
    }
    // Its vote counts: without another one of the three, writes still succeed.
    stores.remove("b").unwrap().shutdown().await;
    create(&replacement, "ns/after").await;
    // Repeating the command changes nothing.
    let address = cluster.addresses["c"].to_string();
    again(async || stores["a"].admit("c", &address).await).await;
}

#[tokio::test]
async fn leaders_are_spread_transferred_and_drained() {
    let cluster = Cluster::new(&["a", "b", "c"], 5);
    let mut stores = cluster.open_all().await;
    let leads = |store: &Store, name: &str| {
        let members = store.cluster().members;
        members.into_iter().find(|member| member.name == name).map_or(Vec::new(), |member| member.leads)
    };
    let spread = |store: &Store| ["a", "b", "c"].into_iter().all(|name| leads(store, name).len() == 2);
    until("leaders are spread", || spread(&stores[0])).await;
    assert!(stores[0].transfer(Some("none"), "a").await.is_err());
    assert!(stores[0].transfer(None, "nobody").await.is_err());

    // Transferred groups stay, although leaders are spread unevenly.
    let stay = async || {
        again(async || stores[2].transfer(None, "a").await).await;
        tokio::time::sleep(BALANCE_INTERVAL * 3).await;
        leads(&stores[1], "a").len() == 6
    };
    undisturbed("transferred groups stay", stay).await;

    again(async || stores[1].drain("a").await).await;
    until("a leads nothing", || leads(&stores[1], "a").is_empty()).await;
    until("all know of it", || [0, 2].into_iter().all(|number| stores[number].cluster().members[0].drained)).await;
    assert!(stores[1].transfer(None, "a").await.is_err());
    // Others may come and go.
    stores.remove(1).shutdown().await;
    until("c leads everything", || leads(&stores[1], "c").len() == 6).await;
    stores.insert(1, cluster.open("b").await);
    until("b leads its half", || leads(&stores[1], "b").len() == 3).await;
    let stays_away = async || {
        tokio::time::sleep(BALANCE_INTERVAL * 2).await;
        leads(&stores[1], "a").is_empty()
    };
    undisturbed("a leads nothing while it is drained", stays_away).await;
    assert!(stores[1].cluster().members[0].drained, "b has learned of it");

    again(async || stores[1].undrain("a").await).await;
    until("a leads again", || spread(&stores[1])).await;
    again(async || stores[1].drain("a").await).await;
    stores.remove(0).shutdown().await;
    stores.insert(0, cluster.open("a").await);
    until("a leads again once it was started anew", || spread(&stores[1])).await;
}

#[tokio::test]
async fn a_drained_member_leads_if_no_other_can() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    again(async || stores["b"].drain("a").await).await;
    again(async || stores["b"].drain("b").await).await;
    until("c leads", || *stores["c"].leadership().borrow()).await;
    stores.remove("c").unwrap().shutdown().await;
    create(&stores["a"], "ns/first").await;
}

#[tokio::test]
async fn a_leader_with_a_full_disk_hands_over_before_it_must_refuse_writes() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let stores = cluster.open_all().await;
    lead(&stores[1], "a", || *stores[0].leadership().borrow()).await;
    cluster.disks["a"].set_room(Some(0));
    let large = |number: usize| {
        let draft = Draft { bytes: vec![b'0'; 20 << 10], layout: Layout::default(), ..Draft::default() };
        let (key, expectation) = (Key::new(&format!("ns/{number}")), Expectation::Absent);
        Write { table: pods(), key, expectation, mutation: Mutation::Put(draft) }
    };
    // More entries than its log still has, written on one replica, then on another.
    for number in 0..120 {
        commit(&stores[usize::from(number >= 60)], || large(number)).await; // none is refused for lack of room
    }
    until("another leads, since it can write nothing", || !*stores[0].leadership().borrow()).await;
    until("it is drained", || stores[1].cluster().members[0].drained).await;
    cluster.disks["a"].set_room(None);
    until("a may lead again", || !stores[1].cluster().members[0].drained).await;
    assert!(read(&stores[0], "ns/119").await.is_some());
    again(async || stores[1].transfer(None, "a").await).await;
    create(&stores[0], "ns/last").await;
}

#[tokio::test]
async fn a_store_that_is_shut_down_without_a_leader_refuses_writes_at_once() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let alone = cluster.begin("a").await;
    alone.clone().shutdown().await;
    let at_once = async || {
        let began = Instant::now();
        alone.write(put("ns/a", Expectation::Absent)).await.unwrap_err();
        began.elapsed() < crate::limits::LEADER_WAIT
    };
    undisturbed("it does not wait for a leader", at_once).await;
}

#[tokio::test]
async fn a_leader_without_a_majority_is_not_available() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    lead(&stores["b"], "a", || stores["a"].is_available() && *stores["a"].leadership().borrow()).await;
    tokio::time::sleep(crate::limits::QUORUM_SILENCE_MAX * 2).await;
    until("a is available although nothing was written for long", || stores["a"].is_available()).await;
    for name in ["b", "c"] {
        stores.remove(name).unwrap().shutdown().await;
    }
    until("a is not available", || !stores["a"].is_available()).await;
}

#[tokio::test]
async fn a_write_bound_to_a_tenure_is_made_only_in_it() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let stores = cluster.open_all().await;
    let tenure = |store: &Store| store.tenure(&store.table(&pods()));
    let refused = |outcome: Result<Outcome, WriteError>| matches!(outcome, Err(WriteError::NotLeader { .. }));
    let mut attempts = 0;
    let are_bound = async || {
        attempts += 1;
        let [one, two] = ["first", "second"].map(|name| format!("ns/{name}-{attempts}"));
        let (first_write, second_write) = (put(&one, Expectation::Absent), || put(&two, Expectation::Absent));
        lead(&stores[0], "a", || tenure(&stores[0]).is_some()).await;
        let Some(first) = tenure(&stores[0]) else { return false };
        let made = stores[0].write_from(first_write, Some(first)).await;
        if !matches!(made, Ok(Outcome::Committed { .. })) || !stores[0].holds(first) {
            return false;
        }

        lead(&stores[0], "b", || tenure(&stores[0]).is_none() && tenure(&stores[1]).is_some()).await;
        assert!(refused(stores[0].write_from(second_write(), Some(first)).await));
        lead(&stores[0], "a", || tenure(&stores[0]).is_some()).await;
        let now = tenure(&stores[0]);
        assert!(now != Some(first) && !stores[0].holds(first));
        assert!(refused(stores[0].write_from(second_write(), Some(first)).await));
        assert_eq!(read(&stores[2], &two).await, None);
        now.is_some() && stores[0].write_from(second_write(), now).await.is_ok()
    };
    undisturbed("no election ends a tenure meanwhile", are_bound).await;
}

#[tokio::test]
async fn a_member_is_removed_and_a_new_one_joins() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let stores = cluster.open_all().await;
    let first = create(&stores[0], "ns/first").await;
    again(async || stores[0].remove("b").await).await;
    stores[0].remove("b").await.unwrap_err(); // no member has that name any more
    until("two are left", || stores[0].cluster().members.len() == 2).await;
    create(&stores[2], "ns/second").await;
    assert_eq!(read(&stores[2], "ns/first").await, Some(first));
}

#[tokio::test]
async fn replicas_join_a_store_that_was_founded_alone() {
    let cluster = Cluster::new(&["a", "b"], 1);
    let founder = crate::Founder { name: "a".into(), address: cluster.addresses["a"].to_string() };
    let sharded = TableOptions { shards: Some(1), ..TableOptions::default() };
    let options = Options {
        wal_segment_bytes: 1 << 20,
        groups: 1,
        tables: [(pods(), sharded)].into(),
        founder: Some(founder),
        ..Options::new("/store")
    };
    let alone = Store::open_on(Machine::with_disk(Arc::new(cluster.disks["a"].clone())), None, options).await.unwrap();
    let first = create(&alone, "ns/first").await;
    alone.write_snapshots().await.unwrap();
    alone.shutdown().await;

    let a = cluster.open("a").await;
    let admitting = async {
        let address = cluster.addresses["b"].to_string();
        again(async || a.admit("b", &address).await).await;
    };
    let (b, ()) = tokio::join!(cluster.open("b"), admitting);
    assert_eq!(read(&b, "ns/first").await, Some(first));
    let second = create(&b, "ns/second").await;
    assert_eq!(read(&a, "ns/second").await, Some(second));
    // Revisions from before the store began cannot be read on either replica.
    assert_eq!(b.table(&pods()).floor(), a.table(&pods()).floor());
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn a_member_that_starts_without_the_others_shows_its_own_state() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let stores = cluster.open_all().await;
    let first = create(&stores[2], "ns/first").await;
    let second = create(&stores[2], "ns/second").await;
    for store in stores {
        store.shutdown().await;
    }

    let c = tokio::time::timeout(PATIENCE, cluster.begin("c")).await.expect("it waits for nobody");
    until("c knows what it is", || *c.standing().borrow() == Standing::Starting).await;
    let table = c.table(&pods());
    assert_eq!(table.get("ns/first").map(|object| object.revision()), Some(first));
    let mut changes = Vec::new();
    let mut watch = table.subscribe(Interest::default(), first).unwrap();
    while watch.read(16, &mut changes).unwrap() {}
    assert_eq!(changes.first().map(|change| change.revision()), Some(second));
    assert!(!c.is_available());
    assert!(matches!(c.barrier(&table).await, Err(ReadError::Unavailable)));
    let refused = c.write(put("ns/third", Expectation::Absent)).await;
    assert!(matches!(refused, Err(WriteError::Unavailable)), "{refused:?}");

    let b = cluster.open("b").await;
    tokio::time::timeout(PATIENCE, c.ready()).await.expect("two of three are enough");
    create(&c, "ns/third").await;
    until("both are available", || b.is_available() && c.is_available()).await;
}

#[tokio::test]
async fn a_replica_that_is_not_a_member_yet_refuses_changes() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let a = cluster.begin("a").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(*a.standing().borrow(), Standing::Waiting);
    assert!(!a.is_available());
}

#[tokio::test]
async fn a_follower_without_a_leader_is_not_available() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    again(async || stores["b"].transfer(None, "a").await).await;
    until("c follows a", || stores["c"].is_available()).await;
    let (a, b) = (stores.remove("a").unwrap(), stores.remove("b").unwrap());
    tokio::join!(a.shutdown(), b.shutdown());
    until("c is not available", || !stores["c"].is_available()).await;
}

#[tokio::test]
async fn a_member_that_was_removed_learns_of_it() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let stores = cluster.open_all().await;
    create(&stores[2], "ns/first").await;
    again(async || stores[0].remove("c").await).await;
    until("c knows", || *stores[2].standing().borrow() == Standing::Removed).await;
    assert!(!stores[2].is_available());
    // Admitted again with the data that it has, it is a member.
    let second = create(&stores[0], "ns/second").await;
    again(async || stores[1].admit("c", &cluster.addresses["c"].to_string()).await).await;
    tokio::time::timeout(PATIENCE, stores[2].ready()).await.expect("c is a member");
    assert_eq!(read(&stores[2], "ns/second").await, Some(second));
}

#[tokio::test]
async fn a_member_that_was_removed_while_it_was_down_learns_of_it_when_it_starts() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let mut stores: BTreeMap<String, Store> = cluster.addresses.keys().cloned().zip(cluster.open_all().await).collect();
    stores.remove("c").unwrap().shutdown().await;
    again(async || stores["a"].remove("c").await).await;
    let c = cluster.begin("c").await;
    until("c knows", || *c.standing().borrow() == Standing::Removed).await;
}

/// Returns the others as a member knows them: their names, and whether all of them have votes everywhere.
fn voters(store: &Store) -> Vec<(String, bool)> {
    store.cluster().members.into_iter().map(|member| (member.name, member.votes)).collect()
}

#[tokio::test]
async fn repeating_a_join_finishes_one_that_a_former_leader_began() {
    for pause_ms in [0, 3, 10, 30] {
        let cluster = Cluster::new(&["a", "b", "c", "d"], 2);
        let three = |name: &str| {
            let mut membership = cluster.membership(name);
            if let Initial::Members(members) = &mut membership.initial {
                members.remove("d");
            }
            cluster.begin_as(Machine::with_disk(Arc::new(cluster.disks[name].clone())), membership)
        };
        let stores = futures_util::future::join_all(["a", "b", "c"].map(&three)).await;
        for store in &stores {
            tokio::time::timeout(PATIENCE, store.ready()).await.expect("a cluster");
        }
        let [a, b, c] = <[Store; 3]>::try_from(stores).unwrap_or_else(|_| panic!("three"));
        again(async || b.transfer(None, "a").await).await;
        create(&b, "ns/first").await;
        let d = cluster.begin("d").await;
        let address = cluster.addresses["d"].to_string();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            a.shutdown().await;
        };
        let (_, ()) = tokio::join!(b.admit("d", &address), stop);
        again(async || c.admit("d", &address).await).await;
        tokio::time::timeout(PATIENCE, d.ready()).await.expect("d is a member");
        let all: Vec<(String, bool)> = ["a", "b", "c", "d"].map(|name| (name.to_owned(), true)).into();
        until(&format!("all vote, after {pause_ms} ms"), || voters(&b) == all).await;
        create(&d, "ns/second").await;
        let a = three("a").await;
        tokio::time::timeout(PATIENCE, a.ready()).await.expect("a is a member again");
        assert!(read(&a, "ns/second").await.is_some());
        until("all vote, as a knows", || voters(&a) == all).await;
    }
}

/// A network on which one name resolves to addresses that change.
struct Named {
    addresses: Arc<Mutex<Vec<String>>>,
}

impl Network for Named {
    fn listen(&self, address: SocketAddr, tls: &PeerTls) -> std::io::Result<Box<dyn Listener>> {
        TlsNetwork.listen(address, tls)
    }

    fn dial(&self, address: &str, tls: &PeerTls) -> Connecting {
        TlsNetwork.dial(address, tls)
    }

    fn resolve(&self, address: &str) -> BoxFuture<'static, std::io::Result<Vec<String>>> {
        assert_eq!(address, "peers.example:7443");
        std::future::ready(Ok(self.addresses.lock().clone())).boxed()
    }

    fn is_deserted(&self, address: &str) -> BoxFuture<'static, bool> {
        TlsNetwork.is_deserted(address)
    }
}

#[tokio::test]
async fn members_find_each_other_behind_one_name_and_found_one_cluster() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 1);
    // Their names resolve to 127.0.0.1. While these sockets have its ports, no connection takes one from a member.
    let held = ["a", "b", "c"].map(|_| TcpSocket::new_v4().unwrap());
    for (socket, address) in held.iter().zip(cluster.addresses.values_mut()) {
        socket.set_reuseaddr(true).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        *address = socket.local_addr().unwrap();
    }
    let all: Vec<String> = cluster.addresses.values().map(ToString::to_string).collect();
    let addresses = Arc::new(Mutex::new(all[..2].to_vec()));
    let begin = async |name: &str| {
        let initial = Initial::Found { address: "peers.example:7443".into(), size: 3 };
        // The advertised address is a name, which is resolved for each connection.
        let advertise = format!("localhost:{}", cluster.addresses[name].port());
        let network = Arc::new(Named { addresses: addresses.clone() });
        let machine = Machine { network, ..Machine::with_disk(Arc::new(cluster.disks[name].clone())) };
        cluster.begin_as(machine, Membership { advertise, initial, ..cluster.membership(name) }).await
    };
    let stores = futures_util::future::join_all(["a", "b", "c"].map(&begin)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(stores.iter().all(|store| store.cluster().members.is_empty()), "c has not been found by a and b");
    // No member listens at one of the addresses any more.
    *addresses.lock() = [&all[..], &["127.0.0.1:1".to_owned()]].concat();
    for store in &stores {
        tokio::time::timeout(PATIENCE, store.ready()).await.expect("a cluster");
    }
    let seen = stores[0].cluster();
    let ports: Vec<String> = seen.members.iter().map(|member| member.address.clone()).collect();
    assert_eq!(ports, cluster.addresses.values().map(|at| format!("localhost:{}", at.port())).collect::<Vec<_>>());
    assert!(stores.iter().all(|store| store.cluster().cluster == seen.cluster && !seen.cluster.is_empty()));
    create(&stores[1], "ns/first").await;
    for store in stores {
        store.shutdown().await;
    }
    // A later start does not look for members by the name.
    addresses.lock().clear();
    let stores = futures_util::future::join_all(["a", "b", "c"].map(&begin)).await;
    for store in &stores {
        tokio::time::timeout(PATIENCE, store.ready()).await.expect("the same cluster");
        assert!(read(store, "ns/first").await.is_some() && store.cluster().cluster == seen.cluster);
    }
}

#[tokio::test]
async fn members_with_swapped_addresses_found_nothing_until_these_are_corrected() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let crossed = |name: &str, at: &str| Membership { peer_listen: cluster.addresses[at], ..cluster.membership(name) };
    for places in [["a", "c", "b"], ["b", "a", "c"], ["b", "c", "a"]] {
        let begin = |(name, at): (&str, &str)| {
            let machine = Machine::with_disk(Arc::new(cluster.disks[name].clone()));
            cluster.begin_as(machine, crossed(name, at))
        };
        let members = ["a", "b", "c"].into_iter().zip(places);
        let stores = futures_util::future::join_all(members.map(begin)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let nothing = |store: &Store| store.cluster().members.is_empty() && store.cluster().cluster.is_empty();
        assert!(stores.iter().all(nothing), "{places:?}");
        for store in stores {
            store.shutdown().await;
        }
    }
    let stores = cluster.open_all().await;
    let first = create(&stores[1], "ns/first").await;
    assert_eq!(read(&stores[2], "ns/first").await, Some(first));
}
