//! Where leaders are to be, as far as people have said so.
//!
//! What is said for a while is kept by the replica that it is about, and in memory: it ends with its process.
//! Others are told with its hello that a replica is drained. Which member is preferred to lead a group stands in
//! the shard map.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_proto::replication::{Administer, administration};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::balance;
use super::groups::Groups;
use crate::group::Tables;
use crate::limits::{DRAIN_WAIT, PEER_RETRY_INTERVAL, TRANSFER_HOLD};
use crate::peer::Hello;
use crate::raft::Node;
use crate::shard_map::group_slot;

/// A group by its name.
pub(crate) type Named = (Arc<str>, Node);

/// What this replica is to lead.
pub(crate) struct Placement {
    own: u64,
    hello: watch::Sender<Hello>,
    groups: Groups,
    tables: Arc<Tables>,
    /// The groups that were transferred here.
    held: Mutex<BTreeMap<Arc<str>, Hold>>,
    reasons: Mutex<Reasons>,
}

/// That a group stays where it was transferred to.
struct Hold {
    until: Instant,
    /// Who was preferred to lead it when it was transferred.
    preferred: Option<u64>,
}

/// Why this replica is to lead nothing, if it is to.
#[derive(Default)]
struct Reasons {
    /// Somebody wants it so.
    wished: bool,
    /// Its disk has no room for what leaders write.
    full: bool,
    /// Its disk is too slow for that.
    slow: bool,
    /// Another one reaches more members.
    hemmed: bool,
}

impl Reasons {
    fn is_any(&self) -> bool {
        self.wished || self.full || self.slow || self.hemmed
    }
}

impl Placement {
    pub(crate) fn new(own: u64, hello: watch::Sender<Hello>, groups: Groups, tables: Arc<Tables>) -> Placement {
        Placement { own, hello, groups, tables, held: Mutex::default(), reasons: Mutex::default() }
    }

    /// Id of this replica.
    pub(crate) fn own(&self) -> u64 {
        self.own
    }

    pub(crate) fn groups(&self) -> Vec<Named> {
        self.groups.all().into_iter().map(|(name, group)| (name, group.leader.node().clone())).collect()
    }

    /// Whether this replica is to lead nothing, as long as others can.
    pub(crate) fn is_drained(&self) -> bool {
        self.hello.borrow().drained
    }

    /// Who is to lead a group whenever that can, if somebody said so.
    pub(crate) fn preferred(&self, group: &str) -> Option<u64> {
        self.tables.map().preferred.get(&group_slot(group)?).copied()
    }

    /// Whether a group is to stay where it was transferred to: for a while, and until another is preferred.
    pub(crate) fn is_held(&self, group: &str) -> bool {
        let preferred = self.preferred(group);
        let holds = |hold: &Hold| hold.until > Instant::now() && (preferred.is_none() || preferred == hold.preferred);
        self.held.lock().get(group).is_some_and(holds)
    }

    /// Does what is asked of this replica.
    ///
    /// # Errors
    /// Why it cannot be done, for people.
    pub(crate) async fn heed(&self, request: &Administer) -> Result<(), String> {
        match request.action {
            administration::DRAIN => self.drain().await,
            administration::UNDRAIN => {
                if self.set(|reasons| reasons.wished = false) {
                    tracing::info!("this replica is not drained any more");
                }
                Ok(())
            }
            administration::HOLD => self.hold(&request.group),
            action => Err(format!("this replica knows no action {action}")),
        }
    }

    /// Says whether the disk of this replica has no room for what leaders write. As long as that is so, it is drained.
    pub(crate) fn set_full(&self, full: bool) {
        self.set(|reasons| reasons.full = full);
    }

    /// Says whether the disk of this replica is too slow for what leaders write. As long as that is so, it is drained.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.set(|reasons| reasons.slow = slow);
    }

    /// Says whether another one reaches more members than this replica. As long as that is so, it is drained. Whether
    /// that is not as it was.
    pub(crate) fn set_hemmed(&self, hemmed: bool) -> bool {
        let is_changed = self.reasons.lock().hemmed != hemmed; // one task sets it
        self.set(|reasons| reasons.hemmed = hemmed);
        is_changed
    }

    /// Says how many members with a vote hear this replica and are heard by it, itself among them.
    pub(crate) fn say_hears(&self, hears: u32) {
        self.hello.send_if_modified(|hello| std::mem::replace(&mut hello.hears, hears) != hears);
    }

    /// Has others know whether there is a reason for this replica to lead nothing; whether that is not as it was.
    fn set(&self, change: impl FnOnce(&mut Reasons)) -> bool {
        let mut reasons = self.reasons.lock();
        change(&mut reasons);
        let (drained, full) = (reasons.is_any(), reasons.full);
        self.hello.send_if_modified(|hello| {
            let is_changed = (hello.drained, hello.full) != (drained, full);
            (hello.drained, hello.full) = (drained, full);
            is_changed
        })
    }

    /// Lets others lead from now on, as far as they can take over at once.
    pub(crate) async fn step_down(&self) {
        self.set(|reasons| reasons.wished = true);
        let groups = self.groups();
        join_all(groups.iter().map(|(_, node)| node.give_up_leadership())).await;
    }

    async fn drain(&self) -> Result<(), String> {
        let others = self.groups().iter().all(|(_, node)| node.members().iter().any(|other| other.id != self.own));
        if !others {
            return Err("no other can lead".into());
        }
        if self.set(|reasons| reasons.wished = true) {
            tracing::info!("this replica is drained: others lead");
        }
        self.held.lock().clear();
        let deadline = Instant::now() + DRAIN_WAIT;
        loop {
            match balance::hand_over_all(self).await {
                // Others may lack something at the moment, or be about to connect.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(PEER_RETRY_INTERVAL).await,
                handed => return handed,
            }
        }
    }

    fn hold(&self, group: &str) -> Result<(), String> {
        if self.is_drained() {
            return Err("the member is drained".into());
        }
        let until = Instant::now() + TRANSFER_HOLD;
        let groups = self.groups().into_iter().filter(|(name, _)| group.is_empty() || **name == *group);
        let holds = groups.map(|(name, _)| {
            let preferred = self.preferred(&name);
            (name, Hold { until, preferred })
        });
        self.held.lock().extend(holds);
        Ok(())
    }
}

/// Whether what is asked for is for a replica to heed, and not for the leader of a group.
pub(crate) fn is_about_one(request: &Administer) -> bool {
    matches!(request.action, administration::DRAIN | administration::UNDRAIN | administration::HOLD)
}
