//! Batches the writes of one group, gives them revisions and proposes them. Closes the group on demand.

use std::collections::VecDeque;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};
use tokio::sync::oneshot;

use super::applier::Outcomes;
use super::{Sequencer, WaitingWrite};
use crate::clock::{Close, GroupClock};
use crate::entry::{Action, Batch, Command, Operation, ShardStep};
use crate::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX, BATCHES_IN_FLIGHT_MAX, GROUP_CLOSES_MAX, GROUP_WRITES_MAX};
use crate::object::WriteId;
use crate::shard_map::Epoch;
use crate::{Mutation, Outcome, ReadError, Revision, Tenure, Write, WriteError};

/// The channel on which a writer receives its outcome.
pub(crate) type Reply = oneshot::Sender<Result<Outcome, WriteError>>;

/// The callers that wait for one proposed batch.
pub(crate) enum Replies {
    /// Writers, in the order of the batch's commands.
    Writers(Vec<(Reply, WaitingWrite)>),
    /// The caller that wants a step taken.
    Stepper(oneshot::Sender<Result<(), WriteError>>),
}

impl Replies {
    /// Answers every writer with its outcome.
    pub(crate) fn outcomes(self, outcomes: Outcomes) {
        match self {
            Replies::Writers(writers) => {
                for ((reply, _permit), outcome) in writers.into_iter().zip(outcomes) {
                    let _ = reply.send(outcome.ok_or(WriteError::Moved)); // fails if the writer stopped waiting
                }
            }
            Replies::Stepper(reply) => drop(reply.send(Ok(()))),
        }
    }

    /// Answers every writer with the same error.
    pub(crate) fn fail(self, error: WriteError) {
        match self {
            Replies::Writers(writers) => writers.into_iter().for_each(|(reply, _permit)| drop(reply.send(Err(error)))),
            Replies::Stepper(reply) => drop(reply.send(Err(error))),
        }
    }
}

/// The log in which batches are proposed.
pub(crate) trait Log: Unpin + 'static {
    /// Proposes a batch in the given term only. The future ends once the batch has been applied or has failed, and the
    /// replies have been answered.
    fn propose(&mut self, batch: Batch, term: u64, replies: Replies) -> impl Future<Output = ()> + 'static;
}

/// The actor that batches the writes of one group while this replica leads it.
pub(crate) struct Proposer<L: Log> {
    log: L,
    clock: Arc<GroupClock>,
    /// Assigns revisions. `None` while this replica does not lead.
    sequencer: Option<Sequencer>,
    leader: Option<u64>,
    /// The term in which this replica leads.
    term: u64,
    queue: VecDeque<Propose>,
    /// Callers that wait for the group to be closed, by a batch that is not in flight yet. The next proposal closes the
    /// group for them.
    closes: Vec<Close>,
    in_flight: usize,
    flush_is_due: bool,
}

impl<L: Log> Proposer<L> {
    pub(crate) fn new(log: L, clock: Arc<GroupClock>) -> Proposer<L> {
        let (queue, closes) = (VecDeque::new(), Vec::new());
        let (sequencer, leader, term, in_flight, flush_is_due) = (None, None, 0, 0, false);
        Proposer { log, clock, sequencer, leader, term, queue, closes, in_flight, flush_is_due }
    }

    /// Returns the present time of the clock by which revisions are assigned.
    fn now(&self) -> Revision {
        self.clock.hybrid().now()
    }

