//! Starts a store: its directory, its log, its groups, and the thread that they share.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, LocalBoxFuture};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::chance;
use crate::clock::HybridClock;
use crate::disk::{Disk, EncryptedDisk, aside};
use crate::group::{RevisionExpiry, Tables, close_on_demand};
use crate::limits::{PEER_VERSION, STOP_WAIT, TRIM_INTERVAL};
use crate::machine::Machine;
use crate::peer::peer_view::PeerView;
use crate::peer::{Hello, Network, Peers, Transport, TransportOptions};
use crate::raft::{Node, StateMachine};
use crate::replica::exchange::Exchange;
use crate::replica::forming::alone;
use crate::replica::forming::formation;
use crate::replica::forming::identity::{FORFEITED, Identity, IdentityFile, SINGLE_NAME};
use crate::replica::groups::Groups;
use crate::replica::leading::balance;
use crate::replica::leading::placement::Placement;
use crate::replica::leading::room;
use crate::replica::liveness::pulse;
use crate::replica::liveness::succession;
use crate::replica::running::Running;
use crate::replica::sharding::dividing;
use crate::replica::sharding::mapping;
use crate::replica::standing::{self, Standing};
use crate::replica::starter::{Failure, Starter, open_machine, renew_snapshots};
use crate::roster::Replica;
use crate::shard_map::{DEFAULT_GROUP, ShardMap, number_of_group};
use crate::tasks::{self, Task};
use crate::wal::{self, Announced, Announcer, Recovered, Wal, WalError, WalOptions};
use crate::{Founder, Membership, OpenError, Options};

/// Runs a store until it is stopped. All of it except the log's writer runs on this thread, so that a write passes from
/// one part to the next without waking another thread.
pub(crate) async fn run(
    machine: Machine,
    options: Options,
    tables: Arc<Tables>,
    started: oneshot::Sender<Result<Running, OpenError>>,
    stopped: oneshot::Receiver<()>,
) {
    let Started { running, transport, joining, tasks } = match start(&machine, &options, &tables).await {
        Ok(started) => started,
        Err(error) => return drop(started.send(Err(error))),
    };
    let groups = running.groups.clone();
    let wal = running.wal.clone();
    tasks::detached_here("closing", close_on_demand(tables.clone()));
    let background_task = options.background_task.as_ref();
    let background_task = background_task.map(|background_task| tasks::owned("background", background_task()));
    // Revisions that clients saw before the last stop must become visible again soon, even if no reader asks a group to
    // close.
    tables.demand();
    let placement = running.placement.clone();
    let succession = running.peers.clone().map(|peers| {
        let (placement, network) = (placement.clone(), machine.network.clone());
        let succeed = async move || succession::succeed(placement.clone(), peers.clone(), network.clone()).await;
        tasks::service("succession", succeed)
    });
    let joining = tasks::owned("joining", joining);
    if started.send(Ok(running)).is_ok() {
        tokio::select! {
            biased;
            () = maintain(&groups, &tables, options.history_age_max) => {}
            () = balance::keep_balanced(&placement) => {}
            _ = stopped => {}
        }
    }
    drop((joining, background_task, tasks, succession));
    let nodes = groups.nodes();
    // Leaders hand over their leadership, so that writes need not wait for an election.
    future::join_all(nodes.iter().map(|node| node.leadership().give_up())).await;
    // A group that waits for room on the disk ends only when the log is closed, so this wait is bounded.
    let _ = tokio::time::timeout(STOP_WAIT, future::join_all(nodes.iter().map(Node::shutdown))).await;
    if let Some(transport) = transport {
        transport.shutdown();
    }
    wal.close();
}

/// A store that has been started.
struct Started {
    running: Running,
    transport: Option<Arc<Transport>>,
    /// Makes this replica a member, and then keeps its standing up to date, as long as the future is polled.
    joining: LocalBoxFuture<'static, ()>,
    /// Background tasks of the running store.
    tasks: [Task; 4],
}

