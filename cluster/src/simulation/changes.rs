//! Changes of members, leaders and divisions of tables that operators make while clients are busy.
//!
//! An operator asks one host after the other until one has made the change.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::draw;
use super::host::StoreClient;
use super::network::address;
use super::world::World;
use crate::{MembersError, Standing, Store, TableId};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(8);
/// The largest number of shards into which a table is divided.
const SHARDS_MAX: u64 = 4;

/// Makes changes of members, one at a time: the disks of a majority of the members must never be lost.
#[derive(Clone, Default)]
pub(super) struct MemberChanges(Rc<Cell<bool>>);

impl MemberChanges {
    /// Returns whether a change of members is in progress.
    pub(super) fn is_going_on(&self) -> bool {
        self.0.get()
    }

    /// Admits a host that has lost its disk and will come back, as the replacement of itself.
    pub(super) fn replace(&self, world: &World, host: usize) {
        self.begin(world, vec![host], false);
    }

    /// Removes a host, and admits it again with the disk that it has.
    pub(super) fn readmit(&self, world: &World, host: usize) {
        self.begin(world, vec![host], true);
    }

    /// Removes all hosts but one, one after the other, and admits them again with the disks that they have.
    pub(super) fn shrink(&self, world: &World, remaining: usize) {
        let mut leaving: Vec<usize> = (0..world.hosts.len()).filter(|host| *host != remaining).collect();
        draw::shuffle(&mut leaving);
        self.begin(world, leaving, true);
    }

    fn begin(&self, world: &World, hosts: Vec<usize>, removes: bool) {
        self.0.set(true);
        let (clients, is_going_on, trace) = (world.clients(), self.0.clone(), world.trace.clone());
        let names: Vec<String> = world.hosts.iter().map(|host| host.name.clone()).collect();
        world.spawn(async move {
            if removes {
                for host in &hosts {
                    // The replica may be asked to lead at the moment at which it loses its vote.
                    let asked = if draw::once_in(2) { draw::within(1..6) } else { 0 };
                    let asking = async {
                        for _ in 0..asked {
                            sleep(Duration::from_millis(draw::below(100))).await;
                            make_leader(draw::one_of(&clients), &names[*host]).await;
                        }
                    };
                    tokio::join!(remove(&clients, *host, &names[*host]), asking);
                    trace.note(&format!("{} is removed", names[*host]));
                }
                sleep(Duration::from_millis(draw::within(1..2_000))).await;
            }
            for host in hosts {
                admit(&clients, host, &names[host]).await;
                trace.note(&format!("{} is admitted", names[host]));
            }
            is_going_on.set(false);
        });
    }
}

async fn remove(clients: &[StoreClient], host: usize, name: &str) {
    let name = name.to_owned();
    until(clients, host, move |store, _| {
        let name = name.clone();
        async move {
            match store.remove(&name).await {
                // An earlier attempt removed it, and its answer was lost.
                Ok(()) | Err(MembersError::Unknown(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        }
    })
    .await;
}

async fn admit(clients: &[StoreClient], host: usize, name: &str) {
    let name = name.to_owned();
    until(clients, host, move |store, address| {
        let name = name.clone();
        async move { store.admit(&name, &address).await.map_err(|error| error.to_string()) }
    })
    .await;
}

/// Asks a host to make another one the leader of everything. It may refuse.
async fn make_leader(client: &StoreClient, name: &str) {
    let name = name.to_owned();
    let asked = client.ask(move |store| async move { drop(store.transfer(None, &name).await) });
    let _ = timeout(PATIENCE, asked).await;
}

/// Asks random other hosts for a change of one host, until one of them has made it.
async fn until<F: Future<Output = Result<(), String>> + 'static>(
    clients: &[StoreClient],
    about: usize,
    work: impl Fn(Store, String) -> F + Clone + 'static,
) {
    loop {
        let asked = (about + 1 + draw::below(clients.len() as u64 - 1) as usize) % clients.len();
        let (work, address) = (work.clone(), address(about).to_string());
        let answer = timeout(
            PATIENCE,
            clients[asked].ask(move |store| async move {
                match is_member(&store) {
                    true => work(store, address).await,
                    false => Err("it is no member".into()),
                }
            }),
        );
        if let Ok(Ok(Ok(()))) = answer.await {
            return;
        }
        sleep(Duration::from_millis(draw::within(50..300))).await;
    }
}

/// Returns whether a replica's state may be shown: the server checks the same before it reads.
pub(super) fn is_member(store: &Store) -> bool {
    Standing::is_member(*store.standing().borrow())
}

/// Asks a host to make another one the leader of everything.
pub(super) fn transfer(world: &World, host: usize, to: usize) {
    let (client, name) = (world.hosts[host].client.clone(), world.hosts[to].name.clone());
    world.spawn(async move { make_leader(&client, &name).await });
}

/// Asks a host to divide a table into another number of shards.
pub(super) fn divide(world: &World, host: usize, table: &'static str) {
    let (client, shards) = (world.hosts[host].client.clone(), 1 + draw::below(SHARDS_MAX) as u16);
    world.trace.note(&format!("{table} gets {shards} shards"));
    world.spawn(async move {
        let table = TableId::new(table);
        let _ = client.ask(move |store| async move { drop(store.divide(&table, shards).await) }).await;
    });
}
