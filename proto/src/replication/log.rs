//! The log of a group: its entries, their positions, and the leader that may write them.

use bytes::Bytes;
use prost::Message;

/// The position of an entry in the log of a group.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LogPlace {
    /// The term of the leader that proposed the entry.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// The id of the leader that proposed the entry.
    #[prost(uint64, tag = "2")]
    pub node: u64,
    /// The index of the entry.
    #[prost(uint64, tag = "3")]
    pub index: u64,
}

/// A vote of a replica, and whether a quorum cast the same.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Ballot {
    /// The term.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// The id of the candidate.
    #[prost(uint64, tag = "2")]
    pub node: u64,
    /// Whether a quorum has accepted the candidate as leader.
    #[prost(bool, tag = "3")]
    pub committed: bool,
}

/// An entry of a log.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// Its position.
    #[prost(message, required, tag = "1")]
    pub at: LogPlace,
    /// Its content, as in the write-ahead log.
    #[prost(bytes = "bytes", tag = "2")]
    pub body: Bytes,
}

/// Raft's AppendEntries. Without entries it is a heartbeat.
#[derive(Clone, PartialEq, Message)]
pub struct Append {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The leader.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The entry before the first one sent.
    #[prost(message, optional, tag = "3")]
    pub previous: Option<LogPlace>,
    /// The last entry that the leader knows to be committed.
    #[prost(message, optional, tag = "4")]
    pub committed: Option<LogPlace>,
    /// The entries, in order.
    #[prost(message, repeated, tag = "5")]
    pub entries: Vec<Entry>,
    /// The index of the last entry that the receiver has acknowledged to this leader as durable; 0 when it acknowledged
    /// none.
    #[prost(uint64, tag = "6")]
    pub acknowledged: u64,
}

/// The result of an [`Append`].
#[derive(Clone, PartialEq, Message)]
pub struct AppendAnswer {
    /// One of [`append_result`].
    #[prost(uint32, tag = "1")]
    pub result: u32,
    /// The last durable entry, when only some of the entries are durable.
    #[prost(message, optional, tag = "2")]
    pub matched: Option<LogPlace>,
    /// The later ballot, when refused because of one.
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
