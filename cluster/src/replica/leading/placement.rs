//! Decides which groups this replica should lead, from requests of operators and from its own state.
//!
//! Temporary decisions are kept in the memory of the replica that they concern, and end with its process. A replica
//! tells others in its hello that it is drained. The preferred leaders of groups are in the shard map.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_proto::replication::{Administer, administration};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::handing_over::{self, NamedGroup};
use crate::group::Tables;
use crate::limits::{DRAIN_WAIT, PEER_RETRY_INTERVAL, TRANSFER_HOLD};
use crate::peer::Hello;
use crate::replica::groups::Groups;
use crate::shard_map::number_of_group;

/// The groups that this replica should lead.
pub(crate) struct Placement {
    own: u64,
    hello: watch::Sender<Hello>,
    groups: Groups,
    tables: Arc<Tables>,
    /// The groups that were transferred here.
    held: Mutex<BTreeMap<Arc<str>, TransferHold>>,
    reasons: Mutex<DrainReasons>,
}

/// A group that was transferred here stays for a while.
struct TransferHold {
    until: Instant,
    /// The member that was preferred when the group was transferred.
    preferred: Option<u64>,
}

/// The reasons for which this replica should lead nothing.
#[derive(Default)]
struct DrainReasons {
    /// It was drained by request.
    wished: bool,
    /// Its disk lacks room for the log of a leader.
    full: bool,
    /// Its disk is too slow for the log of a leader.
    slow: bool,
    /// Another replica reaches more members.
    reaches_fewer: bool,
}

impl DrainReasons {
    fn is_any(&self) -> bool {
        self.wished || self.full || self.slow || self.reaches_fewer
    }
}

impl Placement {
    pub(crate) fn new(own: u64, hello: watch::Sender<Hello>, groups: Groups, tables: Arc<Tables>) -> Placement {
        Placement { own, hello, groups, tables, held: Mutex::default(), reasons: Mutex::default() }
    }

    /// Returns the id of this replica.
    pub(crate) fn own(&self) -> u64 {
        self.own
    }

    pub(crate) fn groups(&self) -> Vec<NamedGroup> {
        self.groups.all().into_iter().map(|(name, group)| (name, group.leader_client.node().clone())).collect()
    }

    /// Returns whether this replica should lead nothing, as long as others can.
    pub(crate) fn is_drained(&self) -> bool {
        self.hello.borrow().drained
    }

    /// Returns the preferred leader of a group, if it has one.
    pub(crate) fn preferred(&self, group: &str) -> Option<u64> {
        self.tables.map().preferred.get(&number_of_group(group)?).copied()
    }

    /// Returns whether a group that was transferred to this replica must still stay here. It stays for a while, unless
    /// another member has become the preferred one since.
    pub(crate) fn is_held(&self, group: &str) -> bool {
        let preferred = self.preferred(group);
        let holds =
            |hold: &TransferHold| hold.until > Instant::now() && (preferred.is_none() || preferred == hold.preferred);
        self.held.lock().get(group).is_some_and(holds)
    }

    /// Carries out a request that concerns this replica.
    ///
    /// # Errors
    /// Returns the reason why the request cannot be carried out, in words for people.
    pub(crate) async fn carry_out(&self, request: &Administer) -> Result<(), String> {
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

    /// Sets whether the disk of this replica lacks room for the log of a leader. A replica without room is drained.
    pub(crate) fn set_full(&self, full: bool) {
        self.set(|reasons| reasons.full = full);
    }

    /// Sets whether the disk of this replica is too slow for the log of a leader. A replica with a slow disk is
    /// drained.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.set(|reasons| reasons.slow = slow);
    }

    /// Sets whether another replica reaches more members than this one, in which case this one is drained. Returns
    /// whether the value has changed.
    pub(crate) fn set_reaches_fewer(&self, reaches_fewer: bool) -> bool {
        let is_changed = self.reasons.lock().reaches_fewer != reaches_fewer; // one task sets it
        self.set(|reasons| reasons.reaches_fewer = reaches_fewer);
        is_changed
    }

    /// Announces how many voting members this replica is connected with in both directions, itself included.
    pub(crate) fn announce_reached_voters(&self, reached_voters: u32) {
        self.hello
            .send_if_modified(|hello| std::mem::replace(&mut hello.reached_voters, reached_voters) != reached_voters);
    }

    /// Changes the reasons, and announces whether there is any. Returns whether the announcement has changed.
    fn set(&self, change: impl FnOnce(&mut DrainReasons)) -> bool {
        let mut reasons = self.reasons.lock();
        change(&mut reasons);
        let (drained, full) = (reasons.is_any(), reasons.full);
        self.hello.send_if_modified(|hello| {
            let is_changed = (hello.drained, hello.full) != (drained, full);
            (hello.drained, hello.full) = (drained, full);
            is_changed
        })
    }

    /// Hands over all leadership from now on, as far as others can take it at once.
    pub(crate) async fn step_down(&self) {
        self.set(|reasons| reasons.wished = true);
        let groups = self.groups();
        join_all(groups.iter().map(|(_, node)| node.leadership().give_up())).await;
    }

    /// Hands over all groups that this replica leads, each to the replica that leads the fewest. While others reach
    /// more members, only to one of these.
    ///
    /// # Errors
    /// Names the groups that no other replica can lead now.
    pub(crate) async fn hand_over_all(&self) -> Result<(), String> {
        let reaches_fewer = self.reasons.lock().reaches_fewer;
        let reached = reaches_fewer.then(|| self.hello.borrow().reached_voters);
        handing_over::hand_over_all(self.own, &self.groups(), reached).await
    }

    async fn drain(&self) -> Result<(), String> {
        let others =
            self.groups().iter().all(|(_, node)| node.roster().members().iter().any(|other| other.id != self.own));
        if !others {
            return Err("no other can lead".into());
        }
        if self.set(|reasons| reasons.wished = true) {
            tracing::info!("this replica is drained: handing over its leadership");
        }
        self.held.lock().clear();
        let deadline = Instant::now() + DRAIN_WAIT;
        loop {
            match self.hand_over_all().await {
                // Others may lag behind at the moment, or may be about to connect.
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
            (name, TransferHold { until, preferred })
        });
        self.held.lock().extend(holds);
        Ok(())
    }
}

/// Returns whether a request is for one replica, and not for the leader of a group.
pub(crate) fn is_about_one(request: &Administer) -> bool {
    matches!(request.action, administration::DRAIN | administration::UNDRAIN | administration::HOLD)
}
