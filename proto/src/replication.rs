//! What replicas of the store say to each other, as protobuf messages.
//!
//! A call names one of [`Method`] and carries one of the messages; the answer is the message of the same name with
//! `Answer` or `Outcome` in it. Numbers of fields are never used again for something else, so that replicas of
//! neighbouring releases understand each other.

use bytes::Bytes;
use prost::Message;

/// What is asked of another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Method {
    /// Append entries to the log of a group: [`Append`].
    Append = 1,
    /// Vote for a candidate: [`VoteCall`].
    Vote = 2,
    /// Would you vote for this candidate: [`VoteCall`].
    PreVote = 3,
    /// Take over the leadership of a group: [`Transfer`].
    Transfer = 4,
    /// Receive a piece of a snapshot: [`SnapshotPiece`].
    SnapshotPiece = 5,
    /// Install the snapshot that was received: [`SnapshotInstall`].
    SnapshotInstall = 6,
    /// Make a write, as the leader of its group: [`Write`].
    Write = 7,
    /// Up to where must a group be applied for a read to be linearizable: [`ReadIndex`].
    ReadIndex = 8,
    /// Promise that nothing is written any more up to a revision: [`Close`].
    Close = 9,
    /// Do something to the membership or the leaders: [`Administer`].
    Administer = 10,
    /// Rest, and expect to hear of these groups no more than that their leader's process is there: [`Rest`].
    Rest = 11,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 11] = [
        Method::Append,
        Method::Vote,
        Method::PreVote,
        Method::Transfer,
        Method::SnapshotPiece,
        Method::SnapshotInstall,
        Method::Write,
        Method::ReadIndex,
        Method::Close,
        Method::Administer,
        Method::Rest,
    ];

    /// The method with this number.
    pub fn from_number(number: u32) -> Option<Method> {
        Method::ALL.into_iter().find(|method| *method as u32 == number)
    }
}

/// A place in the log of a group.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LogPlace {
    /// The term of the leader that wrote the entry.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// The leader that wrote the entry.
    #[prost(uint64, tag = "2")]
    pub node: u64,
    /// The index of the entry.
    #[prost(uint64, tag = "3")]
    pub index: u64,
}

/// Whom a replica voted for, and whether a quorum did.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Ballot {
    /// The term.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// The candidate.
    #[prost(uint64, tag = "2")]
    pub node: u64,
    /// Whether a quorum has accepted it as leader.
    #[prost(bool, tag = "3")]
    pub committed: bool,
}

/// An entry of a log.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// Its place.
    #[prost(message, required, tag = "1")]
    pub at: LogPlace,
    /// What it says, as it is in the write-ahead log.
    #[prost(bytes = "bytes", tag = "2")]
    pub body: Bytes,
}

/// Raft's AppendEntries; without entries a heartbeat.
#[derive(Clone, PartialEq, Message)]
pub struct Append {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The leader.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The entry before the first.
    #[prost(message, optional, tag = "3")]
    pub previous: Option<LogPlace>,
    /// Up to where the leader has committed.
    #[prost(message, optional, tag = "4")]
    pub committed: Option<LogPlace>,
    /// The entries, in order.
    #[prost(message, repeated, tag = "5")]
    pub entries: Vec<Entry>,
    /// Index of the last entry that the receiver has told this leader to be durable; 0 when it told of none.
    #[prost(uint64, tag = "6")]
    pub acknowledged: u64,
}

/// What became of an [`Append`].
#[derive(Clone, PartialEq, Message)]
pub struct AppendAnswer {
    /// One of [`append_result`].
    #[prost(uint32, tag = "1")]
    pub result: u32,
    /// Up to where entries are durable, when only a part is.
    #[prost(message, optional, tag = "2")]
    pub matched: Option<LogPlace>,
    /// The higher ballot.
    #[prost(message, optional, tag = "3")]
    pub ballot: Option<Ballot>,
}

/// Values of [`AppendAnswer::result`].
pub mod append_result {
    /// All entries are durable.
    pub const SUCCESS: u32 = 0;
    /// The first of the entries are durable, up to `matched`.
    pub const PARTIAL: u32 = 1;
    /// The log does not have the entry before the first.
    pub const CONFLICT: u32 = 2;
    /// There is a later leader or candidate.
    pub const HIGHER_BALLOT: u32 = 3;
}

/// Raft's RequestVote, and its rehearsal.
#[derive(Clone, PartialEq, Message)]
pub struct VoteCall {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The candidate.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The last entry of its log.
    #[prost(message, optional, tag = "3")]
    pub last: Option<LogPlace>,
    /// Whether the leader itself asked the candidate to take over. In a rehearsal the ballot is then that leader's, and
    /// the question whether the voter knows of none after it.
    #[prost(bool, tag = "4")]
    pub transfer: bool,
}

