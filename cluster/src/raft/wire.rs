//! Converts openraft's values to and from messages between replicas.

use bytes::Bytes;
use flotilla_proto::replication::{self as message, append_result};
use openraft::EntryPayload;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderError, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};

use super::types::{self, Entry, LogIdentity, TypeConfig, Vote};
use crate::wal::{Ballot, LogRef};

pub(super) fn log_place(id: &LogIdentity) -> message::LogPlace {
    let LogRef { term, node, index } = types::log_ref(id);
    message::LogPlace { term, node, index }
}

pub(super) fn log_id(place: &message::LogPlace) -> LogIdentity {
    types::log_id(LogRef { term: place.term, node: place.node, index: place.index })
}

pub(super) fn ballot(vote: &Vote) -> message::Ballot {
    let Ballot { term, node, committed } = types::ballot(vote);
    message::Ballot { term, node, committed }
}

pub(super) fn vote(ballot: &message::Ballot) -> Vote {
    types::vote(Ballot { term: ballot.term, node: ballot.node, committed: ballot.committed })
}

pub(super) fn put_append(
    group: &str,
    request: &AppendEntriesRequest<TypeConfig>,
    acknowledged: u64,
) -> message::Append {
    let body = |entry: &Entry| {
        let mut body = Vec::with_capacity(match &entry.payload {
            EntryPayload::Normal(batch) => batch.bytes(),
            _ => 0,
        });
        types::put_entry(entry, &mut body);
        message::Entry { at: log_place(&entry.log_id), body: Bytes::from(body) }
    };
    message::Append {
        group: group.to_owned(),
        ballot: ballot(&request.vote),
        previous: request.prev_log_id.as_ref().map(log_place),
        committed: request.leader_commit.as_ref().map(log_place),
        entries: request.entries.iter().map(body).collect(),
        acknowledged,
    }
}

/// Returns the request; `None` when an entry cannot be decoded.
pub(super) fn append(message: &message::Append) -> Option<AppendEntriesRequest<TypeConfig>> {
    let entry = |entry: &message::Entry| {
        let at = LogRef { term: entry.at.term, node: entry.at.node, index: entry.at.index };
        types::read_entry(at, &entry.body)
    };
    Some(AppendEntriesRequest {
        vote: vote(&message.ballot),
        prev_log_id: message.previous.as_ref().map(log_id),
        entries: message.entries.iter().map(entry).collect::<Option<Vec<Entry>>>()?,
        leader_commit: message.committed.as_ref().map(log_id),
    })
}

pub(super) fn put_append_answer(response: &AppendEntriesResponse<TypeConfig>) -> message::AppendAnswer {
    let answer = |result| message::AppendAnswer { result, ..message::AppendAnswer::default() };
    match response {
        AppendEntriesResponse::Success => answer(append_result::SUCCESS),
        AppendEntriesResponse::PartialSuccess(matched) => {
            message::AppendAnswer { matched: matched.as_ref().map(log_place), ..answer(append_result::PARTIAL) }
        }
        AppendEntriesResponse::Conflict => answer(append_result::CONFLICT),
        AppendEntriesResponse::HigherVote(vote) => {
            message::AppendAnswer { ballot: Some(ballot(vote)), ..answer(append_result::HIGHER_BALLOT) }
        }
    }
}

/// Returns the response; `None` when it is of an unknown kind.
pub(super) fn append_answer(message: &message::AppendAnswer) -> Option<AppendEntriesResponse<TypeConfig>> {
    Some(match message.result {
        append_result::SUCCESS => AppendEntriesResponse::Success,
        append_result::PARTIAL => AppendEntriesResponse::PartialSuccess(message.matched.as_ref().map(log_id)),
        append_result::CONFLICT => AppendEntriesResponse::Conflict,
        append_result::HIGHER_BALLOT => AppendEntriesResponse::HigherVote(vote(message.ballot.as_ref()?)),
        _ => return None,
    })
}

pub(super) fn put_vote_call(group: &str, request: &VoteRequest<TypeConfig>) -> message::VoteCall {
    message::VoteCall {
        group: group.to_owned(),
        ballot: ballot(&request.vote),
        last: request.last_log_id.as_ref().map(log_place),
        transfer: request.leadership_transfer,
    }
}

pub(super) fn vote_call(message: &message::VoteCall) -> VoteRequest<TypeConfig> {
    let mut request = VoteRequest::new(vote(&message.ballot), message.last.as_ref().map(log_id));
    request.leadership_transfer = message.transfer;
    request
}

pub(super) fn put_vote_answer(response: &VoteResponse<TypeConfig>) -> message::VoteAnswer {
    let last = response.last_log_id.as_ref().map(log_place);
    message::VoteAnswer { ballot: ballot(&response.vote), granted: response.vote_granted, last, excluded: None }
}

pub(super) fn vote_answer(message: &message::VoteAnswer) -> VoteResponse<TypeConfig> {
    VoteResponse::new(vote(&message.ballot), message.last.as_ref().map(log_id), message.granted)
}

pub(super) fn put_transfer(group: &str, request: &TransferLeaderRequest<TypeConfig>) -> message::Transfer {
    message::Transfer {
        group: group.to_owned(),
        ballot: ballot(request.from_leader()),
        to: *request.to_node_id(),
        last: request.last_log_id().map(log_place),
    }
}

pub(super) fn transfer(message: &message::Transfer) -> TransferLeaderRequest<TypeConfig> {
    TransferLeaderRequest::new(vote(&message.ballot), message.to, message.last.as_ref().map(log_id))
}

pub(super) fn put_transfer_answer(response: &TransferLeaderResponse<TypeConfig>) -> message::TransferAnswer {
    match response {
        Ok(()) => message::TransferAnswer::default(),
        Err(TransferLeaderError::VoteChanged { actual, .. }) => {
            message::TransferAnswer { ballot: Some(ballot(actual)), ..message::TransferAnswer::default() }
        }
        Err(TransferLeaderError::LogNotFlushed { actual, .. }) => {
            message::TransferAnswer { ballot: None, unflushed: true, flushed: actual.as_ref().map(log_place) }
        }
    }
}

pub(super) fn transfer_answer(
    request: &TransferLeaderRequest<TypeConfig>,
    message: &message::TransferAnswer,
) -> TransferLeaderResponse<TypeConfig> {
    if let Some(ballot) = &message.ballot {
        return Err(TransferLeaderError::VoteChanged { expected: *request.from_leader(), actual: vote(ballot) });
    }
    if message.unflushed {
        let actual = message.flushed.as_ref().map(log_id);
        return Err(TransferLeaderError::LogNotFlushed { expected: request.last_log_id().copied(), actual });
    }
    Ok(())
}

pub(super) fn snapshot_answer(message: &message::SnapshotInstallAnswer) -> SnapshotResponse<TypeConfig> {
    SnapshotResponse::new(vote(&message.ballot))
}
