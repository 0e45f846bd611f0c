//! Calls between replicas. This module does not know the subjects of the calls.
//!
//! A replica calls another by address, and the other may answer in any order. There is one connection for each peer and
//! [`Lane`], so that bulk data never delays heartbeats and votes. Calls on one lane arrive in the order in which they
//! were made. Many may be in progress at once; an answer has the id of its call. A connection is made on the first
//! call, and again when it breaks. A broken connection fails its calls in progress at once.
//!
//! Everything here is bounded ([`crate::limits`]): beyond a bound, a call fails at once instead of waiting.

mod connected_members;
mod connection;
mod frame;
mod greeting;
mod link;
mod outbox;
pub(crate) mod peer_view;
mod served;
mod session;
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

/// The connection to a peer that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// For small messages that must not wait: votes, heartbeats, read points.
    Control,
    /// For log entries and forwarded writes.
    Bulk,
    /// For pieces of snapshots.
    Snapshot,
}

/// The replica to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Callee {
    /// Its address, `HOST:PORT`. A name is resolved again for each connection.
    pub(crate) address: String,
    /// The id of the member that must answer; a call to another one fails. `None` accepts any member.
    pub(crate) member: Option<u64>,
}

/// The identity and state that a replica announces; the name must be the one in its certificate. It is sent first on
/// every connection, in both directions, and again when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The id of the cluster; empty while the replica belongs to none.
    pub(crate) cluster: String,
    /// The id of the member; 0 while it has none.
    pub(crate) member: u64,
    /// The name of the member.
    pub(crate) name: String,
    /// The version of the peer protocol that it speaks.
    pub(crate) version: u32,
    /// Whether it should lead nothing.
    pub(crate) drained: bool,
    /// The address at which others reach it, `HOST:PORT`; empty when they know it from elsewhere.
    pub(crate) address: String,
    /// A checksum of the replicas that it finds at the initial addresses while it forms a cluster.
    pub(crate) found_checksum: u32,
    /// The address at which clients reach it; empty when it states none.
    pub(crate) serves: String,
    /// Whether its disk has no room for the log to grow.
    pub(crate) full: bool,
    /// The number of voting members that it is connected with in both directions, itself included; 0 when it states
    /// none.
    pub(crate) reached_voters: u32,
    /// A random number of its process.
    pub(crate) life: u64,
}

/// The reason why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerError {
    /// There is no connection, or it broke before the answer arrived: the request may have been carried out.
    #[error("the peer cannot be reached: {0}")]
    Unreachable(Arc<str>),
    /// The answer did not arrive in time: the request may have been carried out.
    #[error("the peer did not answer in time")]
    Timeout,
    /// Another member listens at the address. The request was not sent.
    #[error("member {found:x} listens at this address")]
    Identity {
        /// The id of that member.
        found: u64,
    },
    /// The peer refused the request.
    #[error("the peer refused: {0}")]
    Refused(String),
    /// Too many calls to this peer wait on this lane. Nothing was sent.
    #[error("too many calls wait for the peer")]
    QueueFull,
    /// The request is larger than a frame may be. Nothing was sent.
    #[error("{bytes} bytes do not fit into one call")]
    TooLarge {
        /// The size of the request, in bytes.
        bytes: usize,
    },
    /// This replica is shutting down.
    #[error("this replica is shutting down")]
    Closed,
}

/// Calls other replicas.
pub(crate) trait Peers: Send + Sync {
    /// Sends a request to a peer. It has been queued when this returns; the future waits for the answer. While a peer
    /// is known to be unreachable, calls to it fail at once, so a caller that repeats them should pause.
    ///
    /// # Errors
    /// See [`PeerError`].
    fn call(
        &self,
        to: &Callee,
        lane: Lane,
        method: u32,
        payload: Bytes,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerError>>;

    /// Returns the hello of the replica that listens at an address.
    ///
    /// # Errors
    /// See [`PeerError`].
    fn hello_of(&self, address: &str, timeout: Duration) -> BoxFuture<'static, Result<Hello, PeerError>>;

    /// Returns the addresses to which a host name resolves now, each with the port.
    fn resolve(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<String>>>;

    /// Returns whether a control connection with this member is up, in either direction.
    fn is_reachable(&self, member: u64) -> bool {
        self.liveness().borrow().get(&member).copied().unwrap_or(false)
    }

    /// Returns whether this member announces that it should lead nothing.
    fn is_drained(&self, member: u64) -> bool;

    /// Returns whether this member announces that its disk has no room for the log to grow.
    fn is_full(&self, member: u64) -> bool;

    /// Returns how many voting members this member is connected with in both directions, as it announces.
    fn reached_voters(&self, member: u64) -> u32;

    /// Returns the client addresses of the reachable replicas, by id, as they announce them. They need not all be
    /// members of this cluster.
    fn servers(&self) -> BTreeMap<u64, String>;

    /// Returns when something was last received from each reachable member.
    fn contacts(&self) -> BTreeMap<u64, Contacts>;

    /// Returns a receiver that shows which members are reachable, now and after every change.
    fn liveness(&self) -> watch::Receiver<Liveness>;
}

/// For every member that was ever connected, whether it is reachable.
pub(crate) type Liveness = Arc<BTreeMap<u64, bool>>;

/// The side that made a connection, and that calls over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// This replica.
    Here,
    /// The other replica.
    There,
}

/// One control connection with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contact {
    /// The number of the connection. Every new connection has another number.
    pub(crate) connection: u64,
    /// When something was last received over it. A live peer is never silent for longer than
    /// [`crate::limits::PEER_KEEPALIVE_INTERVAL`].
    pub(crate) last_received: Instant,
}

/// The last control connection with a member in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contacts {
    /// The one over which this replica calls the member.
    pub(crate) outgoing: Option<Contact>,
    /// The one over which the member calls this replica.
    pub(crate) incoming: Option<Contact>,
}

impl Contacts {
    /// Returns the entry for the connections that a side makes.
    fn of(&mut self, caller: Side) -> &mut Option<Contact> {
        match caller {
            Side::Here => &mut self.outgoing,
            Side::There => &mut self.incoming,
        }
    }
}

/// Answers the requests of other replicas.
pub(crate) trait Service: Send + Sync {
    /// Called for every request of a connection, in the order in which they were sent. Must not block. May answer
    /// later, from any thread. The payload shares memory with other data that was read at the same time: copy a part
    /// that is kept for long.
    fn serve(&self, from: &Hello, method: u32, payload: Bytes, reply: Reply);
}

/// The reason why a request was refused, for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refusal(pub(crate) String);

/// Sends the answer to a request. If it is dropped without one, the request is refused.
pub(crate) struct Reply(Option<AnswerTaker>);

/// The function that an answer is passed to.
type AnswerTaker = Box<dyn FnOnce(Result<Bytes, Refusal>) + Send>;

impl Reply {
    /// Returns a reply that passes the answer to a function. The function is called exactly once.
    pub(crate) fn new(answer: impl FnOnce(Result<Bytes, Refusal>) + Send + 'static) -> Reply {
        Reply(Some(Box::new(answer)))
    }

    /// Sends the answer.
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
