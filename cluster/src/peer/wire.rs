//! Byte streams between replicas: TCP with TLS, unless a simulation replaces the network.

use std::io;
use std::net::SocketAddr;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::pki_types::ServerName;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::Hello;
use crate::PeerTls;
use crate::limits::{PEER_BACKLOG_CONNECTIONS, PEER_CONNECT_INTERVAL, PEER_TCP_TIMEOUT};

/// A byte stream between two replicas that have authenticated each other.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that is being made.
pub(crate) type Connecting = BoxFuture<'static, io::Result<Connected>>;

/// A connection that was made.
pub(crate) struct Connected {
    pub(crate) stream: Box<dyn Stream>,
    /// The name of the member at the other end according to its certificate; `None` on a network without certificates.
    pub(crate) name: Option<String>,
}

impl Connected {
    /// Checks that the other end is the member that it claims to be.
    ///
    /// # Errors
    /// Fails when its certificate belongs to another member.
    pub(super) fn check(name: Option<&str>, hello: &Hello) -> io::Result<()> {
        match name {
            Some(name) if name != hello.name => {
                let why = format!("it calls itself {:?} and has the certificate of {name:?}", hello.name);
                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
            }
            _ => Ok(()),
        }
    }
}

/// A network that connects replicas.
pub(crate) trait Network: Send + Sync {
    /// Listens on an address of this replica, on the runtime of the caller.
    ///
    /// # Errors
    /// Fails when the address cannot be listened on.
    fn listen(&self, address: SocketAddr, tls: &PeerTls) -> io::Result<Box<dyn Listener>>;

    /// Connects to an address, `HOST:PORT`.
    fn dial(&self, address: &str, tls: &PeerTls) -> Connecting;

    /// Returns the addresses to which a host name resolves now, each with the port of `HOST:PORT`.
    fn resolve(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<String>>> {
        let address = address.to_owned();
        async move { Ok(tokio::net::lookup_host(address).await?.map(|found| found.to_string()).collect()) }.boxed()
    }

    /// Returns whether nothing listens at an address: connections are refused, or are closed before anything was sent,
    /// as by a proxy in front of a process that is gone. Does not return while a connection stays open.
    fn is_deserted(&self, address: &str) -> BoxFuture<'static, bool>;
}

/// Accepts connections.
pub(crate) trait Listener: Send {
    /// Returns the address on which it listens.
    fn address(&self) -> SocketAddr;

    /// Waits for the next connection. Returns it with the address from which it comes.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Connecting, SocketAddr)>>;
}

/// TCP with TLS.
pub(crate) struct TlsNetwork;

struct TlsListener {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    tls: PeerTls,
}

impl Network for TlsNetwork {
    fn listen(&self, address: SocketAddr, tls: &PeerTls) -> io::Result<Box<dyn Listener>> {
        let listener = listen(address)?;
        let (address, acceptor) = (listener.local_addr()?, TlsAcceptor::from(tls.server.clone()));
        Ok(Box::new(TlsListener { listener, address, acceptor, tls: tls.clone() }))
    }

    fn dial(&self, address: &str, tls: &PeerTls) -> Connecting {
        let (address, connector) = (address.to_owned(), TlsConnector::from(tls.client.clone()));
        let tls = tls.clone();
        async move {
            let stream = connect(&address).await?;
            tune(&stream)?;
            let name = ServerName::try_from(PeerTls::SERVER_NAME).map_err(io::Error::other)?;
            let stream = connector.connect(name, stream).await?;
            let name = tls.name(stream.get_ref().1.peer_certificates())?;
            Ok(Connected { stream: Box::new(stream), name: Some(name) })
        }
        .boxed()
    }

    fn is_deserted(&self, address: &str) -> BoxFuture<'static, bool> {
        let address = address.to_owned();
        async move {
            match TcpStream::connect(address).await {
                // A live replica waits for the client to send first.
                Ok(stream) => !matches!(stream.peek(&mut [0]).await, Ok(1..)),
                Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            }
        }
        .boxed()
    }
}

impl Listener for TlsListener {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Connecting, SocketAddr)>> {
        async {
            let (stream, from) = self.listener.accept().await?;
            let (acceptor, tls) = (self.acceptor.clone(), self.tls.clone());
            let connecting = async move {
                tune(&stream)?;
                let stream = acceptor.accept(stream).await?;
                let name = tls.name(stream.get_ref().1.peer_certificates())?;
                Ok(Connected { stream: Box::new(stream), name: Some(name) })
            };
            Ok((connecting.boxed(), from))
        }
        .boxed()
    }
}

/// Connects to one of the addresses of a name. Tries again sooner than the kernel, which waits a second for an answer
/// to the first packet of a connection. Does not return while one of the addresses is silent.
async fn connect(address: &str) -> io::Result<TcpStream> {
    let found: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
    loop {
        let (mut failed, mut is_silent) = (io::Error::from(io::ErrorKind::AddrNotAvailable), false);
        for address in &found {
            match timeout(PEER_CONNECT_INTERVAL, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = error,
                Err(_) => is_silent = true,
            }
        }
        if !is_silent {
            return Err(failed);
        }
    }
}

/// Sets the options of a connection between peers.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    // Data lost while a link is down for a moment should arrive soon after, not after an ever longer timeout. Some
    // kernels do not support this option; then it only takes longer.
    if let Err(error) = socket.set_tcp_thin_linear_timeouts(true) {
        tracing::debug!(%error, "lost packets are retransmitted after ever longer timeouts");
    }
    let keepalive = TcpKeepalive::new().with_time(PEER_TCP_TIMEOUT).with_interval(PEER_TCP_TIMEOUT / 5);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(PEER_TCP_TIMEOUT))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait until the kernel has forgotten the connections of the former process.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(PEER_BACKLOG_CONNECTIONS)?;
    TcpListener::from_std(socket.into())
}