/// The answer to a [`VoteCall`].
#[derive(Clone, PartialEq, Message)]
pub struct VoteAnswer {
    /// The voter's own ballot.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
    /// Whether the vote is granted.
    #[prost(bool, tag = "2")]
    pub granted: bool,
    /// The last entry of the voter's log.
    #[prost(message, optional, tag = "3")]
    pub last: Option<LogPlace>,
    /// Where the log says who the members are, when the candidate is none of them and does not have that entry.
    #[prost(message, optional, tag = "4")]
    pub excluded: Option<LogPlace>,
}

/// Raft's TimeoutNow: the leader hands over.
#[derive(Clone, PartialEq, Message)]
pub struct Transfer {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The leader.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// Who is to lead.
    #[prost(uint64, tag = "3")]
    pub to: u64,
    /// What the new leader must have in its log.
    #[prost(message, optional, tag = "4")]
    pub last: Option<LogPlace>,
}

/// The answer to a [`Transfer`].
#[derive(Clone, PartialEq, Message)]
pub struct TransferAnswer {
    /// Set when refused because another ballot was cast meanwhile.
    #[prost(message, optional, tag = "1")]
    pub ballot: Option<Ballot>,
    /// Set when refused because the log is not durable that far: whether it is.
    #[prost(bool, tag = "2")]
    pub unflushed: bool,
    /// Up to where the log is durable, when refused because of that.
    #[prost(message, optional, tag = "3")]
    pub flushed: Option<LogPlace>,
}

/// A piece of a snapshot, or with no bytes the question how much of it is there already.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotPiece {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// Which snapshot: the same name stands for the same bytes.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where in the file the bytes belong.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    /// CRC-32C of the bytes.
    #[prost(fixed32, tag = "4")]
    pub checksum: u32,
    /// The bytes.
    #[prost(bytes = "bytes", tag = "5")]
    pub bytes: Bytes,
    /// Size of the file; zero from a sender that does not tell.
    #[prost(uint64, tag = "6")]
    pub size: u64,
}

/// How much of a snapshot is there.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SnapshotPieceAnswer {
    /// Where the next piece begins.
    #[prost(uint64, tag = "1")]
    pub offset: u64,
}

/// The snapshot is complete.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotInstall {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// Which snapshot.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its size in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// The leader.
    #[prost(message, required, tag = "4")]
    pub ballot: Ballot,
}

/// What became of a [`SnapshotInstall`].
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotInstallAnswer {
    /// The replica's ballot.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
}

/// A label or a selectable field.
#[derive(Clone, PartialEq, Message)]
pub struct Term {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An object that is to be written.
#[derive(Clone, PartialEq, Message)]
pub struct Draft {
    /// The encoded object, with placeholders for the revision.
    #[prost(bytes = "bytes", tag = "1")]
    pub bytes: Bytes,
    /// Offset of the placeholders.
    #[prost(uint32, tag = "2")]
    pub revision_at: u32,
    /// Offset at which the type meta ends.
    #[prost(uint32, tag = "3")]
    pub head: u32,
    /// Where the metadata begins.
    #[prost(uint32, tag = "4")]
    pub metadata_start: u32,
    /// Where the metadata ends.
    #[prost(uint32, tag = "5")]
    pub metadata_end: u32,
    /// Labels.
    #[prost(message, repeated, tag = "6")]
    pub labels: Vec<Term>,
    /// Selectable fields.
    #[prost(message, repeated, tag = "7")]
    pub fields: Vec<Term>,
}

/// A write that another replica was asked to make.
#[derive(Clone, PartialEq, Message)]
pub struct Write {
    /// The table.
    #[prost(string, tag = "1")]
    pub table: String,
    /// The object.
    #[prost(string, tag = "2")]
    pub key: String,
    /// The revision that the object must have; zero when there must be none.
    #[prost(uint64, tag = "3")]
    pub expected: u64,
    /// The new version; none to delete.
    #[prost(message, optional, tag = "4")]
    pub draft: Option<Draft>,
    /// The group that the sender takes the object's shard to be in.
    #[prost(string, tag = "5")]
    pub group: String,
    /// The division of the table that the sender takes it to have.
    #[prost(uint32, tag = "6")]
    pub epoch: u32,
    /// The object's shard there.
    #[prost(uint32, tag = "7")]
    pub shard: u32,
    /// The name of the write, by which it is known when it is asked for again; zero for none.
    #[prost(uint64, tag = "8")]
    pub attempt: u64,
    /// How often it was asked for before. What was asked for earlier and comes later is not made.
    #[prost(uint32, tag = "9")]
    pub repeated: u32,
    /// The term in which the sender takes the receiver to lead: only in that it is made. Zero for any.
    #[prost(uint64, tag = "10")]
    pub term: u64,
    /// The largest revision that the sender knows to be assigned, in any group: that of the write is to be larger.
    #[prost(uint64, tag = "11")]
    pub latest: u64,
}

/// What became of a [`Write`].
#[derive(Clone, PartialEq, Message)]
pub struct WriteOutcome {
    /// One of [`write_result`].
    #[prost(uint32, tag = "1")]
    pub result: u32,
    /// The revision of the write when committed; of the present object, or zero, when in conflict.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
    /// Up to where the leader's group was closed when it answered: who has that much sees what the write came to.
    #[prost(uint64, tag = "3")]
    pub closed: u64,
    /// Who leads, as far as known, when this replica does not.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
}

/// Values of [`WriteOutcome::result`].
pub mod write_result {
    /// The write happened.
    pub const COMMITTED: u32 = 0;
    /// The expectation did not hold.
    pub const CONFLICT: u32 = 1;
    /// The replica does not lead; the write did not happen.
    pub const NOT_LEADER: u32 = 2;
    /// There is no leader; the write did not happen.
    pub const UNAVAILABLE: u32 = 3;
    /// The leader's disk is full; the write did not happen.
    pub const NO_SPACE: u32 = 4;
    /// Too many writes wait; the write did not happen.
    pub const QUEUE_FULL: u32 = 5;
    /// The write cannot be made.
    pub const MALFORMED: u32 = 6;
    /// The leader is stopping; the write did not happen.
    pub const CLOSED: u32 = 7;
    /// The write may have happened.
    pub const UNKNOWN: u32 = 8;
    /// The shard takes no writes any more; the write did not happen.
    pub const MOVED: u32 = 9;
}

/// The question for a read point.
#[derive(Clone, PartialEq, Message)]
pub struct ReadIndex {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
}

/// A read point.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ReadIndexAnswer {
    /// Up to which index a replica must have applied; zero when the one asked does not lead.
    #[prost(uint64, tag = "1")]
    pub index: u64,
    /// Who leads, as far as known.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
}

