//! Where a replica asks for a group to be closed: at its leader.

use actix::{Actor, Context, Handler};

use super::leader::Leader;
use crate::clock::Close;
use crate::limits::GROUP_CLOSES_MAX;

/// Passes on what is asked of a group's clock.
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
            let _ = reply.send(leader.close_to(revision).await); // whoever went away does not want it
        });
    }
}
