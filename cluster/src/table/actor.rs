//! The actor of a shard: its only writer.

use std::sync::Arc;

use actix::{Actor, Addr, ArbiterHandle, AsyncContext, Context, Handler, Message};
use tokio::time::Instant;

use super::division::Division;
use super::shard::Shard;
use crate::entry::{Action, Batch, ShardStep};
use crate::limits::MAILBOX_MESSAGES_MAX;
use crate::{Object, Outcome, Revision};

/// The only writer of one shard's state on this replica.
pub(crate) struct ShardActor {
    shard: Arc<Shard>,
    history_bytes_max: usize,
}

impl ShardActor {
    /// Starts the actor on a thread.
    pub(crate) fn spawn(thread: &ArbiterHandle, shard: Arc<Shard>, history_bytes_max: usize) -> Addr<ShardActor> {
        ShardActor::start_in_arbiter(thread, move |_| ShardActor { shard, history_bytes_max })
    }
}

impl Actor for ShardActor {
    type Context = Context<ShardActor>;

    fn started(&mut self, ctx: &mut Context<ShardActor>) {
        ctx.set_mailbox_capacity(MAILBOX_MESSAGES_MAX);
    }
}

/// Applies the commands at these positions of committed batches.
pub(crate) struct Apply {
    /// Committed batches in log order.
    pub(crate) batches: Arc<[Batch]>,
    /// The commands of this shard: the number of the batch, and the position of the command in it.
    pub(crate) positions: Vec<(u32, u32)>,
}

impl Message for Apply {
    type Result = Vec<((u32, u32), Option<Outcome>)>;
}

impl Handler<Apply> for ShardActor {
    type Result = actix::MessageResult<Apply>;

    fn handle(&mut self, apply: Apply, _: &mut Context<ShardActor>) -> actix::MessageResult<Apply> {
        let mut commands: Vec<_> = apply
            .positions
            .iter()
            .filter_map(|(batch, command)| apply.batches.get(*batch as usize)?.commands().get(*command as usize))
            .collect();
        if seeded!(ReorderedApply) {
            commands.reverse();
        }
        let outcomes = self.shard.apply(&commands);
        actix::MessageResult(apply.positions.into_iter().zip(outcomes).collect())
    }
}

/// Makes the shard take a step of a division.
pub(crate) struct Take {
    pub(crate) step: Arc<ShardStep>,
    /// The revision up to which the entry closes the group, if it does.
    pub(crate) close: Option<Revision>,
    /// The division before this one. A version that it has already is shared instead of kept twice.
    pub(crate) before: Option<Arc<Division>>,
}

impl Message for Take {
    type Result = ();
}

impl Handler<Take> for ShardActor {
    type Result = ();

    fn handle(&mut self, Take { step, close, before }: Take, _: &mut Context<ShardActor>) {
        let present = |object: &Object| {
            let shard = &before.as_ref()?.shard_for(object.key().as_str()).shard;
            let live = shard.keyspace.read().live(object.key().as_str()).cloned();
            live.filter(|live| **live == *object)
        };
        match &step.action {
            Action::Fill(filling) => self.shard.fill(filling, present),
            Action::Open { above } => self.shard.open(*above),
            Action::End => close.into_iter().for_each(|at| self.shard.end(at)),
        }
    }
}

/// Drops history that no client may ask for any more.
pub(crate) struct Trim {
    /// Changes up to this revision have left the history window by their age.
    pub(crate) aged: Revision,
    /// Changes up to this revision drop the encodings that watchers share.
    pub(crate) unshared: Revision,
    pub(crate) now: Instant,
    /// The closed revision of the table, which must stay readable.
    pub(crate) through: Revision,
    /// The last revision of the shard's division, when that has ended and has left the history window.
    pub(crate) ended: Option<Revision>,
}

impl Message for Trim {
    type Result = ();
}

impl Handler<Trim> for ShardActor {
    type Result = ();

    fn handle(&mut self, trim: Trim, ctx: &mut Context<ShardActor>) {
        self.shard.forget_shared(trim.unshared);
        if self.shard.trim(trim.aged, self.history_bytes_max, trim.through, trim.now) {
            ctx.notify(trim); // after the messages that wait
        } else if let Some(ended) = trim.ended {
            self.shard.clear(ended, trim.now);
        }
    }
}
