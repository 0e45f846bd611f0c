//! What replicas of the store say to each other, as protobuf messages.
//!
//! A call names one of [`Method`] and carries one of the messages; the answer is the message of the same name with
//! `Answer` or `Outcome` in it. Numbers of fields are never used again for something else, so that replicas of
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