/// The wish for a promise that a group gives no revision up to this one any more.
#[derive(Clone, PartialEq, Message)]
pub struct Close {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The revision.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
}

/// Whether the promise stands in the log.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct CloseAnswer {
    /// Whether it is given; else the one asked does not lead.
    #[prost(bool, tag = "1")]
    pub closed: bool,
    /// Who leads, as far as known.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
}

/// A wish about membership or leaders, of one group.
#[derive(Clone, PartialEq, Message)]
pub struct Administer {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// One of [`administration`].
    #[prost(uint32, tag = "2")]
    pub action: u32,
    /// The member that it is about.
    #[prost(uint64, tag = "3")]
    pub member: u64,
    /// Name of the member, when it is to be admitted.
    #[prost(string, tag = "4")]
    pub name: String,
    /// Address of the member, when it is to be admitted.
    #[prost(string, tag = "5")]
    pub address: String,
}

/// Values of [`Administer::action`].
pub mod administration {
    /// Send the member everything, and then give it a vote, in place of whoever has its name.
    pub const ADMIT: u32 = 1;
    /// Take the member out.
    pub const REMOVE: u32 = 2;
    /// Let the member lead.
    pub const TRANSFER: u32 = 3;
    /// To the member itself: lead nothing from now on, as long as others can.
    pub const DRAIN: u32 = 4;
    /// To the member itself: lead again.
    pub const UNDRAIN: u32 = 5;
    /// To the member itself: keep the group for a while once it is yours; every group when none is named.
    pub const HOLD: u32 = 6;
    /// Take the vote of the member, and go on sending it everything.
    pub const UNVOTE: u32 = 7;
}

/// What became of an [`Administer`].
#[derive(Clone, PartialEq, Message)]
pub struct AdministerAnswer {
    /// Empty when done; else why not.
    #[prost(string, tag = "1")]
    pub refusal: String,
    /// Who leads, when the one asked does not and knows who does; else zero.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
    /// Whether the one asked does not lead, so that nothing was done.
    #[prost(bool, tag = "3")]
    pub moved: bool,
}

/// The wish of a leader that groups rest in which nothing happens.
#[derive(Clone, PartialEq, Message)]
pub struct Rest {
    /// The groups.
    #[prost(message, repeated, tag = "1")]
    pub groups: Vec<Resting>,
}

/// A group that is to rest.
#[derive(Clone, PartialEq, Message)]
pub struct Resting {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The leader.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The last entry of the log, which is applied everywhere.
    #[prost(message, required, tag = "3")]
    pub last: LogPlace,
}

/// Which groups rest.
#[derive(Clone, PartialEq, Message)]
pub struct RestAnswer {
    /// Whether each rests, in the order of the question: it does if that is all that the replica knows of it, too.
    #[prost(bool, repeated, tag = "1")]
    pub rests: Vec<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_the_numbers_that_they_are_called_by() {
        for (place, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as u32, place as u32 + 1);
            assert_eq!(Method::from_number(method as u32), Some(method));
        }
        assert_eq!(Method::from_number(0), None);
    }

    #[test]
    fn bodies_of_entries_are_not_copied() {
        let entry = Entry { at: LogPlace { term: 1, node: 2, index: 3 }, body: Bytes::from(vec![7; 100]) };
        let append = Append { group: "default".into(), entries: vec![entry], ..Append::default() };
        let encoded = Bytes::from(append.encode_to_vec());
        let decoded = Append::decode(encoded.clone()).unwrap();
        assert_eq!(decoded, append);
        let within = encoded.as_ptr_range();
        assert!(within.contains(&decoded.entries[0].body.as_ptr()));
    }
}