    /// Takes the next batch off the queue. Refuses writes of another tenure.
    fn batch(&mut self) -> (Vec<Command>, Vec<(Reply, WaitingWrite)>) {
        let (mut commands, mut replies, mut bytes) = (Vec::new(), Vec::new(), 0);
        let now = self.now();
        let latest = if seeded!(HastyLeader) { Revision::ZERO } else { self.clock.hybrid().latest() };
        self.sequencer.iter_mut().for_each(|sequencer| sequencer.pass(latest));
        while commands.len() < BATCH_WRITES_MAX && bytes < BATCH_BYTES_MAX {
            let Some(Propose { write, write_id, shard, tenure, reply, permit }) = self.queue.pop_front() else { break };
            let stands = tenure.is_none_or(|Tenure(term)| term.get() == self.term);
            let Some(sequencer) = self.sequencer.as_mut().filter(|_| stands) else {
                let _ = reply.send(Err(WriteError::NotLeader { leader: self.leader }));
                continue;
            };
            let command = sequencer.next(now).and_then(|revision| command(write, write_id, shard, revision));
            let Some(command) = command else {
                let _ = reply.send(Err(WriteError::Malformed));
                continue;
            };
            bytes += command.bytes();
            commands.push(command);
            replies.push((reply, permit));
        }
        (commands, replies)
    }

    fn flush(&mut self, ctx: &mut Context<Proposer<L>>) {
        self.flush_is_due = false;
        self.answer_closed();
        while self.in_flight < BATCHES_IN_FLIGHT_MAX {
            if !self.queue.is_empty() {
                let (commands, replies) = self.batch();
                if !commands.is_empty() {
                    self.propose(Batch::of(commands), Replies::Writers(replies), ctx);
                }
            } else if let Some(revision) = self.unclosed() {
                self.propose(Batch::closing(revision), Replies::Writers(Vec::new()), ctx);
            } else {
                return;
            }
        }
    }

    /// Proposes a batch. It also closes the group for the callers that wait: their revisions were passed over before
    /// the batch got its own.
    fn propose(&mut self, batch: Batch, replies: Replies, ctx: &mut Context<Proposer<L>>) {
        self.in_flight += 1;
        self.clock.assign(batch.last().unwrap_or_default());
        let closes = std::mem::take(&mut self.closes);
        let proposed = self.log.propose(batch, self.term, replies);
        let done = proposed.into_actor(self).map(|(), proposer, ctx| {
            for Close { revision, reply } in closes {
                let closed = proposer.clock.closed() >= revision;
                let _ = reply.send(if closed { Ok(()) } else { Err(ReadError::Unavailable) });
            }
            proposer.in_flight -= 1;
            proposer.flush(ctx);
        });
        ctx.spawn(done);
    }

    /// Answers the callers whose revision has been closed meanwhile; all of them when this replica does not lead.
    fn answer_closed(&mut self) {
        let closed = self.clock.closed();
        let leads = self.sequencer.is_some();
        let (closed_calls, waiting) =
            std::mem::take(&mut self.closes).into_iter().partition(|close| close.revision <= closed || !leads);
        self.closes = waiting;
        for Close { revision, reply } in closed_calls {
            let refused = ReadError::NotLeader { leader: self.leader };
            let _ = reply.send(if revision <= closed { Ok(()) } else { Err(refused) });
        }
    }

    /// Returns the revision up to which an entry of its own must close the group. `None` when no caller waits, or a
    /// batch in flight will close it.
    fn unclosed(&mut self) -> Option<Revision> {
        let revision = self.closes.iter().map(|close| close.revision).max()?;
        if revision <= self.clock.assigned() && self.in_flight > 0 {
            return None;
        }
        let now = self.now();
        self.sequencer.as_mut()?.close(revision, now)
    }

    fn flush_soon(&mut self, ctx: &mut Context<Proposer<L>>) {
        if !self.flush_is_due && self.in_flight < BATCHES_IN_FLIGHT_MAX {
            self.flush_is_due = true;
            ctx.notify(Flush); // handled after the messages that are already in the mailbox
        }
    }
}

fn command(
    write: Write,
    write_id: Option<WriteId>,
    (epoch, shard): (Epoch, u16),
    revision: Revision,
) -> Option<Command> {
    let Write { table, key, expectation, mutation } = write;
    let operation = match mutation {
        Mutation::Put(draft) => Operation::Put(draft.seal(key.clone(), revision)?.made_by(write_id).into()),
        Mutation::Delete => Operation::Delete(write_id),
    };
    Some(Command { table, epoch, shard, key, revision, expectation, operation })
}

impl<L: Log> Actor for Proposer<L> {
    type Context = Context<Proposer<L>>;

