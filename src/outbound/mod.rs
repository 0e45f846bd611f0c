//! The one way out: everything that this server asks of other servers goes through here.
//!
//! A [`Peer`] says where a server is and how it is trusted. [`Outbound::send`] makes one HTTP request of it, over
//! connections that are kept in a pool for each peer; [`Outbound::send_alone`] makes it over a connection of its own,
//! which upgrades and what lasts long need. Redirects are never followed. What goes wrong is an [`Error`], in the words
//! that Go has for it, since clients see them. How many connections, waiting requests and bytes there may be says
//! `limits`.

mod alone;
mod body;
mod dial;
mod error;
mod files;
mod guarded;
mod header;
mod long;
mod peer;
mod pool;
mod tls;
mod transport;
mod trust;
mod wording;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use alone::{Alone, Switched};
pub use body::{Body, empty, full, read, read_beginning, streamed};
pub use dial::{check_proxyable, dial};
pub use error::Error;
pub use files::{CredentialFiles, Reread};
pub use guarded::Answer;
pub use header::escape_name;
pub use long::LongTarget;
pub use peer::{Identity, Peer, Secure, Trust};
pub use transport::Stream;

use crate::limits;
use crate::prometheus::Meter;
use pool::Pool;

/// Asks other servers. Clones share their connections.
#[derive(Clone, Default)]
pub struct Outbound(Arc<Mutex<HashMap<Peer, Arc<Pool>>>>);

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbound").finish_non_exhaustive()
    }
}

impl Outbound {
    /// Makes a request. Its URI is what is sent: the path and query alone, with the header `Host`, or the whole URI,
    /// out of which HTTP/2 takes the authority; whom to connect with says the peer. The answer's body comes as it is
    /// read, and the connection serves others once it was read to its end.
    ///
    /// # Errors
    /// When the peer cannot be reached, is not who it should be, breaks the connection off, or has not begun its answer
    /// by the deadline.
    pub async fn send(
        &self,
        peer: &Peer,
        request: Request<Body>,
        deadline: Instant,
    ) -> Result<Response<Answer>, Error> {
        if request.extensions().get::<LongTarget>().is_some() {
            return match self.send_alone(peer, request, deadline).await? {
                Alone::Answered(answer) => Ok(answer),
                Alone::Switched(head, _) => Err(Error::switched(&head.headers)),
            };
        }
        let pool = self.pool(peer)?;
        let answered = tokio::time::timeout_at(deadline, pool.send(request)).await;
        answered.unwrap_or(Err(Error::Deadline))
    }

    /// A connection that nobody else uses, after the handshake of TLS if the peer has it. With TLS only HTTP/1.1 is
    /// offered.
    ///
    /// # Errors
    /// As [`Outbound::send`].
    pub async fn connect(&self, peer: &Peer, deadline: Instant) -> Result<Stream, Error> {
        let pool = self.pool(peer)?;
        let connected = tokio::time::timeout_at(deadline, pool.connect_alone()).await;
        connected.unwrap_or(Err(Error::Deadline))
    }

    /// The pool of a peer. Those that nobody used for long make room for others.
    fn pool(&self, peer: &Peer) -> Result<Arc<Pool>, Error> {
        let mut pools = self.0.lock();
        if let Some(pool) = pools.get(peer) {
            return Ok(Arc::clone(pool));
        }
        if pools.len() >= limits::OUTBOUND_PEERS {
            pools.retain(|_, pool| Arc::strong_count(pool) > 1 || !pool.is_idle_for(limits::OUTBOUND_IDLE_TIMEOUT));
        }
        if pools.len() >= limits::OUTBOUND_PEERS {
            pools.retain(|_, pool| Arc::strong_count(pool) > 1 || !pool.is_idle_for(Duration::ZERO));
        }
        if pools.len() >= limits::OUTBOUND_PEERS {
            return Err(Error::Busy(peer.address()));
        }
        let pool = Arc::new(Pool::new(peer.clone())?);
        pools.insert(peer.clone(), Arc::clone(&pool));
        Ok(pool)
    }

    /// Tells how many connections there are, and how many requests of them wait.
    pub fn measure(&self, meter: &Meter) {
        let (mut connections, mut requests) = (0, 0);
        for pool in self.0.lock().values() {
            connections += pool.connections();
            requests += pool.requests();
        }
        meter.gauge("flotilla_outbound_connections", &[]).set(connections as f64);
        meter.gauge("flotilla_outbound_requests", &[]).set(requests as f64);
    }
}

#[cfg(test)]
#[path = "outbound_tests.rs"]
mod tests;
