//! Connections to a peer, with or without TLS.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::dial::check_address;
use super::egress::Proxy;
use super::{Error, Peer, dial, wording};
use crate::limits;

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection to a peer.
pub struct Stream {
    /// The bytes, after decryption.
    pub io: Box<dyn Duplex>,
    /// The addresses of both ends, as Go's errors have them: `read tcp A->B`.
    pub ends: Arc<str>,
    /// Whether the peer has chosen HTTP/2.
    pub is_http2: bool,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// TLS settings, and the name that the certificate must have.
type Tls = (Arc<ClientConfig>, ServerName<'static>);

/// Connects to a peer, through a proxy if there is one.
///
/// # Errors
/// The connection or the TLS handshake failed.
pub async fn connect(peer: &Peer, proxy: Option<&Proxy>, tls: Option<&Tls>) -> Result<Stream, Error> {
    if let Some(proxy) = proxy {
        if peer.guarded {
            check_address(&peer.host)?;
        }
        let address = peer.address();
        return secure(proxy.dial(&address).await?, address.into(), tls).await;
    }
    let tcp = dial(&peer.host, peer.port, peer.guarded).await?;
    let ends = match (tcp.local_addr(), tcp.peer_addr()) {
        (Ok(own), Ok(other)) => format!("{own}->{other}").into(),
        _ => Arc::from(peer.address()),
    };
    secure(tcp, ends, tls).await
}

/// Makes the TLS handshake on a connection, if it has TLS.
async fn secure(io: impl Duplex + 'static, ends: Arc<str>, tls: Option<&Tls>) -> Result<Stream, Error> {
    let Some((config, name)) = tls else {
        return Ok(Stream { io: Box::new(io), ends, is_http2: false });
    };
    let shaking = TlsConnector::from(Arc::clone(config)).connect(name.clone(), io);
    match tokio::time::timeout(limits::OUTBOUND_HANDSHAKE_TIMEOUT, shaking).await {
        Err(_) => Err(Error::Handshake("net/http: TLS handshake timeout".into())),
        Ok(Err(error)) => Err(Error::Handshake(wording::handshake(&error, name, &ends))),
        Ok(Ok(stream)) => {
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Ok(Stream { io: Box::new(stream), ends, is_http2 })
        }
    }
}
