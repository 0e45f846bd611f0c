//! Groups, each of which replicates shards as one Raft group. A group's proposer batches writes and gives them
//! revisions; its state machine applies committed batches to the shards; its clock says up to which revision it is
//! closed.

mod applier;
mod closed_times;
mod closer;
mod proposer;
mod sequencer;
mod tables;
mod waiting_writes;

pub(crate) use self::applier::{Applier, Captured, Outcomes};
pub(crate) use self::closed_times::RevisionExpiry;
pub(crate) use self::closer::close_on_demand;
pub(crate) use self::proposer::{Advance, Lead, Log, Propose, Proposer, Replies};
pub(crate) use self::sequencer::Sequencer;
pub(crate) use self::tables::Tables;
pub(crate) use self::waiting_writes::{WaitingWrite, WaitingWrites};
