//! Keeps leadership with replicas that reach the most members.
//!
//! The link between two members can be cut while a third one reaches both. Then neither of the two should lead: the
//! other would get no entries, and its clients would wait. Each replica therefore announces in its hello the number of
//! members that it reaches in both directions. A replica that leads may hear another one, in either direction, that
//! announces more members, and a majority of them. It then hands over its leadership, as if drained. When a member is
//! down, or cut off from all, no replica reaches more than the others, and nothing changes.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::Instant;

use crate::limits::{HELLO_TIMEOUT, MAJORITY_PATIENCE, REACHABILITY_CALL_INTERVAL, REACHES_FEWER_PATIENCE};
use crate::peer::Peers;
use crate::peer::peer_view::PeerView;
use crate::raft::Node;
use crate::replica::leading::placement::Placement;
use crate::replica::leading::reach;
use crate::tasks;

/// Compares the number of members that this replica reaches with the numbers that others announce.
pub(super) struct Reachability {
    placement: Arc<Placement>,
    peers: Arc<dyn Peers>,
    /// When another replica began to reach more members. `None` if none does.
    since: Option<Instant>,
    /// When the members that are not reached were last called.
    called: Option<Instant>,
    /// When this replica ceased to reach a majority. `None` if it reaches one.
    without_majority_since: Option<Instant>,
    /// Whether the loss of the majority was logged.
    is_loss_logged: bool,
}

impl Reachability {
    pub(super) fn new(placement: Arc<Placement>, peers: Arc<dyn Peers>) -> Reachability {
        Reachability {
            placement,
            peers,
            since: None,
            called: None,
            without_majority_since: None,
            is_loss_logged: false,
        }
    }

    /// Updates the state with what was seen of the members of a group.
    pub(super) fn update(&mut self, group: &Node, view: &PeerView, now: Instant) {
        let (own, voters) = (self.placement.own(), group.roster().voters());
        let has_vote = voters.contains(&own);
        let others = voters.iter().copied().filter(|voter| *voter != own);
        let (reached, unreached): (Vec<u64>, Vec<u64>) =
            others.clone().partition(|voter| view.connects_both_ways(*voter));
        let reached_voters = if has_vote { reached.len() as u32 + 1 } else { 0 };
        self.placement.announce_reached_voters(reached_voters);
        self.log_majority(has_vote && 2 * (reached.len() + 1) <= reached.len() + unreached.len() + 1, now);
        let exceeds = |voter| reach::exceeds(self.peers.reached_voters(voter), reached_voters, voters.len());
        // One direction suffices: a replica that others cannot call may be the leader that they hear, because it calls
        // them.
        let reaches_fewer = has_vote && others.filter(|voter| view.receives_from(*voter)).any(exceeds);
        self.since = reaches_fewer.then(|| self.since.unwrap_or(now));
        let reaches_fewer_for_long = self.since.is_some_and(|since| now >= since + REACHES_FEWER_PATIENCE);
        if self.placement.set_reaches_fewer(reaches_fewer_for_long) {
            self.log_and_hand_over(reaches_fewer_for_long);
        }
        if self.called.is_none_or(|called| now >= called + REACHABILITY_CALL_INTERVAL) {
            self.called = Some(now);
            unreached.into_iter().for_each(|voter| self.call(group, voter));
        }
    }

    /// Logs that no majority has been reached for a while, and that one is reached again.
    fn log_majority(&mut self, is_without_majority: bool, now: Instant) {
        self.without_majority_since = is_without_majority.then(|| self.without_majority_since.unwrap_or(now));
        let is_long = self.without_majority_since.is_some_and(|since| now >= since + MAJORITY_PATIENCE);
        if is_long && !self.is_loss_logged {
            tracing::warn!("no majority of the members is reachable: writes and consistent reads fail");
            self.is_loss_logged = true;
        } else if self.without_majority_since.is_none() && self.is_loss_logged {
            tracing::info!("a majority of the members is reachable again");
            self.is_loss_logged = false;
        }
    }

    fn log_and_hand_over(&self, reaches_fewer_for_long: bool) {
        if !reaches_fewer_for_long {
            return tracing::info!("this replica again reaches as many members as any other");
        }
        tracing::warn!("another replica reaches more members than this one: handing over leadership");
        let placement = self.placement.clone();
        // Groups that no other replica can take yet are tried again by `balance`.
        tasks::detached_here("hand over", async move { placement.hand_over_all().await.unwrap_or_default() });
    }

    /// Calls a member to make a connection as soon as possible. Otherwise this replica might not call it at all.
    fn call(&self, group: &Node, member: u64) {
        let address = group.roster().address(member).unwrap_or_default();
        tasks::detached_here("hello", self.peers.hello_of(&address, HELLO_TIMEOUT).map(drop));
    }
}
