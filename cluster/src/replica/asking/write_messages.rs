//! Converts writes and their errors to and from the messages between replicas.

use bytes::Bytes;
use flotilla_proto::replication::{self as message, write_result};

use crate::object::{Term, WriteId};
use crate::shard_map::Epoch;
use crate::{Draft, Expectation, Key, Layout, Mutation, Revision, TableId, Terms, Write, WriteError};

/// A write, as it is sent to the leader.
pub(crate) struct WriteRequest<'a> {
    pub(crate) write: &'a Write,
    /// The id of the write.
    pub(crate) write_id: WriteId,
    /// The number of earlier attempts that were not answered.
    pub(crate) repeated: u32,
    /// The division of the table, and the number of the shard there.
    pub(crate) shard: (Epoch, u16),
}

fn put_terms(terms: &[Term]) -> Vec<message::Term> {
    terms.iter().map(|(name, value)| message::Term { name: name.to_string(), value: value.to_string() }).collect()
}

/// Returns the message that asks the leader of a group for a write.
pub(super) fn put_write(group: &str, term: u64, request: &WriteRequest<'_>) -> message::Write {
    let WriteRequest { write, write_id, repeated, shard: (epoch, shard) } = *request;
    let draft = match &write.mutation {
        Mutation::Delete => None,
        Mutation::Put(draft) => Some(message::Draft {
            bytes: Bytes::copy_from_slice(&draft.bytes),
            revision_at: draft.layout.revision_at,
            head: draft.layout.head,
            metadata_start: draft.layout.metadata.start,
            metadata_end: draft.layout.metadata.end,
            labels: put_terms(draft.terms.labels()),
            fields: put_terms(draft.terms.fields()),
        }),
    };
    let expected = match write.expectation {
        Expectation::Absent => 0,
        Expectation::Revision(revision) => revision.get(),
    };
    let (table, key) = (write.table.to_string(), write.key.to_string());
    let (group, shard, attempt) = (group.to_owned(), shard.into(), write_id.number());
    message::Write { table, key, expected, draft, group, epoch, shard, attempt, repeated, term }
}

/// Returns the write that a message asks for.
pub(in crate::replica) fn read_write(message: message::Write) -> Write {
    let terms = |terms: Vec<message::Term>| {
        terms.into_iter().map(|term| (term.name.into(), term.value.into())).collect::<Vec<Term>>()
    };
    let draft = |draft: message::Draft| Draft {
        bytes: draft.bytes.into(),
        layout: Layout {
            revision_at: draft.revision_at,
            head: draft.head,
            metadata: draft.metadata_start..draft.metadata_end,
        },
        terms: Terms::new(terms(draft.labels), terms(draft.fields)),
        is_decodable: false,
    };
    let expectation = match message.expected {
        0 => Expectation::Absent,
        revision => Expectation::Revision(Revision::new(revision)),
    };
    let mutation = message.draft.map_or(Mutation::Delete, |given| Mutation::Put(draft(given)));
    Write { table: TableId::new(&message.table), key: Key::new(&message.key), expectation, mutation }
}

/// Returns the message for a write that was not decided.
pub(in crate::replica) fn put_write_error(error: &WriteError) -> message::WriteOutcome {
    let result = match error {
        WriteError::NotLeader { .. } => write_result::NOT_LEADER,
        WriteError::Unavailable => write_result::UNAVAILABLE,
        WriteError::NoSpace => write_result::NO_SPACE,
        WriteError::QueueFull => write_result::QUEUE_FULL,
        WriteError::TooLarge { .. } | WriteError::Malformed => write_result::MALFORMED,
        WriteError::Closed => write_result::CLOSED,
        WriteError::Moved => write_result::MOVED,
        WriteError::Unknown => write_result::UNKNOWN,
    };
    let leader = if let WriteError::NotLeader { leader } = error { leader.unwrap_or(0) } else { 0 };
    message::WriteOutcome { result, leader, ..message::WriteOutcome::default() }
}

/// Returns why a write was not decided, from the leader's message.
pub(super) fn write_error(outcome: &message::WriteOutcome) -> WriteError {
    match outcome.result {
        write_result::NOT_LEADER => WriteError::NotLeader { leader: (outcome.leader > 0).then_some(outcome.leader) },
        write_result::UNAVAILABLE | write_result::CLOSED => WriteError::Unavailable,
        write_result::NO_SPACE => WriteError::NoSpace,
        write_result::QUEUE_FULL => WriteError::QueueFull,
        write_result::MALFORMED => WriteError::Malformed,
        write_result::MOVED => WriteError::Moved,
        _ => WriteError::Unknown,
    }
}
