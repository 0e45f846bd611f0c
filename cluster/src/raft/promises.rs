//! When a write may be told of: once all who lead other groups assign larger revisions.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::node::Node;
use crate::Revision;
use crate::limits::CLOCK_ANSWER_TIMEOUT;

impl Node {
    /// Whether no other member assigns a revision up to this one any more, in any group, as far as one may lead.
    pub(super) fn is_promised(&self, revision: Revision) -> bool {
        // Revisions of a group rise by its log, whoever leads.
        !self.clock.hybrid().is_shared() || seeded!(UnpromisedAnswer) || self.unpromised(revision).next().is_none()
    }

    /// Waits until that is so.
    pub(crate) async fn promised(&self, revision: Revision) {
        if !self.is_promised(revision) {
            join_all(self.unpromised(revision).map(|member| self.promised_by(member, revision))).await;
        }
    }

    /// The members that may lead and have not promised to assign nothing up to a revision.
    fn unpromised(&self, revision: Revision) -> impl Iterator<Item = u64> {
        self.raft.voter_ids().filter(move |voter| {
            *voter != self.node && !self.clock.hybrid().has_promised(*voter, revision) && self.is_reachable(*voter)
        })
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
