//! A TCP balancer: each connection goes to one of several servers, chosen at random.
//!
//! What is known to work against one server is tried against the members of a control plane with it: a client whose
//! kubeconfig names the balancer meets all of them, and never knows which.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, TcpStream};

use crate::limits::{BALANCED_CONNECTIONS_MAX, BALANCER_CONNECT_SECONDS};

/// After accepting has failed, as it does when the process has no more files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Takes connections until the process ends.
pub async fn run(listen: SocketAddr, servers: &[SocketAddr]) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("balancing {} among {servers:?}", listener.local_addr()?);
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(BALANCED_CONNECTIONS_MAX));
    let mut random = Random::new();
    loop {
        // What has no place waits in the queue of the system.
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

/// Connects to a server, or to the one after it when that does not answer, and passes bytes both ways.
async fn pass(mut client: TcpStream, servers: &[SocketAddr], first: usize) {
    for server in servers.iter().cycle().skip(first).take(servers.len()) {
        let patience = Duration::from_secs(BALANCER_CONNECT_SECONDS);
        if let Ok(Ok(mut server)) = tokio::time::timeout(patience, TcpStream::connect(server)).await {
            let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
            // Either side may break off; the other one sees that as an end.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}

/// Numbers that are good enough to spread connections (xorshift64).
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

    use super::*;

    /// A server that answers every connection with its name.
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
        // Nobody listens on a port that was given back.
        let dead = TcpListener::bind("127.0.0.1:0").await.and_then(|it| it.local_addr()).expect("an address");
        let servers = [server(1).await, dead, server(2).await];
        let listen = TcpListener::bind("127.0.0.1:0").await.and_then(|it| it.local_addr()).expect("an address");
        tokio::spawn(async move { run(listen, &servers).await });
        let mut answers = BTreeSet::new();
        for _ in 0..60 {
            let mut client = loop {
                if let Ok(client) = TcpStream::connect(listen).await {
                    break client;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            answers.insert(client.read_u8().await.expect("an answer"));
        }
        assert_eq!(answers, BTreeSet::from([1, 2]));
    }
}
