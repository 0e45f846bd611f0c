//! The network, as one host sees it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, poll_fn};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::shared_network::{Dialed, End, Incoming, SharedNetwork};
use crate::PeerTls;
use crate::peer::{Connected, Connecting, Listener, Network};

/// The interval between attempts to connect while there is no answer.
const DIAL_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the address on which a host listens.
pub(super) fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 7_000))
}

fn host_at(address: &str) -> Option<usize> {
    let address: SocketAddr = address.parse().ok()?;
    match address.ip() {
        std::net::IpAddr::V4(ip) => usize::from(ip.octets()[3]).checked_sub(1),
        std::net::IpAddr::V6(_) => None,
    }
}

/// The network of one host.
pub(super) struct HostNetwork {
    pub(super) shared_network: Arc<SharedNetwork>,
    pub(super) host: usize,
}

impl HostNetwork {
    /// Tries to connect until there is an answer. Returns the end of a connection; `None` when it is refused.
    fn reach(&self, address: &str) -> BoxFuture<'static, Option<Connection>> {
        let (shared_network, host, to) = (self.shared_network.clone(), self.host, host_at(address));
        async move {
            let to = to?;
            loop {
                let round_trip_ms = shared_network.round_trip_ms();
                sleep(Duration::from_millis(round_trip_ms)).await;
                match shared_network.dial(host, to) {
                    Dialed::Connected(end) => return Some(Connection { shared_network, host, end }),
                    Dialed::Refused => return None,
                    Dialed::Silence => sleep(DIAL_INTERVAL).await,
                }
            }
        }
        .boxed()
    }
}

impl Network for HostNetwork {
    fn listen(&self, address: SocketAddr, _: &PeerTls) -> io::Result<Box<dyn Listener>> {
        self.shared_network.state.lock().port(self.host).listening = Some(Incoming::default());
        Ok(Box::new(Listening { shared_network: self.shared_network.clone(), host: self.host, address }))
    }

    fn dial(&self, address: &str, _: &PeerTls) -> Connecting {
        let reached = self.reach(address);
        async move {
            let connection = reached.await.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(connected(connection))
        }
        .boxed()
    }

    fn is_deserted(&self, address: &str) -> BoxFuture<'static, bool> {
        self.reach(address).map(|reached| reached.is_none()).boxed()
    }
}

fn connected(connection: Connection) -> Connected {
    Connected { stream: Box::new(connection), name: None }
}

struct Listening {
    shared_network: Arc<SharedNetwork>,
    host: usize,
    address: SocketAddr,
}

impl Listener for Listening {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Connecting, SocketAddr)>> {
        poll_fn(move |task| {
            let mut state = self.shared_network.state.lock();
            let Some(incoming) = &mut state.port(self.host).listening else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            let Some((end, from)) = incoming.waiting.pop_front() else {
                incoming.waker = Some(task.waker().clone());
                return Poll::Pending;
            };
            drop(state);
            let connection = Connection { shared_network: self.shared_network.clone(), host: self.host, end };
            Poll::Ready(Ok((std::future::ready(Ok(connected(connection))).boxed(), address(from))))
        })
        .boxed()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.shared_network.state.lock();
        let listening = state.port(self.host).listening.take();
        for (end, _) in listening.into_iter().flat_map(|incoming| incoming.waiting) {
            state.leave(end, self.host);
        }
    }
}

/// One end of a connection.
struct Connection {
    shared_network: Arc<SharedNetwork>,
    host: usize,
    end: End,
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, task: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared_network.state.lock();
        let Some(pipe) = state.pipes.get_mut(&self.end.reads) else { return Poll::Ready(Ok(())) };
        if !pipe.arrived.is_empty() {
            out.put_slice(&pipe.take(out.remaining()));
            let writer = pipe.writer.take();
            drop(state);
            writer.into_iter().for_each(std::task::Waker::wake);
            return Poll::Ready(Ok(()));
        }
        if pipe.is_broken_for_reader {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if pipe.is_at_end {
            return Poll::Ready(Ok(()));
        }
        pipe.reader = Some(task.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let now = self.shared_network.time.now_ms();
        let mut state = self.shared_network.state.lock();
        if let Some(sent) = state.send(self.end.writes, now, bytes) {
            return Poll::Ready(Ok(sent));
        }
        match state.pipes.get_mut(&self.end.writes) {
            Some(pipe) if !pipe.is_broken_for_writer => {
                pipe.writer = Some(task.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared_network.state.lock().leave(self.end, self.host);
    }
}
