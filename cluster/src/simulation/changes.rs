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
        self.begin(world, host, false);
    }

    /// Removes a host, and admits it again with the disk that it has.
    pub(super) fn readmit(&self, world: &World, host: usize) {
        self.begin(world, host, true);
    }

    fn begin(&self, world: &World, host: usize, removes: bool) {
        self.0.set(true);
        let (clients, name, is_going_on) = (world.clients(), world.hosts[host].name.clone(), self.0.clone());
        let trace = world.trace.clone();
        world.spawn(async move {
            if removes {
                let named = name.clone();
                until(&clients, host, move |store, _| {
                    let name = named.clone();
                    async move {
                        match store.remove(&name).await {
                            // An earlier attempt removed it, and its answer was lost.
                            Ok(()) | Err(MembersError::Unknown(_)) => Ok(()),
                            Err(error) => Err(error.to_string()),
                        }
                    }
                })
                .await;
                trace.note(&format!("{name} is removed"));
                sleep(Duration::from_millis(draw::within(1..2_000))).await;
            }
            let named = name.clone();
            until(&clients, host, move |store, address| {
                let name = named.clone();
                async move { store.admit(&name, &address).await.map_err(|error| error.to_string()) }
            })
            .await;
            trace.note(&format!("{name} is admitted"));
            is_going_on.set(false);
        });
    }
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
    world.spawn(async move {
        let _ = client.ask(move |store| async move { drop(store.transfer(None, &name).await) }).await;
    });
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