async fn start(machine: &Machine, options: &Options, tables: &Arc<Tables>) -> Result<Started, OpenError> {
    let began = Instant::now();
    let encrypted: Arc<dyn Disk> = Arc::new(EncryptedDisk::over(machine.disk.clone(), options.key_wrapping.clone()));
    let disk = &encrypted;
    let directory = options.directory.join("wal");
    let failed = |source| OpenError::Directory { directory: options.directory.clone(), source };
    disk.create_directory(&directory).map_err(failed)?;
    ShardMap::founding(options, &BTreeMap::new())?; // reports impossible options at once
    let (segment_bytes, on_fatal, runner) =
        (options.wal_segment_bytes, options.on_fatal.clone(), machine.runner.clone());
    let wal_options = WalOptions { directory: directory.clone(), segment_bytes, on_fatal, runner };
    let is_known = IdentityFile::is_there(&*machine.disk, &options.directory).map_err(failed)?;
    if !is_known && wal::is_begun(&**disk, &directory).map_err(failed)? {
        // Under a new id this replica would go on without its past, and could vote twice in a term.
        return Err(OpenError::Unidentified { path: IdentityFile::path(&options.directory) });
    }
    let local = LocalReplica::open(machine.disk.clone(), options)?;
    let (log, announced) = read_log(disk.clone(), wal_options.clone());
    let applying = begin_applying(options, tables, disk, announced);
    let log = log.await.map_err(failed)??;
    tracing::info!(entries = log.entries(), elapsed_ms = elapsed_ms(began), "read the write-ahead log");
    let wal = Wal::start(disk.clone(), wal_options, log)?;
    if wal.is_new() && !local.identity.get().cluster.is_empty() {
        return Err(WalError::Missing { path: directory }.into()); // with the log it lost its votes
    }
    local.begin_cluster(&wal)?;
    if disk.has_keys() {
        // Not before the log was accepted: a server that does not start must leave the snapshots as they are.
        renew_snapshots(options, disk, wal.groups()).await.map_err(failed)??;
    }
    let (id, groups) = (local.identity.get().id, Groups::default());
    let placement = Arc::new(Placement::new(id, local.hello.clone(), groups.clone(), tables.clone()));
    let peer_view = Arc::<PeerView>::default();
    let exchange = Arc::new(local.exchange(&groups, &placement, &peer_view));
    let transport = local.listen(&machine.network, tables.hybrid_clock().clone(), &exchange)?;
    let peers = transport.clone().map(|transport| transport as Arc<dyn Peers>);
    let machine = Machine { disk: disk.clone(), ..machine.clone() };
    let (options, tables) = (options.clone(), tables.clone());
    let on_lost = local.when_lost(options.on_fatal.clone());
    let applying = Cell::new(Some(applying));
    let starter = Starter { machine, options, tables, groups, wal, id, peers, on_lost, applying };
    start_groups(&starter).await?;
    local.describe(&starter.groups).await?;
    if let Some(peers) = &starter.peers {
        tasks::detached_here("pulse", pulse::keep(placement.clone(), peers.clone(), peer_view));
    }
    let starter = Rc::new(starter);
    let tasks = keep_up(&starter, &placement);
    let standing = watch::Sender::new(Standing::Waiting);
    let (identity, shown) = (local.identity.clone(), standing.subscribe());
    let joining = local.join_in(&starter, standing).await?;
    let Starter { tables, groups, wal, peers, .. } = &*starter;
    let objects: u64 = tables.of_users().iter().map(|table| table.len()).sum();
    tracing::info!(objects, groups = groups.all().len(), elapsed_ms = elapsed_ms(began), "the store is open");
    let (groups, wal, peers) = (groups.clone(), wal.clone(), peers.clone());
    let running = Running { id, identity, peers, groups, wal, standing: shown, placement };
    Ok(Started { running, transport, joining, tasks })
}

/// Starts the background work of this replica, which goes on as long as the store is open.
fn keep_up(starter: &Rc<Starter>, placement: &Arc<Placement>) -> [Task; 4] {
    let (mapping, dividing) = (starter.clone(), starter.clone());
    let (room, pace) = ((starter.wal.clone(), placement.clone()), (starter.wal.clone(), placement.clone()));
    [
        tasks::service("groups", async move || mapping::follow(mapping.clone()).await),
        tasks::service("dividing", async move || dividing::follow(dividing.clone()).await),
        tasks::service("room", async move || room::follow(room.0.clone(), room.1.clone()).await),
        tasks::service("pace", async move || room::keep_pace(pace.0.clone(), pace.1.clone()).await),
    ]
}

