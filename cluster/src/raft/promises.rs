//! When a write may be told of, or shown: once all who lead other groups assign larger revisions.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::node::Node;
use crate::Revision;
use crate::limits::CLOCK_ANSWER_TIMEOUT;

/// Has the clock know who may lead: the members of these groups, which are all that there are here.
pub(crate) fn know_members(nodes: &[Node]) {
    if let Some(clock) = nodes.first().map(|node| node.clock.hybrid()) {
        clock.know(&nodes.iter().flat_map(Node::member_ids).collect());
    }
}

impl Node {
    /// Whether no other member assigns a revision up to this one any more, in any group.
    pub(super) fn is_promised(&self, revision: Revision) -> bool {
        let clock = self.clock.hybrid();
        // Revisions of a group rise by its log, whoever leads.
        !clock.is_shared() || seeded!(UnpromisedAnswer) || clock.is_promised(revision)
    }

    /// Waits until that is so.
    pub(crate) async fn promised(&self, revision: Revision) {
        if !self.is_promised(revision) {
            let owing = self.clock.hybrid().owing(revision);
            join_all(owing.into_iter().map(|member| self.promised_by(member, revision))).await;
        }
    }

    async fn promised_by(&self, member: u64, revision: Revision) {
        if let (Some(peers), Some(address)) = (&self.peers, self.address(member)) {
            let answer = peers.hello_of(&address, CLOCK_ANSWER_TIMEOUT);
            tokio::spawn(answer); // it is heard as whatever else comes from there
        }
        let clock = self.clock.hybrid();
        if timeout(CLOCK_ANSWER_TIMEOUT, clock.promised(member, revision)).await.is_err() {
            tracing::debug!(member = %format_args!("{member:x}"), "a member does not say what its clock shows");
            clock.give_up(member);
        }
    }
}
