//! Bugs that are seeded on purpose, one at a time, to see that simulations find them.
//!
//! Each is a line of the store, behind `seeded!`, at the place where a programmer could make the mistake. A test
//! selects one at run time, so that all are in one build. Builds without tests contain none of them.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A write counts as durable once it was handed to the disk.
    AckBeforeFsync,
    /// A batch applies its writes in another order than they have in it.
    ReorderedApply,
    /// A bookmark ignores changes that were not delivered yet.
    BookmarkAhead,
    /// A write that may have happened is attempted again, on whatever version there is now.
    DuplicateOnRetry,
    /// A vote is lost with the process.
    ForgottenVote,
    /// A leader assigns revisions by its own clock, before it has applied those that others assigned, and ignores those
    /// that it has heard of.
    HastyLeader,
    /// A replica that believes that it leads answers reads without asking the others.
    LeaseRead,
    /// An attempt that was made although its answer was lost counts as refused.
    LostAnswer,
    /// A change that another writer made to a version is taken for the one whose answer was lost.
    ChangeOfAnother,
    /// The truncation of entries by another leader is not written to the log.
    LostTruncate,
    /// Revisions follow the wall clock wherever it goes.
    RevisionFromClockAlone,
    /// A table is read up to the largest closed revision of its groups instead of the smallest.
    SkippedClosedRevision,
    /// A snapshot keeps the present objects, but no history.
    SnapshotWithoutHistory,
    /// A read does not wait until this replica has caught up with the leader.
    StaleFollowerRead,
    /// An update only checks that the object exists, not its revision.
    StaleExpectation,
    /// A consistent list does not wait for groups that lag.
    UnclosedBarrier,
    /// A write is acknowledged before all possible leaders of other groups assign larger revisions.
    UnpromisedAnswer,
    /// A watch resumes from the present revision, whatever it asked for.
    WatchSkipsAtResume,
}

impl Bug {
    /// The bugs that random seeds find. [`Bug::UnpromisedAnswer`] needs too many coincidences; the test of differing
    /// clocks finds it.
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

    /// Returns whether the simulation on this thread has the bug.
    pub(crate) fn is_made(self) -> bool {
        MADE.get() == Some(self)
    }
}

/// Seeds a bug, or none, on this thread until dropped.
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