/// Starts the default group, and every group that has entries in the log, whatever the shard map says.
async fn start_groups(starter: &Starter) -> Result<(), OpenError> {
    let default = starter.start(0).await?;
    default.leader_client.node().reading().recovered().await;
    mapping::look(&starter.tables);
    for group_number in starter.wal.groups().iter().filter_map(|name| number_of_group(name)) {
        starter.start(group_number).await?;
    }
    Ok(())
}

/// This replica, before its groups are started.
struct LocalReplica<'a> {
    membership: Option<&'a Membership>,
    founder: Option<&'a Founder>,
    identity: Arc<IdentityFile>,
    hello: watch::Sender<Hello>,
}

impl<'a> LocalReplica<'a> {
    fn open(disk: Arc<dyn Disk>, options: &'a Options) -> Result<LocalReplica<'a>, OpenError> {
        let membership = options.membership.as_ref();
        let founder = options.founder.as_ref();
        let named = membership.map(|membership| &membership.name).or(founder.map(|founder| &founder.name));
        let name = named.map_or(SINGLE_NAME, String::as_str);
        let name = (!options.is_survivor).then_some(name);
        let failed = |source| OpenError::Directory { directory: options.directory.clone(), source };
        let identity = Arc::new(IdentityFile::open(disk, &options.directory, name).map_err(failed)?);
        let Identity { name, id, cluster } = identity.get();
        let address = membership.map_or_else(String::new, |membership| membership.advertise.clone());
        let serves = membership.map_or_else(String::new, |membership| membership.serves.clone());
        let life = chance::number();
        let hello =
            Hello { cluster, member: id, name, version: PEER_VERSION, address, serves, life, ..Hello::default() };
        Ok(LocalReplica { membership, founder, identity, hello: watch::Sender::new(hello) })
    }

    fn exchange(&self, groups: &Groups, placement: &Arc<Placement>, peer_view: &Arc<PeerView>) -> Exchange {
        let (hello, identity) = (self.hello.clone(), self.identity.clone());
        let belongs = move || hello.send_modify(|hello| hello.cluster = identity.get().cluster);
        Exchange::new(self.identity.clone(), placement.clone(), groups.clone(), peer_view.clone(), belongs)
    }

    /// Gives this replica a cluster id if it was a single replica until now and will be one of several. This happens
    /// before it talks to the others: they would take a replica without a cluster id for an empty one, and found a new
    /// cluster with it.
    fn begin_cluster(&self, wal: &Wal) -> Result<(), OpenError> {
        let was_alone = self.identity.get().cluster.is_empty() && wal.state(wal.group(DEFAULT_GROUP)).last.is_some();
        if self.membership.is_some() && was_alone {
            self.identity.belong(&formation::new_cluster()).map_err(OpenError::Identity)?;
            let Identity { name, cluster, .. } = self.identity.get();
            tracing::info!(name, cluster, "this replica was alone until now: it is the first member of a new cluster");
            self.hello.send_modify(|hello| hello.cluster = cluster);
        }
        Ok(())
    }

    /// Records this replica's peer address in the groups, as long as it is their only member.
    async fn describe(&self, groups: &Groups) -> Result<(), OpenError> {
        let Some(membership) = self.membership else { return Ok(()) };
        let own = Replica { name: membership.name.clone(), address: membership.advertise.clone() };
        alone::describe(groups, &own).await
    }

    /// Returns the function to call when this replica has lost acknowledged writes. It records that the replica must
    /// never vote again, and ends the process.
    fn when_lost(&self, on_fatal: Arc<dyn Fn(&str) + Send + Sync>) -> Arc<dyn Fn() + Send + Sync> {
        let identity = self.identity.clone();
        Arc::new(move || {
            if let Err(error) = identity.forfeit() {
                tracing::error!(%error, "cannot record that this replica must not vote any more");
            }
            on_fatal(FORFEITED);
        })
    }

    /// Listens for other replicas. Returns `None` for a store without a membership.
    fn listen(
        &self,
        network: &Arc<dyn Network>,
        clock: HybridClock,
        exchange: &Arc<Exchange>,
    ) -> Result<Option<Arc<Transport>>, OpenError> {
        let Some(membership) = self.membership else { return Ok(None) };
        let address = membership.peer_listen;
        let (network, tls, hello) = (network.clone(), membership.tls.clone(), self.hello.subscribe());
        let options = TransportOptions { network, listen: address, tls, hello, clock };
        let started = Transport::start(options, exchange.clone());
        started.map(Some).map_err(|source| OpenError::Listen { address, source })
    }

    /// Makes this replica a member of its cluster. A single replica is a member once this returns. One of several
    /// becomes a member while the returned future runs, since that needs the others.
    async fn join_in(
        self,
        starter: &Rc<Starter>,
        standing: watch::Sender<Standing>,
    ) -> Result<LocalBoxFuture<'static, ()>, OpenError> {
        let default = starter.start(0).await?.leader_client.node().clone();
        if let (Some(membership), Some(peers)) = (self.membership, starter.peers.clone()) {
            let (initial, starter) = (membership.initial.clone(), starter.clone());
            Ok(Box::pin(async move {
                default.formation().stand_if_alone().await; // as before it was stopped
                formation::form(&default, &*peers, &initial, &self.identity, &self.hello).await;
                let looking = alone::watch_for_others(&default, &*peers, &initial, &self.hello);
                future::join(standing::follow(starter, standing), looking).await;
            }))
        } else {
            let Hello { member, name, .. } = self.hello.borrow().clone();
            let address = self.founder.map_or_else(String::new, |founder| founder.address.clone());
            if self.founder.is_some() {
                self.identity.belong(&formation::new_cluster()).map_err(OpenError::Identity)?;
            }
            let failed = |source| OpenError::Group { group: DEFAULT_GROUP.into(), source: Box::new(source) };
            default.formation().form(BTreeMap::from([(member, Replica { name, address })])).await.map_err(failed)?;
            standing::ready(starter).await?;
            standing.send_replace(Standing::Member);
            Ok(Box::pin(future::ready(())))
        }
    }
}

