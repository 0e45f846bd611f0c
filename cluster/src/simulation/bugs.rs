//! Mistakes that are made on purpose, one at a time, to see that simulations find them.
//!
//! Each is made by a line of the store, behind `seeded!`, at the place where somebody could make it. They are chosen
//! while the tests run, so that all are in one build; in others than that of the tests there is none of them.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A write counts as durable when it was handed to the disk.
    AckBeforeFsync,
    /// A batch applies its writes in another order than it has them.
    ReorderedApply,
    /// A bookmark does not heed what is still to be told.
    BookmarkAhead,
    /// A write that may have happened is tried again upon whatever there is now.
    DuplicateOnRetry,
    /// A vote is forgotten with the process.
    ForgottenVote,
    /// Who leads assigns revisions by its own clock, before it has applied what others assigned, and whatever it heard
    /// of that.
    HastyLeader,
    /// Who believes to lead answers reads without asking the others.
    LeaseRead,
    /// An attempt that was made although its answer was lost counts as refused.
    LostAnswer,
    /// A change that somebody else made to a version is taken for that of which the answer was lost.
    ChangeOfAnother,
    /// That entries were replaced by another leader is not written down.
    LostTruncate,
    /// Revisions follow the wall clock wherever it goes.
    RevisionFromClockAlone,
    /// A table is read up to where its foremost group is closed.
    SkippedClosedRevision,
    /// A snapshot keeps what there is, and not how it came to be.
    SnapshotWithoutHistory,
    /// A read does not wait until this replica is as far as the leader.
    StaleFollowerRead,
    /// It is enough for an update that there is something to be updated.
    StaleExpectation,
    /// A most recent list does not wait for groups that are behind.
    UnclosedBarrier,
    /// A write is told of before all who may lead other groups assign larger revisions.
    UnpromisedAnswer,
    /// A watch goes on from the present, wherever it was.
    WatchSkipsAtResume,
}

impl Bug {
    /// Those that are found by what seeds draw. For [`Bug::UnpromisedAnswer`] too much must come together; the test of
    /// clocks that differ finds it.
    pub(super) const ALL: [Bug; 17] = [
        Bug::AckBeforeFsync,
        Bug::ReorderedApply,
        Bug::BookmarkAhead,
        Bug::DuplicateOnRetry,
        Bug::ForgottenVote,
        Bug::HastyLeader,
        Bug::LeaseRead,
        Bug::LostAnswer,
        Bug::ChangeOfAnother,
        Bug::LostTruncate,
        Bug::RevisionFromClockAlone,
        Bug::SkippedClosedRevision,
        Bug::SnapshotWithoutHistory,
        Bug::StaleFollowerRead,
        Bug::StaleExpectation,
        Bug::UnclosedBarrier,
        Bug::WatchSkipsAtResume,
    ];

    /// Whether the simulation of this thread makes it.
    pub(crate) fn is_made(self) -> bool {
        MADE.get() == Some(self)
    }
}

/// Makes a mistake on this thread, or none, until dropped.
pub(super) struct Making(());

impl Making {
    pub(super) fn of(bug: Option<Bug>) -> Making {
        MADE.set(bug);
        Making(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        MADE.set(None);
    }
}
