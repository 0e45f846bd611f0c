//! Ports that stay a member's own over its restarts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rand::Rng as _;

/// Below what systems give to outgoing connections, so that none takes the port of a member that is down.
const PORTS: std::ops::Range<u16> = 17_600..29_000;

/// Addresses on which nobody listens.
pub fn free(count: usize) -> Vec<SocketAddr> {
    let mut found: Vec<SocketAddr> = Vec::new();
    while found.len() < count {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, rand::rng().random_range(PORTS)));
        if !found.contains(&address) && TcpListener::bind(address).is_ok() {
            found.push(address);
        }
    }
    found
}