fn elapsed_ms(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

/// Opens the state machine of the default group, and lets it apply entries while the log is still read.
fn begin_applying(
    options: &Options,
    tables: &Arc<Tables>,
    disk: &Arc<dyn Disk>,
    announced: mpsc::Receiver<Announced>,
) -> Task<Result<StateMachine, Failure>> {
    let (options, tables, disk) = (options.clone(), tables.clone(), disk.clone());
    tasks::owned("applying", async move {
        let mut machine = open_machine(&tables.clock(0), &options, &tables, disk).await?;
        machine.follow(announced).await?;
        Ok(machine)
    })
}

/// Reads the log without blocking the store's thread. Meanwhile the receiver gets the entries of the default group that
/// are known to be committed.
fn read_log(
    disk: Arc<dyn Disk>,
    options: WalOptions,
) -> (impl Future<Output = io::Result<Result<Recovered, WalError>>>, mpsc::Receiver<Announced>) {
    let (announcer, announced) = Announcer::new();
    let reading = async move {
        let reader = disk.clone();
        let read = move || Recovered::read(&*reader, &options, &[DEFAULT_GROUP.into()], Some(announcer));
        aside(&*disk, read).await
    };
    (reading, announced)
}

/// Runs periodic work: ages and trims the history, and writes snapshots that are due.
async fn maintain(groups: &Groups, tables: &Tables, history: Duration) {
    let mut expiry = RevisionExpiry::new(tables.clock(0).hybrid().clone(), history);
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        expiry.update(Instant::now());
        tables.demand();
        let aging = tables.aging();
        for group in groups.all().values() {
            let node = group.leader_client.node();
            if aging.contains(&group.leader_client.clock().group_number()) {
                node.trim(Instant::now()).await;
            }
            if node.snapshots().has_grown() {
                let node = node.clone();
                tasks::detached_here("snapshot", async move { node.snapshots().write_when_due().await });
            }
        }
    }
}
