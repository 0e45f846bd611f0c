//! Requests of this server to other servers. All of them pass through this module.
//!
//! A [`Peer`] states the address of a server and how the server is authenticated. [`Outbound::send`] makes an HTTP
//! request over pooled connections; each peer has a pool. [`Outbound::send_unpooled`] makes a request over a connection
//! of its own, which upgrades and long-running requests need. Redirects are never followed. Failures are an [`Error`]
//! in Go's words, since clients see them. An [`Egress`] has the proxies through which peers are reached. [`grpc`] calls
//! services on this machine. [`limits`] bounds connections, waiting requests and bytes.

mod body;
mod dial;
mod egress;
mod error;
mod files;
pub mod grpc;
mod guarded;
mod header;
mod long;
mod peer;
mod pool;
mod tls;
mod transport;
mod trust;
mod unpooled;
mod wording;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use body::{Body, empty, full, read, read_beginning, streamed};
pub use dial::{check_proxyable, dial};
pub use egress::{Egress, EgressError, Network};
pub use error::Error;
pub use files::{CredentialFiles, Reread};
pub use guarded::Answer;
pub use header::escape_name;
pub use long::LongTarget;
pub use peer::{Identity, Peer, Secure, Trust};
pub use transport::Stream;
pub use unpooled::{Switched, Unpooled};
pub use wording::PLAIN_SERVER;

use crate::limits;
use crate::prometheus::Meter;
use pool::Pool;

/// Makes requests to other servers. Clones share their connections.
#[derive(Clone, Default)]
pub struct Outbound {
    pools: Arc<Mutex<HashMap<Peer, Arc<Pool>>>>,
    egress: Egress,
}

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbound").finish_non_exhaustive()
    }
}

impl Outbound {
    /// Returns an `Outbound` that reaches other servers through these proxies.
    pub fn through(egress: Egress) -> Self {
        Self { egress, ..Self::default() }
    }

    /// Returns whether the configuration of proxies names a network.
    pub fn names(&self, network: Network) -> bool {
        self.egress.names(network)
    }

    /// Returns an `Outbound` with the same proxies, but with connections of its own.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self::through(self.egress.clone())
    }

    /// Makes a request. The peer, not the URI, decides the server. The URI is either a path and query, with the header
    /// `Host`, or complete; HTTP/2 takes the authority from it. The body of the answer is read as it arrives. After
    /// that, other requests can use the connection.
    ///
    /// # Errors
    /// The peer cannot be reached, its certificate is not accepted, the connection fails, or the answer does not begin
    /// before the deadline.
    pub async fn send(
        &self,
        peer: &Peer,
        request: Request<Body>,
        deadline: Instant,
    ) -> Result<Response<Answer>, Error> {
        if request.extensions().get::<LongTarget>().is_some() {
            return match self.send_unpooled(peer, request, deadline).await? {
                Unpooled::Answered(answer) => Ok(answer),
                Unpooled::Switched(head, _) => Err(Error::switched(&head.headers)),
            };
        }
        let pool = self.pool(peer)?;
        let answered = tokio::time::timeout_at(deadline, pool.send(request)).await;
        answered.unwrap_or(Err(Error::Deadline))
    }

    /// Opens a connection for exclusive use, with a TLS handshake if the peer has TLS. Only HTTP/1.1 is offered.
    ///
    /// # Errors
    /// As for [`Outbound::send`].
    pub async fn connect(&self, peer: &Peer, deadline: Instant) -> Result<Stream, Error> {
        let pool = self.pool(peer)?;
        let connected = tokio::time::timeout_at(deadline, pool.connect_alone()).await;
        connected.unwrap_or(Err(Error::Deadline))
    }

    /// Returns the pool of a peer. Drops idle pools if there are too many.
    fn pool(&self, peer: &Peer) -> Result<Arc<Pool>, Error> {
        let mut pools = self.pools.lock();
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
        let pool = Arc::new(Pool::new(peer.clone(), self.egress.to(peer.network))?);
        pools.insert(peer.clone(), Arc::clone(&pool));
        Ok(pool)
    }

    /// Sets the gauges of connections and of requests.
    pub fn measure(&self, meter: &Meter) {
        let (mut connections, mut requests) = (0, 0);
        for pool in self.pools.lock().values() {
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
