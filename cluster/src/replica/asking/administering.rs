//! Changes of a group's members and leader: any replica can ask for them, and the leader of the group makes them.

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method, administration};
use prost::Message;
use tokio::time::Instant;

use super::leader_client::{LeaderClient, LeaderLocation};
use crate::limits::{CATCH_UP_TIMEOUT, LEADER_SEARCHES_MAX, LEADER_WAIT};
use crate::peer::{Callee, Lane, PeerError};
use crate::raft::Unchanged;

impl LeaderClient {
    /// Makes the leader of the group change its members or transfer its leadership. Safe to repeat.
    ///
    /// # Errors
    /// Fails when the change is refused, when there is no leader, or when the replica to be removed leads and no other
    /// replica takes over.
    pub(crate) async fn administer(&self, mut request: message::Administer) -> Result<(), Unchanged> {
        request.group = self.clock().name().to_string();
        let (mut search, mut searches) = (self.search(), 1);
        loop {
            let leader = self.node().roster().leader();
            let location = search.locate().await.ok_or_else(nobody)?;
            let began = Instant::now();
            let done = match location {
                // Boxed, because this future is large and rarely needed.
                LeaderLocation::Here => Box::pin(self.node().administration().administer(&request)).await,
                LeaderLocation::There(target, _) => self.administer_there(&target, &request).await,
            };
            if !matches!(done, Err(Unchanged::NotLeader(_))) {
                return done;
            }
            // Catching up and handing over may take longer than the search for a leader, so the search starts anew.
            if began.elapsed() >= LEADER_WAIT / 4 && searches < LEADER_SEARCHES_MAX {
                (search, searches) = (self.search(), searches + 1);
            }
            if !search.goes_on(true).await {
                let keeps_leading = request.action == administration::REMOVE && leader == Some(request.member);
                return Err(if keeps_leading { nobody_else() } else { nobody() });
            }
        }
    }

    async fn administer_there(&self, target: &Callee, request: &message::Administer) -> Result<(), Unchanged> {
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

fn nobody() -> Unchanged {
    Unchanged::Refused("it has no leader that a majority follows".into())
}

fn nobody_else() -> Unchanged {
    Unchanged::Refused("the member leads it, and nobody takes over from it".into())
}
