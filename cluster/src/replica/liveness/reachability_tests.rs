//! Members between which a link is cut.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all, ready};
use tokio::sync::watch;

use crate::limits::{PEER_SILENCE_MAX, REACHES_FEWER_PATIENCE};
use crate::machine::Machine;
use crate::peer::{Connected, Connecting, Listener, Network, TlsNetwork};
use crate::replica::test_cluster::{Cluster, PATIENCE, again, create, read, undisturbed, until};
use crate::{PeerTls, Store};

/// The network of a member whose link to one other member can be cut.
struct Severable {
    /// The address of that member.
    to: String,
    cut: watch::Sender<bool>,
}

impl Network for Severable {
    fn listen(&self, address: SocketAddr, tls: &PeerTls) -> io::Result<Box<dyn Listener>> {
        TlsNetwork.listen(address, tls)
    }

    fn dial(&self, address: &str, tls: &PeerTls) -> Connecting {
        if address != self.to {
            return TlsNetwork.dial(address, tls);
        }
        if *self.cut.borrow() {
            return ready(Err(io::ErrorKind::TimedOut.into())).boxed();
        }
        let mut cut = self.cut.subscribe();
        let carry = |connected: io::Result<Connected>| {
            let Connected { mut stream, name } = connected?;
            let (near, mut far) = tokio::io::duplex(64 << 10);
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut stream, &mut far) => {}
                    _ = cut.wait_for(|cut| *cut) => {}
                }
            });
            Ok(Connected { stream: Box::new(near), name })
        };
        TlsNetwork.dial(address, tls).map(carry).boxed()
    }

    fn is_deserted(&self, address: &str) -> BoxFuture<'static, bool> {
        match address == self.to && *self.cut.borrow() {
            true => ready(false).boxed(),
            false => TlsNetwork.is_deserted(address),
        }
    }
}

/// Opens all members. The link between the first and the last one can be cut.
async fn open_severable(cluster: &Cluster, cut: &watch::Sender<bool>) -> Vec<Store> {
    let names: Vec<&String> = cluster.addresses.keys().collect();
    let (first, last) = (names[0], names[names.len() - 1]);
    let opened = names.iter().map(|name| async move {
        let to = match *name {
            name if name == first => cluster.addresses[last].to_string(),
            name if name == last => cluster.addresses[first].to_string(),
            _ => String::new(),
        };
        let network = Arc::new(Severable { to, cut: cut.clone() });
        let machine = Machine { network, ..Machine::with_disk(Arc::new(cluster.disks[*name].clone())) };
        let store = cluster.begin_as(machine, cluster.membership(name)).await;
        tokio::time::timeout(PATIENCE, store.ready()).await.expect("ready in time");
        store
    });
    join_all(opened).await
}

/// Returns for each member how many groups it leads and whether it is drained, as `store` sees it.
fn leads(store: &Store) -> Vec<(usize, bool)> {
    store.cluster().members.iter().map(|member| (member.leads.len(), member.drained)).collect()
}

#[tokio::test]
async fn the_member_that_reaches_all_leads_while_the_link_of_two_others_is_cut() {
    let (cluster, cut) = (Cluster::new(&["a", "b", "c"], 2), watch::Sender::new(false));
    let stores = open_severable(&cluster, &cut).await;
    let a_leads = async || {
        again(async || stores[0].transfer(None, "a").await).await;
        tokio::time::sleep(PEER_SILENCE_MAX).await;
        leads(&stores[1]) == [(3, false), (0, false), (0, false)]
    };
    undisturbed("a leads everything", a_leads).await;
    for round in 0..3 {
        cut.send_replace(true);
        let began = Instant::now();
        let written = join_all(stores.iter().enumerate().map(async |(number, store)| {
            let key = format!("ns/{round}-{number}");
            (create(store, &key).await, began.elapsed(), key)
        }));
        for (revision, took, key) in written.await {
            assert!(took < PATIENCE / 4, "{key} took {took:?}");
            assert_eq!(join_all(stores.iter().map(|store| read(store, &key))).await, [Some(revision); 3]);
        }
        until("b leads everything", || leads(&stores[1]) == [(0, true), (3, false), (0, true)]).await;
        cut.send_replace(false);
        until("all may lead", || leads(&stores[round]).iter().all(|(_, drained)| !drained)).await;
        until("leaders are spread", || leads(&stores[round]).iter().all(|(leads, _)| *leads == 1)).await;
    }
    join_all(stores.into_iter().map(Store::shutdown)).await;
}

#[tokio::test]
async fn leaders_stay_when_a_member_is_down() {
    let stay = async || {
        let cluster = Cluster::new(&["a", "b", "c"], 1);
        let mut stores = cluster.open_all().await;
        again(async || stores[0].transfer(None, "a").await).await;
        let a_leads = |store: &Store| leads(store)[..2] == [(2, false), (0, false)];
        let began = Instant::now();
        while !a_leads(&stores[1]) && began.elapsed() < PATIENCE / 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stores.pop().unwrap().shutdown().await;
        let mut stay = true;
        let until_noticed = Instant::now() + 2 * (PEER_SILENCE_MAX + REACHES_FEWER_PATIENCE);
        while Instant::now() < until_noticed {
            stay &= stores.iter().all(a_leads);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        join_all(stores.into_iter().map(Store::shutdown)).await;
        stay
    };
    undisturbed("leaders stay", stay).await;
}
