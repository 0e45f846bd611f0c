//! Starts a group on this replica.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::addresses::Addresses;
use super::administration::Administration;
use super::config::config;
use super::connections::Connections;
use super::error::{StartError, refused};
use super::exclusion::{Excluded, Exclusion};
use super::formation::Formation;
use super::leadership::Leadership;
use super::link::Network;
use super::log_store::LogStore;
use super::mandate::Mandates;
use super::node::{Node, Parts};
use super::promises::Promises;
use super::proposals::{Proposals, Proposing};
use super::reading::Reading;
use super::resting::Resting;
use super::roster::Roster;
use super::service::Service;
use super::snapshot_receiving::Receiver;
use super::snapshotting::Snapshotting;
use super::state_machine::{GroupRaft, StateMachine};
use super::survival;
use super::tenure::Tenure;
use super::types::log_ref;
use crate::limits::SNAPSHOT_SPARE_SEGMENTS;
use crate::peer::Peers;
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

impl NodeOptions {
    /// Starts the group: applies the committed entries of its log, and then starts openraft.
    pub(crate) async fn start(mut self) -> Result<(Node, Proposals), StartError> {
        let config = Arc::new(config(&self.name, self.peers.is_some()).validate().map_err(refused)?);
        let log = self.open_log().await?;
        let NodeOptions { node: own, name, wal, peers, mut machine, snapshot_log_bytes, on_fatal, on_lost, .. } = self;
        let receiver = Receiver::new(machine.snapshots().clone(), SNAPSHOT_SPARE_SEGMENTS * wal.segment_bytes());
        let (clock, applied) = (machine.applier().clock().clone(), machine.progress());
        let (excluded, rest, addresses) = (Excluded::default(), log.rest().clone(), Addresses::default());
        let network = Network::new(own, name.clone(), peers.clone(), excluded.clone(), rest.clone(), addresses.clone());
        let raft = GroupRaft::new(own, config, network, log.clone(), machine).await.map_err(refused)?;
        let roster = Roster::new(own, raft.clone());
        let connections = Connections::new(peers);
        let exclusion = Exclusion::new(own, raft.clone(), excluded);
        let resting = Resting::new(name.clone(), raft.clone(), rest, roster.clone(), exclusion.clone());
        let promises = Promises::new(clock.clone(), roster.clone(), connections.clone());
        let proposals = Proposals::new(Proposing {
            raft: raft.clone(),
            log: log.clone(),
            roster: roster.clone(),
            connections: connections.clone(),
            resting: resting.clone(),
            promises: promises.clone(),
        });
        let mandates = Mandates::new(name.clone(), raft.clone(), roster.clone(), connections.clone());
        let leadership = Leadership {
            name: name.clone(),
            raft: raft.clone(),
            roster: roster.clone(),
            connections: connections.clone(),
            exclusion: exclusion.clone(),
            resting: resting.clone(),
            mandates: mandates.clone(),
            asked: Arc::default(),
        };
        let administration =
            Administration::new(raft.clone(), roster.clone(), connections.clone(), resting.clone(), leadership.clone());
        let service = Service {
            own,
            raft: raft.clone(),
            log: log.clone(),
            clock,
            exclusion: exclusion.clone(),
            resting: resting.clone(),
            mandates,
            receiver,
            on_fatal: on_fatal.clone(),
            on_lost,
        };
        let node = Node::new(Parts {
            name,
            tenure: Tenure::new(own, raft.clone(), addresses),
            formation: Formation::new(raft.clone(), roster.clone()),
            reading: Reading::new(raft.clone(), roster.clone(), log.clone(), applied),
            snapshots: Snapshotting::new(raft.clone(), roster.clone(), log.clone(), snapshot_log_bytes),
            raft,
            log,
            roster,
            connections,
            exclusion,
            resting,
            leadership,
            administration,
            promises,
            service,
            stopping: AtomicBool::default(),
            on_fatal,
        });
        Ok((node, proposals))
    }

    /// Opens the log of the group, and applies its committed entries.
    async fn open_log(&mut self) -> Result<LogStore, StartError> {
        let NodeOptions { node, group, wal, machine, is_survivor, .. } = self;
        let log = LogStore::new(wal.clone(), *group);
        if log.state().purged.is_some_and(|purged| purged.index > *machine.progress().borrow()) {
            return Err(StartError::NoSnapshot);
        }
        if let Some(last) = machine.restored() {
            log.follow_snapshot(log_ref(&last)).await?;
        }
        let clock = machine.applier().clock();
        log.last_revision()?.into_iter().for_each(|last| clock.hybrid().learn(last));
        if *is_survivor {
            survival::be_alone(&log, machine, *node).await?;
        }
        machine.catch_up(&log).await?;
        Ok(log)
    }
}
