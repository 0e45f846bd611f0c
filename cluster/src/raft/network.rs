//! Where other replicas are reached: so far there are none.

use openraft::alias::{SnapshotOf, VoteOf};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{AnyError, BasicNode, OptionalSend};

use super::state_machine::SnapshotFile;
use super::types::TypeConfig;

/// A network without other replicas.
pub(super) struct Alone;

/// A replica that cannot be reached.
pub(super) struct Nobody;

impl RaftNetworkFactory<TypeConfig> for Alone {
    type Network = Nobody;

    async fn new_client(&mut self, _: u64, _: &BasicNode) -> Nobody {
        Nobody
    }
}

fn unreachable() -> Unreachable<TypeConfig> {
    Unreachable::new(&AnyError::error("this store has no other replicas"))
}

impl RaftNetworkV2<TypeConfig> for Nobody {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        _: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    async fn vote(
        &mut self,
        _: VoteRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    async fn full_snapshot(
        &mut self,
        _: VoteOf<TypeConfig>,
        _: SnapshotOf<TypeConfig, SnapshotFile>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(StreamingError::Unreachable(unreachable()))
    }
}
