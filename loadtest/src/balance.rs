//! A TCP balancer: forwards each connection to a random server.
//!
//! It tests a control plane of several members with a client that normally uses one server. The client's kubeconfig
//! names the balancer, so its connections reach all members, and the client does not know which.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, TcpStream};

use crate::limits::{BALANCED_CONNECTIONS_MAX, BALANCER_CONNECT_SECONDS};

/// The pause after accepting has failed, for instance because the process has no free file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Forwards connections until the process ends.
///
/// # Errors
/// Fails if the address of the listener cannot be read.
pub async fn run(listener: TcpListener, servers: &[SocketAddr]) -> io::Result<()> {
    println!("balancing {} among {servers:?}", listener.local_addr()?);
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(BALANCED_CONNECTIONS_MAX));
    let mut random = Random::new();
    loop {
        // Further connections wait in the listener's queue.
        let Ok(place) = std::sync::Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_BACKOFF).await;
            continue;
        };
        let (first, servers) = (random.below(servers.len()), servers.to_vec());
        tokio::spawn(async move {
            pass(client, &servers, first).await;
            drop(place);
        });
    }
}

/// Connects to a server, or to the next one if that server does not answer, and forwards bytes in both directions.
async fn pass(mut client: TcpStream, servers: &[SocketAddr], first: usize) {
    for server in servers.iter().cycle().skip(first).take(servers.len()) {
        let patience = Duration::from_secs(BALANCER_CONNECT_SECONDS);
        if let Ok(Ok(mut server)) = tokio::time::timeout(patience, TcpStream::connect(server)).await {
            let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
            // If one side breaks the connection, the other side sees its end.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}

/// Pseudorandom numbers (xorshift64), good enough to spread connections.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Random(u64::from(now.subsec_nanos()) << 20 | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;

    use super::*;

    /// Starts a server that answers every connection with its name.
    async fn server(name: u8) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let _ = client.write_all(&[name]).await;
            }
        });
        address
    }

    #[tokio::test]
    async fn connections_are_spread_over_servers_that_answer() {
        // It has a port and does not listen.
        let dead = TcpSocket::new_v4().expect("a socket");
        dead.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let servers = [server(1).await, dead.local_addr().expect("an address"), server(2).await];
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let listen = listener.local_addr().expect("an address");
        tokio::spawn(async move { run(listener, &servers).await });
        let mut answers = BTreeSet::new();
        for _ in 0..60 {
            let mut client = TcpStream::connect(listen).await.expect("a connection");
            answers.insert(client.read_u8().await.expect("an answer"));
        }
        assert_eq!(answers, BTreeSet::from([1, 2]));
    }
}
