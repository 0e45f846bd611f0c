//! Calls over TCP and TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Hello, Lane, Liveness, PeerError, Peers, Service, Target};
use crate::PeerTls;

/// How a transport is started.
pub(crate) struct TransportOptions {
    /// Where to listen. Port 0 takes any that is free.
    pub(crate) listen: SocketAddr,
    /// Whom to trust, and what to show.
    pub(crate) tls: PeerTls,
    /// Who this replica says it is; others learn at once when it changes.
    pub(crate) hello: watch::Receiver<Hello>,
}

/// Calls other replicas, and answers them.
pub(crate) struct Transport {
    address: SocketAddr,
    liveness: watch::Sender<Liveness>,
}

impl Transport {
    /// Listens and answers, on the runtime that this is called on, until [`Transport::shutdown`].
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) fn start(options: TransportOptions, _service: Arc<dyn Service>) -> Result<Arc<Transport>, io::Error> {
        Ok(Arc::new(Transport { address: options.listen, liveness: watch::Sender::default() }))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets go of the address and of all connections, and makes no more.
    pub(crate) fn shutdown(&self) {}
}

impl Peers for Transport {
    fn call(&self, _: &Target, _: Lane, _: u32, _: Bytes, _: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        std::future::ready(Err(PeerError::Closed)).boxed()
    }

    fn hello_of(&self, _: &str, _: Duration) -> BoxFuture<'static, Result<Hello, PeerError>> {
        std::future::ready(Err(PeerError::Closed)).boxed()
    }

    fn liveness(&self) -> watch::Receiver<Liveness> {
        self.liveness.subscribe()
    }
}
