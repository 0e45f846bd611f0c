//! Ports that stay a member's own over its restarts.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Mutex;

use rand::Rng as _;

/// Below what systems give to outgoing connections, so that none takes the port of a member that is down.
const PORTS: std::ops::Range<u16> = 17_600..29_000;

/// Ports that were given to a test of this process: others are not even tried on them.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Addresses on which nobody listens, and which nobody else is given.
pub fn free(count: usize) -> Vec<SocketAddr> {
    let mut given = GIVEN.lock().expect("no test fails while it looks for ports");
    let mut found: Vec<SocketAddr> = Vec::new();
    while found.len() < count {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, rand::rng().random_range(PORTS)));
        if !given.contains(&address.port()) && TcpListener::bind(address).is_ok() {
            given.insert(address.port());
            found.push(address);
        }
    }
    found
}
