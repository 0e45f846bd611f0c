//! Keeps leadership with replicas that reach the most members.
//!
//! When the link between two members is cut and a third one reaches both, neither of the two should lead: the other
//! would get no entries, and its clients would wait. So each replica announces in its hello how many members it hears
//! that also hear it. One that hears fewer than another that it hears hands over its leadership, as if it were drained.
//! When a member is down, or cut off from all, no replica hears more than the others, and nothing changes.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::balance;
use super::placement::Placement;
use crate::limits::{HEARING_INTERVAL, HELLO_TIMEOUT, HEMMED_PATIENCE, MAJORITY_PATIENCE};
use crate::peer::Peers;
use crate::peer::sight::Sight;
use crate::raft::Node;

/// Compares how many members this replica hears with what others announce.
pub(super) struct Hearing {
    placement: Arc<Placement>,
    peers: Arc<dyn Peers>,
    /// Since when another replica has been hearing more.
    since: Option<Instant>,
    /// When the members that are not heard were last called.
    called: Option<Instant>,
    /// Since when no majority has been heard.
    alone: Option<Instant>,
    /// Whether this was logged.
    alone_told: bool,
}

impl Hearing {
    pub(super) fn new(placement: Arc<Placement>, peers: Arc<dyn Peers>) -> Hearing {
        Hearing { placement, peers, since: None, called: None, alone: None, alone_told: false }
    }

    /// Updates the state with what was seen of the members of a group.
    pub(super) fn look(&mut self, group: &Node, sight: &Sight, now: Instant) {
        let (own, voters) = (self.placement.own(), group.voters());
        let has_vote = voters.contains(&own);
        let (heard, missed): (Vec<u64>, Vec<u64>) =
            voters.into_iter().filter(|voter| *voter != own).partition(|voter| sight.is_mutual(*voter));
        let hears = if has_vote { heard.len() as u32 + 1 } else { 0 };
        self.placement.say_hears(hears);
        self.look_for_majority(has_vote && 2 * (heard.len() + 1) <= heard.len() + missed.len() + 1, now);
        let is_hemmed = has_vote && heard.iter().any(|voter| self.peers.hears(*voter) > hears);
        self.since = is_hemmed.then(|| self.since.unwrap_or(now));
        let hemmed = self.since.is_some_and(|since| now >= since + HEMMED_PATIENCE);
        if self.placement.set_hemmed(hemmed) {
            self.tell(hemmed);
        }
        if self.called.is_none_or(|called| now >= called + HEARING_INTERVAL) {
            self.called = Some(now);
            missed.into_iter().for_each(|voter| self.call(group, voter));
        }
    }

    /// Logs when no majority has been heard for a while, and when one is heard again.
    fn look_for_majority(&mut self, is_alone: bool, now: Instant) {
        self.alone = is_alone.then(|| self.alone.unwrap_or(now));
        let is_long = self.alone.is_some_and(|since| now >= since + MAJORITY_PATIENCE);
        if is_long && !self.alone_told {
            tracing::warn!("no majority of the members is reachable: writes and consistent reads fail");
            self.alone_told = true;
        } else if self.alone.is_none() && self.alone_told {
            tracing::info!("a majority of the members is reachable again");
            self.alone_told = false;
        }
    }

    fn tell(&self, hemmed: bool) {
        if !hemmed {
            return tracing::info!("this replica again reaches as many members as any other");
        }
        tracing::warn!("another replica reaches more members than this one: handing over leadership");
        let placement = self.placement.clone();
        // Groups that no other replica can take yet are tried again by `balance`.
        actix::spawn(async move { balance::hand_over_all(&placement).await.unwrap_or_default() });
    }

    /// Calls a member, so that a connection is made as soon as possible: there may be no other call to it.
    fn call(&self, group: &Node, member: u64) {
        let address = group.address(member).unwrap_or_default();
        actix::spawn(self.peers.hello_of(&address, HELLO_TIMEOUT).map(drop));
    }
}
