//! Calls between replicas, whatever they carry.
//!
//! A replica calls another by address, and the other answers in any order. There is one connection for each peer and
//! [`Lane`], so that bulk data never delays heartbeats and votes; calls on one lane arrive in the order in which they
//! were made, many may be under way, and answers find their call by its id. Connections are made when first called
//! for and again when they break; a broken one fails what is under way at once.
//!
//! Everything here is bounded ([`crate::limits`]): beyond that a call fails at once instead of waiting.

mod connection;
mod frame;
mod greeting;
mod link;
mod outbox;
mod presence;
mod served;
mod session;
pub(crate) mod sight;
mod timing;
mod transport;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

#[cfg(test)]
mod figures;
#[cfg(test)]
mod peer_tests;
#[cfg(test)]
pub(crate) mod tapped;
#[cfg(test)]
pub(crate) mod test_net;

pub(crate) use self::transport::{Transport, TransportOptions};
#[cfg(test)]
pub(crate) use self::wire::{Connected, Connecting, Listener};
pub(crate) use self::wire::{Network, TlsNetwork};

/// Which of the connections to a peer a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// What is small and must not wait: votes, heartbeats, read points.
    Control,
    /// Log entries and forwarded writes.
    Bulk,
    /// Parts of snapshots.
    Snapshot,
}

/// Whom to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Where it listens: `HOST:PORT`; a name is resolved anew for each connection.
    pub(crate) address: String,
    /// The member that is to be there; whoever else answers is not asked. `None` takes anyone.
    pub(crate) member: Option<u64>,
}

/// Who a replica says it is; its name must be the one in its certificate. Sent first on every connection, both ways,
/// and again when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Id of the cluster; empty as long as it belongs to none.
    pub(crate) cluster: String,
    /// Id of the member; 0 as long as it has none.
    pub(crate) member: u64,
    /// Name of the member.
    pub(crate) name: String,
    /// What it understands.
    pub(crate) version: u32,
    /// Whether it is to lead nothing.
    pub(crate) drained: bool,
    /// Where others reach it, `HOST:PORT`; empty when they know it otherwise.
    pub(crate) address: String,
    /// Checksum of who it sees that is to form a cluster with it.
    pub(crate) sees: u32,
    /// The address at which clients reach it; empty when it does not say.
    pub(crate) serves: String,
    /// Whether its disk has no room for the log to grow.
    pub(crate) full: bool,
    /// How many members with a vote hear it and are heard by it, itself among them; 0 when it does not say.
    pub(crate) hears: u32,
    /// A random number of its process.
    pub(crate) life: u64,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerError {
    /// There is no connection, or it broke before the answer came: what was asked for may have happened.
    #[error("the peer cannot be reached: {0}")]
    Unreachable(Arc<str>),
    /// The answer did not come in time: what was asked for may have happened.
    #[error("the peer did not answer in time")]
    Timeout,
    /// Another member listens at that address. It was not asked.
    #[error("member {found:x} listens at this address")]
    Identity {
        /// Which one.
        found: u64,
    },
    /// The peer answers that it does not do it.
    #[error("the peer refused: {0}")]
    Refused(String),
    /// Too much waits for this peer on this lane. Nothing was sent.
    #[error("too many calls wait for the peer")]
    QueueFull,
    /// What was to be sent is larger than a frame may be. Nothing was sent.
    #[error("{bytes} bytes are more than fit one call")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// This replica is shutting down.
    #[error("this replica is shutting down")]
    Closed,
}

/// Calls other replicas.
pub(crate) trait Peers: Send + Sync {
    /// Asks a peer to do something, and waits for its answer. What is to be sent is enqueued before this returns;
    /// the answer is what the future is for. While a peer is found unreachable calls of it fail at once, so whoever
    /// repeats one should pause.
    ///
    /// # Errors
    /// See [`PeerError`].
    fn call(
        &self,
        to: &Target,
        lane: Lane,
        method: u32,
        payload: Bytes,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerError>>;

    /// Asks who listens at an address.
    ///
    /// # Errors
    /// See [`PeerError`].
    fn hello_of(&self, address: &str, timeout: Duration) -> BoxFuture<'static, Result<Hello, PeerError>>;

    /// The addresses that a host name has now, each with the port.
    fn resolve(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<String>>>;

    /// Whether a control connection with this member is up, whoever made it.
    fn is_reachable(&self, member: u64) -> bool {
        self.liveness().borrow().get(&member).copied().unwrap_or(false)
    }

    /// Whether this member says that it is to lead nothing.
    fn is_drained(&self, member: u64) -> bool;

    /// Whether this member says that its disk has no room for the log to grow.
    fn is_full(&self, member: u64) -> bool;

    /// How many members with a vote hear this one and are heard by it, as far as it says.
    fn hears(&self, member: u64) -> u32;

    /// The addresses at which clients reach those that are reachable, by their ids and as far as these say. Not all of
    /// them need be members of this cluster.
    fn servers(&self) -> BTreeMap<u64, String>;

    /// When each member was last heard of, of those that are reachable.
    fn contacts(&self) -> BTreeMap<u64, Contacts>;

    /// Who is reachable, of all members that ever were.
    fn liveness(&self) -> watch::Receiver<Liveness>;
}

/// Which members are reachable, of all that ever were.
pub(crate) type Liveness = Arc<BTreeMap<u64, bool>>;

/// Who made a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// This replica, which calls over it.
    Here,
    /// The other one, which calls over it.
    There,
}

/// What is known of a member by a control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contact {
    /// Which connection it is, or was: another number after each break.
    pub(crate) connection: u64,
    /// When something last came over it: a living peer is never silent for longer than
    /// [`crate::limits::PEER_BEAT_INTERVAL`].
    pub(crate) heard: Instant,
}

/// What is known of a member by the last control connection of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contacts {
    /// By the one over which it is called.
    pub(crate) called: Option<Contact>,
    /// By the one over which it calls.
    pub(crate) calling: Option<Contact>,
}

impl Contacts {
    /// What is known by the connection that a side made.
    fn of(&mut self, caller: Side) -> &mut Option<Contact> {
        match caller {
            Side::Here => &mut self.called,
            Side::There => &mut self.calling,
        }
    }
}

/// Answers what other replicas ask.
pub(crate) trait Service: Send + Sync {
    /// Is called for one request after the other of a connection, in the order in which they were sent. Must not
    /// block, and may answer later, from any thread. The payload shares memory with what else was read at the time:
    /// copy what is kept for long.
    fn serve(&self, from: &Hello, method: u32, payload: Bytes, reply: Reply);
}

/// Why a request is not done, for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refusal(pub(crate) String);

/// Where the answer to a request goes. When dropped without one, the answer is a refusal.
pub(crate) struct Reply(Option<Answer>);

/// What is done with an answer.
type Answer = Box<dyn FnOnce(Result<Bytes, Refusal>) + Send>;

impl Reply {
    /// A reply that does this with the answer. It is called exactly once.
    pub(crate) fn new(answer: impl FnOnce(Result<Bytes, Refusal>) + Send + 'static) -> Reply {
        Reply(Some(Box::new(answer)))
    }

    /// Answers.
    pub(crate) fn send(mut self, answer: Result<Bytes, Refusal>) {
        if let Some(reply) = self.0.take() {
            reply(answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take() {
            reply(Err(Refusal("the request was dropped".into())));
        }
    }
}
