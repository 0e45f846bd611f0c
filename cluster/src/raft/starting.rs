//! Starts a group on this replica, and forms it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::acknowledged::Acknowledged;
use super::addresses::Addresses;
use super::config::config;
use super::exclusion::Excluded;
use super::link::Network;
use super::log_store::LogStore;
use super::node::Node;
use super::proposals::Proposals;
use super::snapshot_receiving::Receiver;
use super::state_machine::{GroupRaft, StateMachine};
use super::survival;
use super::types::log_ref;
use crate::limits::{OPENING_PROGRESS_INTERVAL, SNAPSHOT_SPARE_SEGMENTS};
use crate::peer::Peers;
use crate::progress::Progress;
use crate::roster::Replica;
use crate::wal::{GroupId, Wal};

/// The parts and options with which a group is started.
pub(crate) struct NodeOptions {
    pub(crate) node: u64,
    pub(crate) group: GroupId,
    pub(crate) name: Arc<str>,
    pub(crate) wal: Wal,
    /// The connections to other replicas; `None` on a store that has no others.
    pub(crate) peers: Option<Arc<dyn Peers>>,
    /// The state machine, with the state of the group's newest snapshot or a later one.
    pub(crate) machine: StateMachine,
    pub(crate) snapshot_log_bytes: u64,
    /// Whether this replica continues the group alone, whatever members the log names.
    pub(crate) is_survivor: bool,
    /// Called when the group stops by itself, which it does when its storage fails.
    pub(crate) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called when this replica finds that it has lost entries that it acknowledged.
    pub(crate) on_lost: Arc<dyn Fn() + Send + Sync>,
}

/// Why a group cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Storage(#[from] io::Error),
    #[error("the snapshot after which the log continues is missing; restore the data directory from a backup")]
    NoSnapshot,
    #[error("the group cannot be started: {0}")]
    Raft(String),
}

pub(super) fn refused(error: impl std::fmt::Display) -> StartError {
    StartError::Raft(error.to_string())
}

impl Node {
    /// Starts a group: applies the committed entries of its log, and then starts openraft.
    pub(crate) async fn start(options: NodeOptions) -> Result<(Node, Proposals), StartError> {
        let NodeOptions { node, group, name, wal, peers, mut machine, .. } = options;
        let config = Arc::new(config(&name, peers.is_some()).validate().map_err(refused)?);
        let receiver = Receiver::new(machine.snapshots().clone(), SNAPSHOT_SPARE_SEGMENTS * wal.segment_bytes());
        let log = LogStore::new(wal, group);
        let clock = machine.applier().clock().clone();
        let applied = machine.progress();
        if log.state().purged.is_some_and(|purged| purged.index > *applied.borrow()) {
            return Err(StartError::NoSnapshot);
        }
        if let Some(last) = machine.restored() {
            log.follow_snapshot(log_ref(&last)).await?;
        }
        log.last_revision()?.into_iter().for_each(|last| clock.hybrid().learn(last));
        if options.is_survivor {
            survival::be_alone(&log, &machine, node).await?;
        }
        machine.catch_up(&log).await?;
        let (excluded, rest, addresses) = (Excluded::default(), log.rest().clone(), Addresses::default());
        let network = Network {
            peers: peers.clone(),
            group: name.clone(),
            node,
            excluded: excluded.clone(),
            rest,
            acknowledged: Acknowledged::default(),
            addresses: addresses.clone(),
        };
        let raft = GroupRaft::new(node, config, network, log.clone(), machine).await.map_err(refused)?;
        let snapshot_log_bytes = options.snapshot_log_bytes;
        let (snapshot_due, stopping) = (Arc::default(), Arc::default());
        let (on_fatal, on_lost) = (options.on_fatal, options.on_lost);
        let tenure = Arc::default();
        let node = Node {
            node,
            name,
            raft,
            receiver,
            peers,
            excluded,
            log,
            clock,
            applied,
            tenure,
            snapshot_log_bytes,
            snapshot_due,
            stopping,
            on_fatal,
            on_lost,
            addresses,
        };
        let proposals = Proposals::new(node.clone());
        Ok((node, proposals))
    }

    /// Returns whether the group has members, as far as this replica knows.
    pub(crate) async fn is_formed(&self) -> bool {
        self.raft.is_initialized().await.unwrap_or(false)
    }

    /// Forms the group with these members, which include this replica, and stands for election. Does not change a group
    /// that is formed already, but stands for election if this replica is alone in it.
    pub(crate) async fn form(&self, members: BTreeMap<u64, Replica>) -> Result<(), StartError> {
        if self.is_formed().await {
            self.stand_if_alone().await;
            return Ok(());
        }
        self.raft.initialize(members).await.map_err(refused)
    }

    /// Makes this replica stand for election at once if it is the only member: no other can lead, and no lease must be
    /// waited for.
    pub(crate) async fn stand_if_alone(&self) {
        if self.is_alone() && self.leader().is_none() {
            let _ = self.raft.trigger().elect(false).await; // fails only when the group is shut down
        }
    }

    /// Waits until everything is applied that was known to be committed when the log was opened.
    pub(crate) async fn recovered(&self) {
        let committed = self.log.committed().unwrap_or_default();
        let what = "applying the entries of the write-ahead log";
        let mut progress = Progress::of(what, committed, OPENING_PROGRESS_INTERVAL);
        while tokio::time::timeout(OPENING_PROGRESS_INTERVAL, self.reached(committed)).await.is_err() {
            progress.at(*self.applied.borrow());
        }
    }
}
