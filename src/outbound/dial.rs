//! Establishes TCP connections.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use super::Error;
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// Checks that the server may connect to a host on behalf of clients. Loopback, link-local, multicast, broadcast and
/// unspecified addresses are forbidden. The addresses of a name are checked when it is dialled.
///
/// # Errors
/// 400 if the host is forbidden.
pub fn check_proxyable(host: &str) -> ApiResult<()> {
    check_address(host).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Makes the check of [`check_proxyable`], but fails with an error of connecting. A proxy looks names up itself, so
/// this server can check only addresses.
pub(super) fn check_address(host: &str) -> Result<(), Error> {
    let is_allowed = match host.parse::<IpAddr>() {
        Ok(address) => is_proxyable(address),
        Err(_) => !host.is_empty(),
    };
    if is_allowed { Ok(()) } else { Err(Error::Forbidden) }
}

/// Returns whether the server may connect to an address on behalf of clients.
fn is_proxyable(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_local && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
}

/// Connects to a host. With `guarded`, forbidden addresses are refused as by [`check_proxyable`].
///
/// # Errors
/// No connection was established. The text is that of Go.
pub async fn dial(host: &str, port: u16, guarded: bool) -> Result<TcpStream, Error> {
    let timed_out = |_| Err(Error::Dial(format!("dial tcp {}: i/o timeout", shown(host, port))));
    tokio::time::timeout(limits::DIAL_TIMEOUT, connect(host, port, guarded)).await.unwrap_or_else(timed_out)
}

async fn connect(host: &str, port: u16, guarded: bool) -> Result<TcpStream, Error> {
    let addresses = resolve(host, port).await?;
    if guarded && !addresses.iter().all(|address| is_proxyable(address.ip())) {
        return Err(Error::Forbidden);
    }
    // The error is that of the first address, as in Go.
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                // Without keep-alive, nothing would reveal the loss of a peer on an idle connection.
                let keep = TcpKeepalive::new().with_time(limits::OUTBOUND_KEEP_ALIVE_TIME);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keep);
                return Ok(stream);
            }
            Err(error) => first = first.or(Some((address, error))),
        }
    }
    Err(Error::Dial(match first {
        Some((address, error)) => format!("dial tcp {address}: {}", why(&error)),
        None => format!("dial tcp: lookup {host}: no such host"),
    }))
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    match lookup_host((host, port)).await {
        Ok(addresses) => Ok(addresses.take(limits::OUTBOUND_ADDRESSES).collect()),
        Err(_) => Err(Error::Dial(format!("dial tcp: lookup {host}: no such host"))),
    }
}

/// Joins host and port as Go does.
pub(super) fn shown(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn why(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".into(),
        ErrorKind::HostUnreachable => "connect: no route to host".into(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".into(),
        ErrorKind::TimedOut => "connect: connection timed out".into(),
        ErrorKind::ConnectionReset => "connect: connection reset by peer".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_cannot_be_proxied_to() {
        for forbidden in
            ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1", ""]
        {
            assert!(check_proxyable(forbidden).is_err(), "{forbidden}");
        }
        for allowed in ["192.0.2.2", "2001:db8::1", "name.example"] {
            assert!(check_proxyable(allowed).is_ok(), "{allowed}");
        }
    }

    #[tokio::test]
    async fn outbound_connections_send_keepalives() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = dial("127.0.0.1", port, false).await.unwrap();
        assert!(SockRef::from(&stream).keepalive().unwrap());
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_forbidden_address_is_refused() {
        assert_eq!(dial("localhost", 1, true).await.unwrap_err(), Error::Forbidden);
        let refused = dial("127.0.0.1", 1, false).await.unwrap_err().to_string();
        assert_eq!(refused, "dial tcp 127.0.0.1:1: connect: connection refused");
    }
}
