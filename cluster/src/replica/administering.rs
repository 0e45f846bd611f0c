//! Changes of who is in a group and who leads it, asked of its leader from any replica.

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method};
use prost::Message;

use super::leader::{Leader, Place};
use crate::limits::CATCH_UP_TIMEOUT;
use crate::peer::{Lane, PeerError, Target};
use crate::raft::Unchanged;

impl Leader {
    /// Has the leader change who is in the group or who leads it. Safe to repeat.
    ///
    /// # Errors
    /// It cannot be done, or nobody leads.
    pub(crate) async fn administer(&self, mut request: message::Administer) -> Result<(), Unchanged> {
        request.group = self.clock().name().to_string();
        let mut search = self.search();
        loop {
            let nobody = || Unchanged::Refused("it has no leader that a majority follows".into());
            let leader = self.node().leader();
            let done = match search.place().await.ok_or_else(nobody)? {
                // Apart, because it is seldom needed and large.
                Place::Here => Box::pin(self.node().administer(&request)).await,
                Place::There(target, _) => self.administer_there(&target, &request).await,
            };
            let is_elsewhere = matches!(done, Err(Unchanged::NotLeader(_)));
            if !search.goes_on(is_elsewhere).await {
                return if is_elsewhere { Err(nobody()) } else { done };
            }
            if leader == Some(request.member) {
                search = self.search(); // it has handed over first, which takes its time
            }
        }
    }

    async fn administer_there(&self, target: &Target, request: &message::Administer) -> Result<(), Unchanged> {
        let request = Bytes::from(request.encode_to_vec());
        let answer: Result<message::AdministerAnswer, PeerError> =
            self.call(target, Lane::Control, Method::Administer, request, CATCH_UP_TIMEOUT).await;
        match answer {
            Ok(answer) if answer.moved => Err(Unchanged::NotLeader((answer.leader > 0).then_some(answer.leader))),
            Ok(answer) if answer.refusal.is_empty() => Ok(()),
            Ok(answer) => Err(Unchanged::Refused(answer.refusal)),
            Err(PeerError::Unreachable(_)) => Err(Unchanged::NotLeader(None)),
            Err(error) => Err(Unchanged::Refused(error.to_string())),
        }
    }
}
