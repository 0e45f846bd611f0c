//! Starting a store: its directory, its log, its groups, and the thread that they share.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use actix::{Actor, Addr, System};
use tokio::sync::{oneshot, watch};

use crate::group::{Applier, GroupClock, Proposer, Tables, close_on_demand};
use crate::limits::{LEADER_TIMEOUT, TRIM_INTERVAL};
use crate::raft::{Node, NodeOptions, Proposals};
use crate::snapshot::Snapshots;
use crate::store::{Group, Running};
use crate::wal::disk::Disk;
use crate::wal::{Wal, WalOptions};
use crate::{OpenError, Options, Revision};

/// Takes hold of the data directory, until the file is dropped.
pub(crate) fn lock(options: &Options) -> Result<File, OpenError> {
    let directory = &options.directory;
    let failed = |source| OpenError::Directory { directory: directory.clone(), source };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let file = File::options().create(true).write(true).truncate(false).open(directory.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory: directory.clone() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Runs a store until it is stopped. Everything of it but the log's writer lives on this thread, so that a write
/// passes from one part to the next without waking another thread.
pub(crate) async fn run(
    disk: Arc<dyn Disk>,
    options: Options,
    tables: Arc<Tables>,
    started: oneshot::Sender<Result<Running, OpenError>>,
    stopped: oneshot::Receiver<()>,
) {
    let running = match start(disk, &options, &tables).await {
        Ok(running) => running,
        Err(error) => return drop(started.send(Err(error))),
    };
    let nodes: Vec<Node> = running.groups.values().map(|group| group.node.clone()).collect();
    let wal = running.wal.clone();
    actix::spawn(close_on_demand(tables.clocks().to_vec(), tables.demands().clone()));
    // What was seen before the last stop is to be seen again soon, whoever asks how.
    tables.all().iter().for_each(|table| table.demand());
    if started.send(Ok(running)).is_ok() {
        tokio::select! {
            () = maintain(&nodes) => {}
            _ = stopped => {}
        }
    }
    for node in &nodes {
        node.shutdown().await;
    }
    wal.close();
}

async fn start(disk: Arc<dyn Disk>, options: &Options, tables: &Arc<Tables>) -> Result<Running, OpenError> {
    let began = Instant::now();
    let directory = options.directory.join("wal");
    let failed = |source| OpenError::Directory { directory: options.directory.clone(), source };
    disk.create_directory(&directory).map_err(failed)?;
    let is_new = disk.list(&directory).map_err(failed)?.is_empty();
    tables.map().keep(&*disk, &options.directory, is_new)?;
    let names: Vec<Arc<str>> = tables.clocks().iter().map(|clock| clock.name().clone()).collect();
    let wal_options =
        WalOptions { directory, segment_bytes: options.wal_segment_bytes, on_fatal: options.on_fatal.clone() };
    let wal = Wal::open(disk.clone(), wal_options, &names)?;
    tracing::info!(entries = wal.usage().entries, elapsed_ms = elapsed_ms(began), "read the write-ahead log");
    let mut groups = BTreeMap::new();
    for clock in tables.clocks() {
        let name = clock.name();
        let snapshots = Snapshots::open(disk.clone(), options.directory.join("snapshots").join(&**name))?;
        let group = start_group(options, tables, &wal, clock, snapshots).await;
        let failed = |source| OpenError::Group { group: name.to_string(), source };
        groups.insert(name.clone(), group.map_err(failed)?);
    }
    let objects: u64 = tables.all().iter().map(|table| table.len()).sum();
    tracing::info!(objects, groups = groups.len(), elapsed_ms = elapsed_ms(began), "the store is ready");
    Ok(Running { groups, wal })
}

fn elapsed_ms(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

async fn start_group(
    options: &Options,
    tables: &Arc<Tables>,
    wal: &Wal,
    clock: &Arc<GroupClock>,
    snapshots: Snapshots,
) -> Result<Group, Box<dyn std::error::Error + Send + Sync>> {
    let thread = System::current().arbiter().clone();
    let applier = Applier::new(thread, clock.clone(), tables.clone(), options);
    let node_options = NodeOptions {
        node: options.node,
        group: clock.slot().into(),
        name: clock.name().clone(),
        wal: wal.clone(),
        applier,
        snapshots,
        snapshot_log_bytes: options.snapshot_log_bytes,
        on_fatal: options.on_fatal.clone(),
    };
    let (node, proposals) = Node::start(node_options).await?;
    node.lead_alone(Revision::from_unix_ms(unix_ms())).await?;
    let proposer: Addr<Proposer<Proposals>> = Proposer::new(proposals, clock.clone()).start();
    clock.serve(proposer.clone().recipient());
    let (leads, mut led) = watch::channel(false);
    actix::spawn(node.clone().follow_leadership(proposer.clone(), leads));
    tokio::time::timeout(LEADER_TIMEOUT, led.wait_for(|led| *led)).await??;
    Ok(Group { admission: Arc::default(), proposer, node })
}

/// What is to be done from time to time.
async fn maintain(nodes: &[Node]) {
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        for node in nodes {
            node.trim(unix_ms(), Instant::now()).await;
            let node = node.clone();
            actix::spawn(async move { node.snapshot_when_due().await });
        }
    }
}

/// The wall clock, in milliseconds since 1970.
fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
