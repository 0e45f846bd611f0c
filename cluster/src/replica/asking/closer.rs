//! Passes requests to close a group on to its leader.

use actix::{Actor, Context, Handler};

use super::leader_client::LeaderClient;
use crate::clock::Close;
use crate::limits::GROUP_CLOSES_MAX;
use crate::tasks;

/// Passes requests of a group's clock on to the leader of the group.
pub(crate) struct Closer {
    client: LeaderClient,
}

impl Closer {
    pub(crate) fn new(client: LeaderClient) -> Closer {
        Closer { client }
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
        let client = self.client.clone();
        tasks::detached_here("close", async move {
            let _ = reply.send(client.close_to(revision).await); // fails if the caller stopped waiting
        });
    }
}
