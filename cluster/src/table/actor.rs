//! The only writer of a shard, and the broadcaster that tells its watchers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, ArbiterHandle, Context, Handler, Message};

use super::shard::{Content, Shard};
use crate::group::Batch;
use crate::limits::MAILBOX_MESSAGES_MAX;
use crate::{Outcome, Revision, limits};

/// The only writer of one shard's state on this replica.
pub(crate) struct ShardActor {
    shard: Arc<Shard>,
    broadcaster: Addr<Broadcaster>,
    history: HistoryWindow,
}

/// How much history a shard keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryWindow {
    pub(crate) age_max: Duration,
    pub(crate) bytes_max: usize,
}

impl ShardActor {
    /// Starts the actor, and its broadcaster, on a thread.
    pub(crate) fn spawn(thread: &ArbiterHandle, shard: Arc<Shard>, history: HistoryWindow) -> Addr<ShardActor> {
        let told = shard.clone();
        let broadcaster = Broadcaster::start_in_arbiter(thread, move |_| Broadcaster { shard: told });
        ShardActor::start_in_arbiter(thread, move |_| ShardActor { shard, broadcaster, history })
    }

    fn close(&self, revision: Revision) {
        if self.shard.close(revision) {
            self.broadcaster.do_send(Announce);
        }
    }
}

impl Actor for ShardActor {
    type Context = Context<ShardActor>;

    fn started(&mut self, ctx: &mut Context<ShardActor>) {
        ctx.set_mailbox_capacity(MAILBOX_MESSAGES_MAX);
    }
}

/// Applies the commands at these positions of committed batches, and closes the revisions up to the last of them.
pub(crate) struct Apply {
    /// Committed batches in log order.
    pub(crate) batches: Arc<[Batch]>,
    /// Which commands are this shard's: the batch, and the command within.
    pub(crate) positions: Vec<(u32, u32)>,
}

impl Message for Apply {
    type Result = Vec<((u32, u32), Outcome)>;
}

impl Handler<Apply> for ShardActor {
    type Result = actix::MessageResult<Apply>;

    fn handle(&mut self, apply: Apply, _: &mut Context<ShardActor>) -> actix::MessageResult<Apply> {
        let commands: Vec<_> = apply
            .positions
            .iter()
            .filter_map(|(batch, command)| apply.batches.get(*batch as usize)?.commands().get(*command as usize))
            .collect();
        let last = commands.iter().map(|command| command.revision).max();
        let outcomes = self.shard.apply(&commands);
        last.into_iter().for_each(|last| self.close(last));
        actix::MessageResult(apply.positions.into_iter().zip(outcomes).collect())
    }
}

/// Promises that no later write gets this revision or a smaller one.
pub(crate) struct Close {
    pub(crate) revision: Revision,
}

impl Message for Close {
    type Result = ();
}

impl Handler<Close> for ShardActor {
    type Result = ();

    fn handle(&mut self, close: Close, _: &mut Context<ShardActor>) {
        self.close(close.revision);
    }
}

/// Replaces the state by that of a snapshot.
pub(crate) struct Restore {
    pub(crate) content: Content,
}

impl Message for Restore {
    type Result = ();
}

impl Handler<Restore> for ShardActor {
    type Result = ();

    fn handle(&mut self, restore: Restore, _: &mut Context<ShardActor>) {
        if self.shard.restore(restore.content) {
            self.broadcaster.do_send(Announce);
        }
    }
}

/// Drops history that nobody may ask for any more.
pub(crate) struct Trim {
    pub(crate) unix_ms: u64,
    pub(crate) now: Instant,
}

impl Message for Trim {
    type Result = ();
}

impl Handler<Trim> for ShardActor {
    type Result = ();

    fn handle(&mut self, trim: Trim, _: &mut Context<ShardActor>) {
        let before = |age: Duration| Revision::from_unix_ms(trim.unix_ms.saturating_sub(age.as_millis() as u64));
        self.shard.trim(before(self.history.age_max), self.history.bytes_max, trim.now);
        self.shard.forget_shared(before(limits::SHARED_ENCODING_AGE));
    }
}

/// Turns the change log of a shard into wake-ups of the watchers that want each change.
pub(crate) struct Broadcaster {
    shard: Arc<Shard>,
}

impl Actor for Broadcaster {
    type Context = Context<Broadcaster>;
}

/// There are changes to tell of. The broadcaster is a cursor in the change log, so that one message stands for any
/// number of changes.
pub(crate) struct Announce;

impl Message for Announce {
    type Result = ();
}

impl Handler<Announce> for Broadcaster {
    type Result = ();

    fn handle(&mut self, _: Announce, _: &mut Context<Broadcaster>) {
        self.shard.announce();
    }
}
