//! Passes requests to close a group on to its leader.

use actix::{Actor, Context, Handler};

use super::leader::Leader;
use crate::clock::Close;
use crate::limits::GROUP_CLOSES_MAX;

/// Passes requests of a group's clock on to the leader of the group.
pub(crate) struct Closer {
    leader: Leader,
}

impl Closer {
    pub(crate) fn new(leader: Leader) -> Closer {
        Closer { leader }
    }
}

impl Actor for Closer {
    type Context = Context<Closer>;

    fn started(&mut self, ctx: &mut Context<Closer>) {
        ctx.set_mailbox_capacity(GROUP_CLOSES_MAX);
    }
}

impl Handler<Close> for Closer {
    type Result = ();

    fn handle(&mut self, Close { revision, reply }: Close, _: &mut Context<Closer>) {
        let leader = self.leader.clone();
        actix::spawn(async move {
            let _ = reply.send(leader.close_to(revision).await); // fails if the caller stopped waiting
        });
    }
}
