//! The log of a group: its entries, where they are, and who may write them.

use bytes::Bytes;
use prost::Message;

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

#[cfg(test)]
mod tests {
    use super::*;

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
