//! The messages of calls between replicas of the store, encoded as protobuf.
//!
//! A call names a [`Method`] and carries one of the messages. The answer is the message with the same name plus
//! `Answer` or `Outcome`. Numbers of fields and methods are never reused for something else, so that replicas of
//! neighbouring releases understand each other.

mod leadership;
mod log;
mod members;
mod reads;
mod snapshots;
mod writes;

pub use self::leadership::{Rest, RestAnswer, Resting, Transfer, TransferAnswer, VoteAnswer, VoteCall};
pub use self::log::{Append, AppendAnswer, Ballot, Entry, LogPlace, append_result};
pub use self::members::{Administer, AdministerAnswer, administration};
pub use self::reads::{Close, CloseAnswer, ReadIndex, ReadIndexAnswer};
pub use self::snapshots::{SnapshotInstall, SnapshotInstallAnswer, SnapshotPiece, SnapshotPieceAnswer};
pub use self::writes::{Draft, Term, Write, WriteOutcome, write_result};

/// The method of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Method {
    /// Append entries to the log of a group: [`Append`].
    Append = 1,
    /// Vote for a candidate: [`VoteCall`].
    Vote = 2,
    /// Say whether this replica would vote for a candidate: [`VoteCall`].
    PreVote = 3,
    /// Take over the leadership of a group: [`Transfer`].
    Transfer = 4,
    /// Receive a piece of a snapshot: [`SnapshotPiece`].
    SnapshotPiece = 5,
    /// Install the snapshot that was received: [`SnapshotInstall`].
    SnapshotInstall = 6,
    /// Make a write, as the leader of its group: [`Write`].
    Write = 7,
    /// Return the index up to which a group must be applied for a read to be linearizable: [`ReadIndex`].
    ReadIndex = 8,
    /// Promise that nothing is written any more up to a revision: [`Close`].
    Close = 9,
    /// Change the members or the leader of a group, or the groups that this replica should lead: [`Administer`].
    Administer = 10,
    /// Let groups rest: expect no heartbeats of their leader while its process runs: [`Rest`].
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

    /// Returns the method with this number. Returns `None` when there is none.
    pub fn from_number(number: u32) -> Option<Method> {
        Method::ALL.into_iter().find(|method| *method as u32 == number)
    }
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
}
