//! Delays answers until the leaders of all other groups will assign only larger revisions.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::connections::Connections;
use super::roster::Roster;
use crate::Revision;
use crate::clock::GroupClock;
use crate::limits::CLOCK_ANSWER_TIMEOUT;
use crate::tasks;

/// The promises of other members about the revisions that they assign. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Promises {
    clock: Arc<GroupClock>,
    roster: Roster,
    connections: Connections,
}

impl Promises {
    pub(super) fn new(clock: Arc<GroupClock>, roster: Roster, connections: Connections) -> Promises {
        Promises { clock, roster, connections }
    }

    /// Returns the clock of the group.
    pub(super) fn clock(&self) -> &GroupClock {
        &self.clock
    }

    /// Returns whether no other member will assign a revision up to this one, in any group.
    pub(super) fn is_promised(&self, revision: Revision) -> bool {
        let clock = self.clock.hybrid();
        // With a single group this always holds: its revisions rise through its log, whichever replica leads.
        !clock.is_shared() || seeded!(UnpromisedAnswer) || clock.is_promised(revision)
    }

    /// Waits until no other member will assign a revision up to this one, in any group.
    pub(crate) async fn wait_promised(&self, revision: Revision) {
        if !self.is_promised(revision) {
            let owing = self.clock.hybrid().owing(revision);
            join_all(owing.into_iter().map(|member| self.wait_promise_of(member, revision))).await;
        }
    }

    async fn wait_promise_of(&self, member: u64, revision: Revision) {
        let address = self.roster.address(member);
        if let Some(answer) = address.and_then(|address| self.connections.hello_of(&address, CLOCK_ANSWER_TIMEOUT)) {
            tasks::detached("hello", answer); // its frame contains the promise, as every frame does
        }
        let clock = self.clock.hybrid();
        if timeout(CLOCK_ANSWER_TIMEOUT, clock.wait_promised(member, revision)).await.is_err() {
            tracing::debug!(member = %format_args!("{member:x}"), "a member does not send its clock");
            clock.give_up(member);
        }
    }
}
