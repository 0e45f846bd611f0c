use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use prost::Message;
use tokio::sync::watch;

use super::*;
use crate::limits::HEARTBEAT_INTERVAL;
use crate::peer::{Callee, Contacts, Hello, Liveness, PeerError, Peers};
use crate::raft::addresses::Addresses;
use crate::raft::exclusion::Excluded;
use crate::raft::types;
use crate::wal::Ballot;

/// Another replica, whose disk takes this long for a write.
struct Slow(Duration);

impl Peers for Slow {
    fn call(
        &self,
        _: &Callee,
        _: Lane,
        _: u32,
        _: Bytes,
        timeout: Duration,
    ) -> futures_util::future::BoxFuture<'static, Result<Bytes, PeerError>> {
        let durable = tokio::time::sleep(self.0);
        let answer = wire::put_append_answer(&AppendEntriesResponse::Success).encode_to_vec();
        async move {
            tokio::time::timeout(timeout, durable).await.map_err(|_| PeerError::Timeout)?;
            Ok(answer.into())
        }
        .boxed()
    }

    fn hello_of(&self, _: &str, _: Duration) -> futures_util::future::BoxFuture<'static, Result<Hello, PeerError>> {
        unreachable!("nobody asks")
    }

    fn resolve(&self, _: &str) -> futures_util::future::BoxFuture<'static, io::Result<Vec<String>>> {
        unreachable!("nobody asks")
    }

    fn is_drained(&self, _: u64) -> bool {
        false
    }

    fn is_full(&self, _: u64) -> bool {
        false
    }

    fn reached_voters(&self, _: u64) -> u32 {
        0
    }

    fn servers(&self) -> BTreeMap<u64, String> {
        BTreeMap::new()
    }

    fn contacts(&self) -> BTreeMap<u64, Contacts> {
        BTreeMap::new()
    }

    fn liveness(&self) -> watch::Receiver<Liveness> {
        watch::Sender::new(Liveness::default()).subscribe()
    }
}

#[tokio::test(start_paused = true)]
async fn entries_are_not_sent_again_to_a_replica_with_a_slow_disk() {
    let peers = Arc::new(Slow(2 * HEARTBEAT_INTERVAL));
    let (excluded, addresses) = (Excluded::default(), Addresses::default());
    let network = Network::new(1, "default".into(), Some(peers), excluded, Arc::default(), addresses);
    let mut link = network.link(2, &Replica { name: "b".into(), address: String::new() }, Lane::Bulk);
    let vote = types::vote(Ballot { term: 1, node: 1, committed: true });
    let request = AppendEntriesRequest { vote, prev_log_id: None, entries: Vec::new(), leader_commit: None };
    let answers = link.stream_append(stream::iter([request]), RPCOption::new(HEARTBEAT_INTERVAL)).await;
    let answer = answers.unwrap().next().await.unwrap();
    assert_eq!(answer.unwrap(), Ok(None));
}
