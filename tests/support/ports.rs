//! Ports that belong to one member, even while it is restarted.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Mutex;

use rand::Rng as _;

/// The range of ports. It lies below that of outgoing connections, so that none of these takes the port of a stopped
/// member.
const PORTS: std::ops::Range<u16> = 17_600..29_000;

/// Ports that tests of this process use. Other tests of this process must not bind them, not even to try.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Returns addresses that nothing listens on, and that no other test gets.
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