    fn started(&mut self, ctx: &mut Context<Proposer<L>>) {
        ctx.set_mailbox_capacity(GROUP_WRITES_MAX);
    }
}

/// Asks for one write to be proposed.
pub(crate) struct Propose {
    pub(crate) write: Write,
    /// The id of the write, if it may have to be attempted again.
    pub(crate) write_id: Option<WriteId>,
    /// The division of the table, and the number of the shard there.
    pub(crate) shard: (Epoch, u16),
    /// The tenure in which the write was decided, if it must be made in the same one.
    pub(crate) tenure: Option<Tenure>,
    pub(crate) reply: Reply,
    pub(crate) permit: WaitingWrite,
}

impl Message for Propose {
    type Result = ();
}

impl<L: Log> Handler<Propose> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, propose: Propose, ctx: &mut Context<Proposer<L>>) {
        self.queue.push_back(propose);
        self.flush_soon(ctx);
    }
}

/// Asks for a step of a shard of the group to be proposed.
pub(crate) struct Advance {
    pub(crate) step: ShardStep,
    /// Answered once the step has been applied here, whether it had an effect or not.
    pub(crate) reply: oneshot::Sender<Result<(), WriteError>>,
}

impl Message for Advance {
    type Result = ();
}

impl<L: Log> Handler<Advance> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, Advance { step, reply }: Advance, ctx: &mut Context<Proposer<L>>) {
        let now = self.now();
        let Some(sequencer) = &mut self.sequencer else {
            let _ = reply.send(Err(WriteError::NotLeader { leader: self.leader }));
            return;
        };
        let above = match step.action {
            Action::Fill(_) => None,
            Action::Open { above } => Some(above),
            Action::End => Some(Revision::FIRST),
        };
        let close = above.and_then(|above| sequencer.close(above, now));
        if above.is_some() && close.is_none() {
            let _ = reply.send(Err(WriteError::Malformed));
            return;
        }
        self.in_flight += 1;
        self.clock.assign(close.unwrap_or_default());
        let proposed = self.log.propose(Batch::stepping(step, close), self.term, Replies::Stepper(reply));
        let done = proposed.into_actor(self).map(|(), proposer, ctx| {
            proposer.in_flight -= 1;
            proposer.flush(ctx);
        });
        ctx.spawn(done);
    }
}

impl<L: Log> Handler<Close> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, close: Close, ctx: &mut Context<Proposer<L>>) {
        if self.closes.len() >= GROUP_CLOSES_MAX || close.revision >= Revision::LAST {
            let _ = close.reply.send(Err(ReadError::Unavailable));
            return;
        }
        if let Some(sequencer) = &mut self.sequencer {
            sequencer.pass(close.revision);
        }
        self.closes.push(close);
        self.flush_soon(ctx);
    }
}

struct Flush;

impl Message for Flush {
    type Result = ();
}

impl<L: Log> Handler<Flush> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, _: Flush, ctx: &mut Context<Proposer<L>>) {
        self.flush(ctx);
    }
}

/// Tells the proposer that the leader of the group has changed.
pub(crate) struct Lead {
    /// The largest revision in the log; `None` when this replica does not lead.
    pub(crate) above: Option<Revision>,
    /// The id of the leader, when known.
    pub(crate) leader: Option<u64>,
    /// The present term, when this replica leads.
    pub(crate) term: u64,
}

impl Message for Lead {
    type Result = ();
}

impl<L: Log> Handler<Lead> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, lead: Lead, ctx: &mut Context<Proposer<L>>) {
        let group_number = self.clock.group_number();
        // When this replica is elected again, batches that it proposed before may be in the log without being applied,
        // after the entry at which it was elected.
        self.sequencer = lead.above.map(|above| Sequencer::above(above.max(self.clock.assigned()), group_number));
        (self.leader, self.term) = (lead.leader, lead.term);
        for close in &self.closes {
            self.sequencer.iter_mut().for_each(|sequencer| sequencer.pass(close.revision));
        }
        self.flush(ctx);
    }
}
