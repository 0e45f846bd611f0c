//! Measures the cost of calls: `cargo test --release -p flotilla-cluster figures_of_calls -- --ignored --nocapture`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;

use super::test_net::{Authority, ECHO, Replica, ZEROS};
use super::{Callee, Hello, Lane, Peers, Reply, Service, TlsNetwork, Transport, TransportOptions};
use crate::clock::HybridClock;

const LONG: Duration = Duration::from_secs(30);

/// Answers requests without recording them.
struct Echo;

impl Service for Echo {
    fn serve(&self, _: &Hello, method: u32, payload: Bytes, reply: Reply) {
        reply.send(Ok(if method == ZEROS { Bytes::new() } else { payload }));
    }
}

/// Returns the processor time that this thread has used.
fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// A replica on a thread of its own that reports its processor time on request.
struct Remote {
    address: String,
    ask: std::sync::mpsc::Sender<()>,
    stop: oneshot::Sender<()>,
    cpu: std::sync::mpsc::Receiver<Duration>,
}

impl Remote {
    fn start(tls: crate::PeerTls) -> Remote {
        let (ask, asked) = std::sync::mpsc::channel();
        let (tell, cpu) = std::sync::mpsc::channel();
        let (stop, mut stopped) = oneshot::channel();
        let (bound, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix::System::new().block_on(async move {
                let said = Hello { member: 2, ..Hello::default() };
                let (_said, hello) = tokio::sync::watch::channel(said);
                let listen = ([127, 0, 0, 1], 0).into();
                let clock = HybridClock::default();
                let options = TransportOptions { network: Arc::new(TlsNetwork), listen, tls, hello, clock };
                let transport = Transport::start(options, Arc::new(Echo)).expect("an address");
                bound.send(transport.address().to_string()).expect("a listener");
                loop {
                    tokio::select! {
                        _ = &mut stopped => return,
                        () = tokio::time::sleep(Duration::from_millis(20)) => {}
                    }
                    if asked.try_recv().is_ok() {
                        tell.send(thread_cpu()).expect("a listener");
                    }
                }
            });
        });
        Remote { address: address.recv().expect("an address"), ask, stop, cpu }
    }

    fn cpu(&self) -> Duration {
        self.ask.send(()).expect("a thread");
        self.cpu.recv().expect("a thread")
    }
}

#[test]
#[ignore = "prints figures, and asserts none"]
fn figures_of_calls() {
    let authority = Authority::new();
    let remote = Remote::start(authority.issue(""));
    actix::System::new().block_on(async {
        let caller = Replica::start(authority.issue("m1"), 1);
        let to = Callee { address: remote.address.clone(), member: Some(2) };
        for (what, method, bytes, depth, calls) in [
            ("warm", ECHO, 100, 1, 2_000),
            ("sequential, 100 bytes", ECHO, 100, 1, 20_000),
            ("64 under way, 100 bytes", ECHO, 100, 64, 200_000),
            ("1024 under way, 100 bytes", ECHO, 100, 1_024, 400_000),
            ("sequential, 11 KB there", ZEROS, 11_000, 1, 20_000),
            ("64 under way, 11 KB there", ZEROS, 11_000, 64, 100_000),
        ] {
            let payload = Bytes::from(vec![7; bytes]);
            let call = || caller.transport.call(&to, Lane::Bulk, method, payload.clone(), LONG);
            let (here, there, began) = (thread_cpu(), remote.cpu(), Instant::now());
            let mut under_way: FuturesUnordered<_> = (0..depth).map(|_| call()).collect();
            for made in depth..calls + depth {
                under_way.next().await.expect("a call").expect("an answer");
                if made < calls {
                    under_way.push(call());
                }
            }
            let elapsed = began.elapsed();
            let (here, there) = (thread_cpu() - here, remote.cpu() - there);
            let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
            println!(
                "{what}: {:.0} calls/s, {:.1} us each, CPU {:.1} us here and {:.1} us there, {:.0} MB/s",
                calls as f64 / elapsed.as_secs_f64(),
                each(elapsed),
                each(here),
                each(there),
                (bytes * calls) as f64 / elapsed.as_secs_f64() / 1e6,
            );
        }
    });
    let _ = remote.stop.send(());
}
