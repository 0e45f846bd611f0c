//! Groups: what is replicated together. A group's proposer batches writes and gives them revisions; its state machine
//! hands what is committed to the shards.

mod admission;
mod applier;
mod batch;
mod proposer;
mod sequencer;

pub(crate) use self::admission::{Admission, Permit};
pub(crate) use self::applier::{Applier, Captured, Tables};
pub(crate) use self::batch::{Batch, Command, Operation};
pub(crate) use self::proposer::{Lead, Log, Propose, Proposer, Replies};
pub(crate) use self::sequencer::Sequencer;
