//! Batches the writes of one group, gives them revisions, and proposes them.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};
use tokio::sync::oneshot;

use super::{Batch, Command, Operation, Permit, Sequencer};
use crate::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX, BATCHES_IN_FLIGHT_MAX, GROUP_WRITES_MAX};
use crate::{Mutation, Outcome, Revision, Write, WriteError};

/// What a writer waits for.
pub(crate) type Reply = oneshot::Sender<Result<Outcome, WriteError>>;

/// The writers of one proposed batch, in the order of its commands.
pub(crate) struct Replies(Vec<(Reply, Permit)>);

impl Replies {
    /// Answers every writer with its outcome.
    pub(crate) fn outcomes(self, outcomes: Vec<Outcome>) {
        for ((reply, _permit), outcome) in self.0.into_iter().zip(outcomes) {
            let _ = reply.send(Ok(outcome)); // a writer that went away does not want it
        }
    }

    /// Answers every writer with the same error.
    pub(crate) fn fail(self, error: WriteError) {
        for (reply, _permit) in self.0 {
            let _ = reply.send(Err(error));
        }
    }
}

/// Where batches are proposed.
pub(crate) trait Log: Unpin + 'static {
    /// Proposes a batch. The replies are answered when it is applied or has failed; the future ends then.
    fn propose(&mut self, batch: Batch, replies: Replies) -> impl Future<Output = ()> + 'static;
}

/// The actor that batches the writes of one group while this replica leads it.
pub(crate) struct Proposer<L: Log> {
    log: L,
    /// There is one while this replica leads.
    sequencer: Option<Sequencer>,
    leader: Option<u64>,
    queue: VecDeque<Propose>,
    in_flight: usize,
    flush_is_due: bool,
}

impl<L: Log> Proposer<L> {
    pub(crate) fn new(log: L) -> Proposer<L> {
        Proposer { log, sequencer: None, leader: None, queue: VecDeque::new(), in_flight: 0, flush_is_due: false }
    }

    /// Takes the next batch off the queue.
    fn batch(&mut self) -> (Vec<Command>, Vec<(Reply, Permit)>) {
        let (mut commands, mut replies, mut bytes) = (Vec::new(), Vec::new(), 0);
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        while commands.len() < BATCH_WRITES_MAX && bytes < BATCH_BYTES_MAX {
            let Some(Propose { write, reply, permit }) = self.queue.pop_front() else { break };
            let Some(sequencer) = &mut self.sequencer else {
                let _ = reply.send(Err(WriteError::NotLeader { leader: self.leader }));
                continue;
            };
            let command = sequencer.next(unix_ms).and_then(|revision| command(write, revision));
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
        while self.in_flight < BATCHES_IN_FLIGHT_MAX && !self.queue.is_empty() {
            let (commands, replies) = self.batch();
            if commands.is_empty() {
                continue;
            }
            self.in_flight += 1;
            let proposed = self.log.propose(Batch::of(commands), Replies(replies));
            let done = proposed.into_actor(self).map(|(), proposer, ctx| {
                proposer.in_flight -= 1;
                proposer.flush(ctx);
            });
            ctx.spawn(done);
        }
    }
}

fn command(write: Write, revision: Revision) -> Option<Command> {
    let Write { table, key, expectation, mutation } = write;
    let operation = match mutation {
        Mutation::Put(draft) => Operation::Put(draft.seal(key.clone(), revision)?.into()),
        Mutation::Delete => Operation::Delete,
    };
    Some(Command { table, key, revision, expectation, operation })
}

impl<L: Log> Actor for Proposer<L> {
    type Context = Context<Proposer<L>>;

    fn started(&mut self, ctx: &mut Context<Proposer<L>>) {
        ctx.set_mailbox_capacity(GROUP_WRITES_MAX);
    }
}

/// Proposes one write.
pub(crate) struct Propose {
    pub(crate) write: Write,
    pub(crate) reply: Reply,
    pub(crate) permit: Permit,
}

impl Message for Propose {
    type Result = ();
}

impl<L: Log> Handler<Propose> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, propose: Propose, ctx: &mut Context<Proposer<L>>) {
        self.queue.push_back(propose);
        if !self.flush_is_due && self.in_flight < BATCHES_IN_FLIGHT_MAX {
            self.flush_is_due = true;
            ctx.notify(Flush); // handled after the writes that are in the mailbox already
        }
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

/// Who leads the group has changed.
pub(crate) struct Lead {
    /// The largest revision in the log, when this replica leads.
    pub(crate) above: Option<Revision>,
    /// The leader, when known.
    pub(crate) leader: Option<u64>,
}

impl Message for Lead {
    type Result = ();
}

impl<L: Log> Handler<Lead> for Proposer<L> {
    type Result = ();

    fn handle(&mut self, lead: Lead, ctx: &mut Context<Proposer<L>>) {
        self.sequencer = lead.above.map(Sequencer::above);
        self.leader = lead.leader;
        self.flush(ctx);
    }
}
