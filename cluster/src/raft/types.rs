//! The types with which openraft is instantiated, and the encoding of its values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use openraft::alias::{LogIdOf, StoredMembershipOf, VoteOf};
use openraft::entry::RaftEntry;
use openraft::raft::responder::Responder;
use openraft::vote::RaftLeaderId;
use openraft::{EntryPayload, LogId, Membership, OptionalSend, RaftMetrics, RaftTypeConfig};

use crate::Revision;
use crate::codec::{Decoder, put_batch, put_long, put_text};
use crate::entry::Batch;
use crate::group::Outcomes;
use crate::roster::Replica;
use crate::wal::{Ballot, LogRef};

#[cfg(not(test))]
type Runtime = openraft::impls::TokioRuntime;
#[cfg(test)]
type Runtime = crate::simulation::runtime::SeededRuntime;

/// Flotilla's configuration of openraft's types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypeConfig;

impl RaftTypeConfig for TypeConfig {
    type D = Batch;
    type R = Applied;
    type NodeId = u64;
    type Node = Replica;
    type Term = u64;
    type LeaderId = openraft::impls::leader_id_adv::LeaderId<u64, u64>;
    type Vote = openraft::impls::Vote<Self::LeaderId>;
    type Payload = EntryPayload<Batch, u64, Replica>;
    type Entry = openraft::Entry<<Self::LeaderId as RaftLeaderId>::Committed, Self::Payload>;
    type AsyncRuntime = Runtime;
    type Responder<T>
        = Reaction<T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = openraft::impls::InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = openraft::impls::BoxedErrorSource;
}

pub(super) type LeaderId = <TypeConfig as RaftTypeConfig>::LeaderId;
pub(super) type Entry = <TypeConfig as RaftTypeConfig>::Entry;
pub(super) type Vote = VoteOf<TypeConfig>;
pub(super) type LogIdentity = LogIdOf<TypeConfig>;
pub(super) type StoredMembership = StoredMembershipOf<TypeConfig>;
pub(super) type Metrics = RaftMetrics<TypeConfig>;

/// The result of applying an entry: an outcome for each of its commands.
#[derive(Debug, Default)]
pub(crate) struct Applied(pub(crate) Outcomes);

/// Handles the result of a proposal at once, on the thread that learns it.
pub(crate) struct Reaction<T>(pub(crate) Box<dyn FnOnce(T) + Send>);

impl<T: OptionalSend + 'static> Responder<TypeConfig, T> for Reaction<T> {
    fn on_complete(self, result: T) {
        (self.0)(result);
    }
}

impl<T> fmt::Debug for Reaction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reaction")
    }
}

pub(super) fn log_ref(id: &LogIdentity) -> LogRef {
    let leader = id.committed_leader_id();
    LogRef { term: leader.term, node: leader.node_id, index: id.index() }
}

pub(super) fn log_id(at: LogRef) -> LogIdentity {
    LogId::new(LeaderId { term: at.term, node_id: at.node }, at.index)
}

pub(super) fn ballot(vote: &Vote) -> Ballot {
    Ballot { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
}

pub(super) fn vote(ballot: Ballot) -> Vote {
    let leader_id = LeaderId { term: ballot.term, node_id: ballot.node };
    openraft::Vote { leader_id, committed: ballot.committed }
}

/// Returns the largest revision that an entry assigns or closes; `None` for an entry without any.
pub(super) fn last_revision(entry: &Entry) -> Option<Revision> {
    match &entry.payload {
        EntryPayload::Normal(batch) => batch.last(),
        _ => None,
    }
}

const BLANK: u8 = 0;
const NORMAL: u8 = 1;
const MEMBERSHIP: u8 = 2;

/// Encodes the content of an entry, without its position in the log.
pub(super) fn put_entry(entry: &Entry, out: &mut Vec<u8>) {
    match &entry.payload {
        EntryPayload::Blank => out.push(BLANK),
        EntryPayload::Normal(batch) => {
            out.push(NORMAL);
            put_batch(batch, out);
        }
        EntryPayload::Membership(membership) => {
            out.push(MEMBERSHIP);
            put_membership(membership, out);
        }
    }
}

pub(super) fn read_entry(at: LogRef, bytes: &[u8]) -> Option<Entry> {
    let mut decoder = Decoder::new(bytes);
    let payload = match decoder.byte()? {
        BLANK => EntryPayload::Blank,
        NORMAL => EntryPayload::Normal(decoder.batch()?),
        MEMBERSHIP => EntryPayload::Membership(membership(&mut decoder)?),
        _ => return None,
    };
    Some(Entry::new(log_id(at), payload))
}

fn put_membership(membership: &Membership<u64, Replica>, out: &mut Vec<u8>) {
    put_long(membership.get_joint_config().len() as u64, out);
    for voters in membership.get_joint_config() {
        put_long(voters.len() as u64, out);
        voters.iter().for_each(|voter| put_long(*voter, out));
    }
    put_long(membership.nodes().count() as u64, out);
    for (id, node) in membership.nodes() {
        put_long(*id, out);
        put_text(&node.name, out);
        put_text(&node.address, out);
    }
}

fn membership(decoder: &mut Decoder<'_>) -> Option<Membership<u64, Replica>> {
    let configs = decoder.long()?;
    let mut voters = |_| {
        let count = decoder.long()?;
        (0..count).map(|_| decoder.long()).collect::<Option<BTreeSet<u64>>>()
    };
    let configs = (0..configs).map(&mut voters).collect::<Option<Vec<_>>>()?;
    let nodes = decoder.long()?;
    let node = |_| {
        let (id, name, address) = (decoder.long()?, decoder.text()?.to_owned(), decoder.text()?.to_owned());
        Some((id, Replica { name, address }))
    };
    let nodes = (0..nodes).map(node).collect::<Option<BTreeMap<u64, Replica>>>()?;
    if configs.is_empty() && nodes.is_empty() {
        return Some(Membership::default());
    }
    Membership::new(configs, nodes).ok()
}

pub(super) fn put_stored_membership(stored: &StoredMembership) -> Vec<u8> {
    let mut out = vec![u8::from(stored.log_id().is_some())];
    let at = stored.log_id().as_ref().map_or([0; 3], |id| {
        let at = log_ref(id);
        [at.term, at.node, at.index]
    });
    at.into_iter().for_each(|number| put_long(number, &mut out));
    put_membership(stored.membership(), &mut out);
    out
}

pub(super) fn read_stored_membership(bytes: &[u8]) -> Option<StoredMembership> {
    let mut decoder = Decoder::new(bytes);
    let known = decoder.byte()? != 0;
    let at = LogRef { term: decoder.long()?, node: decoder.long()?, index: decoder.long()? };
    Some(StoredMembership::new(known.then(|| log_id(at)), membership(&mut decoder)?))
}
