//! Connections through an HTTP proxy: the method CONNECT (RFC 9110, section 9.3.6).

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::limits;
use crate::outbound::Error;
use crate::outbound::transport::Duplex;

/// Asks a proxy to connect to an address. The stream then leads there.
///
/// # Errors
/// The proxy refuses, or its answer is not HTTP.
pub(super) async fn connect(mut stream: Box<dyn Duplex>, proxy: &str, address: &str) -> Result<Box<dyn Duplex>, Error> {
    let failed = |why: String| {
        Error::Dial(format!("reading HTTP response from CONNECT to {address} via proxy {proxy} failed: {why}"))
    };
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| failed(error.to_string()))?;
    stream.flush().await.map_err(|error| failed(error.to_string()))?;
    let mut head = Vec::new();
    // Bytes after the head come from the address: none of them may be read here.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= limits::OUTBOUND_HEAD_BYTES {
            return Err(failed("the head is too large".to_owned()));
        }
        let byte = stream.read_u8().await.map_err(|_| failed("unexpected EOF".to_owned()))?;
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default();
    let Some((_, status)) = line.split_once(' ').filter(|(version, _)| version.starts_with("HTTP/1.")) else {
        return Err(failed(format!("malformed HTTP response {line:?}")));
    };
    let code = status.split(' ').next().unwrap_or_default();
    match code {
        "200" => Ok(stream),
        _ => Err(Error::Dial(format!("proxy error from {proxy} while dialing {address}, code {code}: {status}"))),
    }
}
