use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;

use super::test_net::{Authority, DROP, ECHO, HOLD, Proxy, ProxyBehavior, REFUSE, Replica, ZEROS, undisturbed, until};
use super::{Callee, Hello, Lane, PeerError, Peers};
use crate::limits::{
    PEER_CALL_BYTES_MAX, PEER_CALLS_MAX, PEER_CONNECTIONS_MAX, PEER_DEAD_AFTER, PEER_FRAME_BYTES_MAX,
    PEER_HANDSHAKE_TIMEOUT, PEER_INTERRUPTION_MIN,
};

/// How long a call may take that is answered: only a test that fails takes longer, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn anyone(address: impl Into<String>) -> Callee {
    Callee { address: address.into(), member: None }
}

fn pair() -> (Replica, Replica) {
    let authority = Authority::new();
    (Replica::start(authority.issue("m1"), 1), Replica::start(authority.issue("m2"), 2))
}

/// Calls until there is an answer. On a busy machine a connection may take longer to be made than replicas wait for it.
async fn connect(a: &Replica, to: &Callee, lane: Lane) {
    let since = Instant::now();
    loop {
        match a.transport.call(to, lane, ECHO, Bytes::new(), LONG).await {
            Ok(_) => return,
            Err(error) => assert!(since.elapsed() < 2 * LONG, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn calls_arrive_in_order_and_get_their_own_answers() {
    let (a, b) = pair();
    let to = Callee { address: b.address(), member: Some(2) };
    connect(&a, &to, Lane::Bulk).await;
    b.service.requests.lock().clear();
    let text = |number: u32| Bytes::from(number.to_string());
    let call = |number| a.transport.call(&to, Lane::Bulk, HOLD, text(number), LONG);
    let calls: Vec<_> = (0..1_000).map(call).collect();
    let released = async {
        until("all are held", || b.service.held() == 1_000).await;
        b.service.release()
    };
    let (answers, released) = tokio::join!(join_all(calls), released);
    assert_eq!(released, 1_000);
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, Ok(text(number as u32)), "answered in reverse order");
    }
    let requests = b.service.requests.lock();
    for (number, (from, _, payload)) in requests.iter().enumerate() {
        assert_eq!((payload, from.member, from.name.as_str()), (&text(number as u32), 1, "m1"));
    }
}

#[tokio::test]
async fn frames_up_to_the_bound_pass_and_no_larger_ones() {
    let (a, b) = pair();
    let to = anyone(b.address());
    connect(&a, &to, Lane::Bulk).await;
    connect(&a, &to, Lane::Control).await;
    let large = Bytes::from((0..12 << 20).map(|at: u32| (at % 251) as u8).collect::<Vec<u8>>());
    let (bulk, control) = tokio::join!(
        a.transport.call(&to, Lane::Bulk, ECHO, large.clone(), LONG),
        a.transport.call(&to, Lane::Control, ECHO, Bytes::from("small"), LONG),
    );
    assert!(bulk == Ok(large), "12 MiB come back");
    assert_eq!(control, Ok(Bytes::from("small")));
    let too_large = Bytes::from(vec![0; PEER_FRAME_BYTES_MAX]);
    let answer = a.transport.call(&to, Lane::Bulk, ECHO, too_large, LONG).await;
    assert_eq!(answer, Err(PeerError::TooLarge { bytes: PEER_FRAME_BYTES_MAX }));
    let zeros = Bytes::copy_from_slice(&(PEER_FRAME_BYTES_MAX as u64).to_be_bytes());
    let answer = a.transport.call(&to, Lane::Bulk, ZEROS, zeros, LONG).await;
    assert_eq!(answer, Err(PeerError::Refused("the answer is too large".into())));
}

#[tokio::test]
async fn the_caller_learns_of_refusals_and_dropped_requests() {
    let (a, b) = pair();
    let to = anyone(b.address());
    connect(&a, &to, Lane::Control).await;
    let refused = a.transport.call(&to, Lane::Control, REFUSE, Bytes::new(), LONG).await;
    assert_eq!(refused, Err(PeerError::Refused("not today".into())));
    let dropped = a.transport.call(&to, Lane::Control, DROP, Bytes::new(), LONG).await;
    assert_eq!(dropped, Err(PeerError::Refused("the request was dropped".into())));
}

#[tokio::test]
async fn a_call_for_another_member_is_not_sent() {
    let (a, b) = pair();
    let to = Callee { address: b.address(), member: Some(3) };
    for lane in [Lane::Bulk, Lane::Control] {
        connect(&a, &anyone(b.address()), lane).await;
    }
    b.service.requests.lock().clear();
    for _ in 0..3 {
        let answer = a.transport.call(&to, Lane::Bulk, ECHO, Bytes::new(), LONG).await;
        assert_eq!(answer, Err(PeerError::Identity { found: 2 }));
    }
    assert!(b.service.requests.lock().is_empty());
    let expected = Hello { cluster: "c".into(), member: 2, name: "m2".into(), version: 1, ..Hello::default() };
    assert_eq!(a.transport.hello_of(&b.address(), LONG).await, Ok(expected));
}

#[tokio::test]
async fn a_changed_hello_is_known_before_the_next_call() {
    let (a, b) = pair();
    let to = anyone(b.address());
    connect(&a, &to, Lane::Bulk).await;
    a.hello.send_modify(|hello| hello.cluster = "later".into());
    a.transport.call(&to, Lane::Bulk, ECHO, Bytes::new(), LONG).await.expect("an answer");
    let clusters: Vec<_> = b.service.requests.lock().iter().map(|(from, ..)| from.cluster.clone()).collect();
    assert_eq!(clusters, ["c", "later"]);
    b.hello.send_modify(|hello| hello.member = 7);
    let now = async || a.transport.hello_of(&b.address(), LONG).await.expect("a hello").member;
    while now().await != 7 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    until("the new id is reachable", || a.transport.is_reachable(7) && !a.transport.is_reachable(2)).await;
}

#[tokio::test]
async fn certificates_of_another_authority_are_not_accepted() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (a, b) = (Replica::start(ours.issue("m1"), 1), Replica::start(theirs.issue("m2"), 2));
    for (caller, address) in [(&a, b.address()), (&b, a.address())] {
        let answer = caller.transport.call(&anyone(address), Lane::Control, ECHO, Bytes::new(), LONG).await;
        assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    }
    // It is not enough to trust the other side: it must also trust this one.
    let mut mixed = theirs.issue("m1");
    mixed.client = rustls_without_certificate(&mixed);
    let c = Replica::start(mixed, 3);
    let answer = c.transport.call(&anyone(b.address()), Lane::Control, ECHO, Bytes::new(), LONG).await;
    assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    assert!(a.service.requests.lock().is_empty() && b.service.requests.lock().is_empty());
}

#[tokio::test]
async fn a_replica_with_the_certificate_of_another_is_refused() {
    let authority = Authority::new();
    let a = Replica::start(authority.issue("m1"), 1);
    let impostor = Replica::start(authority.issue("m2"), 3);
    for (caller, address) in [(&a, impostor.address()), (&impostor, a.address())] {
        let answer = caller.transport.call(&anyone(address), Lane::Control, ECHO, Bytes::new(), LONG).await;
        assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    }
    assert!(a.service.requests.lock().is_empty() && impostor.service.requests.lock().is_empty());
    // A member cannot change its name on a connection either.
    let b = Replica::start(authority.issue("m2"), 2);
    let call = || a.transport.call(&anyone(b.address()), Lane::Control, ECHO, Bytes::from_static(b"x"), LONG);
    call().await.unwrap();
    b.hello.send_modify(|hello| hello.name = "m3".into());
    let mut refused = call().await;
    while refused.is_ok() {
        refused = call().await;
    }
    assert!(!a.transport.is_reachable(3));
}

/// Returns a client that presents no certificate.
fn rustls_without_certificate(tls: &crate::PeerTls) -> std::sync::Arc<rustls::ClientConfig> {
    let mut client = (*tls.client).clone();
    client.client_auth_cert_resolver = std::sync::Arc::new(NoCertificate);
    std::sync::Arc::new(client)
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<std::sync::Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_cut_connection_fails_calls_at_once_and_is_made_again() {
    let (a, b) = pair();
    let proxy = Proxy::start(b.address()).await;
    let to = anyone(&proxy.address);
    connect(&a, &to, Lane::Bulk).await;
    let held = a.transport.call(&to, Lane::Bulk, HOLD, Bytes::new(), LONG);
    let cut = async {
        until("it is held", || b.service.held() == 1).await;
        proxy.network.send_replace(ProxyBehavior::Cut);
        Instant::now()
    };
    let (answer, since) = tokio::join!(held, cut);
    assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
    let answer = a.transport.call(&to, Lane::Bulk, ECHO, Bytes::new(), LONG).await;
    assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");

    proxy.network.send_replace(ProxyBehavior::Up);
    let since = Instant::now();
    while a.transport.call(&to, Lane::Bulk, ECHO, Bytes::new(), LONG).await.is_err() {
        assert!(since.elapsed() < 2 * LONG, "connected again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_frozen_peer_is_noticed_by_its_silence_on_all_lanes() {
    let (a, b) = pair();
    let proxy = Proxy::start(b.address()).await;
    let to = anyone(&proxy.address);
    for lane in [Lane::Control, Lane::Bulk, Lane::Snapshot] {
        connect(&a, &to, lane).await;
    }
    until("both see each other", || a.transport.is_reachable(2) && b.transport.is_reachable(1)).await;
    let beats = 2 * PEER_DEAD_AFTER;
    tokio::time::sleep(beats).await;
    assert!(a.transport.is_reachable(2) && b.transport.is_reachable(1), "an idle connection stays");

    proxy.network.send_replace(ProxyBehavior::Frozen);
    let since = Instant::now();
    let call = |lane| a.transport.call(&to, lane, ECHO, Bytes::new(), LONG);
    let answers = join_all([Lane::Control, Lane::Bulk, Lane::Snapshot].map(call)).await;
    let took = since.elapsed();
    for answer in answers {
        assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    }
    assert!(took < LONG, "{took:?}");
    assert!(!a.transport.is_reachable(2), "it is not reachable");
    until("the other side notices, too", || !b.transport.is_reachable(1)).await;

    proxy.network.send_replace(ProxyBehavior::Up);
    until("it is reachable again without being called", || a.transport.is_reachable(2)).await;
}

/// Lets nothing pass for so long that it may have been an interruption. After that the proxy behaves as `after` says.
async fn interrupt(proxy: &Proxy, after: ProxyBehavior) -> Instant {
    proxy.network.send_replace(ProxyBehavior::Frozen);
    tokio::time::sleep(2 * PEER_INTERRUPTION_MIN).await;
    proxy.network.send_replace(after);
    Instant::now()
}

#[tokio::test]
async fn calls_stuck_after_an_interruption_do_not_wait_for_tcp() {
    let (a, b) = pair();
    let proxy = Proxy::start(b.address()).await;
    let to = anyone(&proxy.address);
    for lane in [Lane::Control, Lane::Bulk] {
        connect(&a, &to, lane).await;
    }
    let (stuck, small) = (
        a.transport.call(&to, Lane::Bulk, HOLD, Bytes::new(), LONG),
        a.transport.call(&to, Lane::Control, HOLD, Bytes::new(), LONG),
    );
    until("both are held", || b.service.held() == 2).await;
    let stuck = async { (stuck.await, Instant::now()) };
    let ((answer, ended), since) = tokio::join!(stuck, interrupt(&proxy, ProxyBehavior::Stuck(1)));
    assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    assert!(since <= ended && ended < since + LONG, "{:?}", ended.checked_duration_since(since));
    while a.transport.call(&to, Lane::Bulk, ECHO, Bytes::new(), LONG).await.is_err() {
        assert!(since.elapsed() < 2 * LONG, "the connection is made again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    b.service.release();
    assert_eq!(small.await, Ok(Bytes::new()), "the control connection is the one on which the peer was heard");
}

/// Interrupts a link with long calls on it. Returns whether all of them are answered.
async fn long_calls_survive() -> bool {
    let (a, b) = pair();
    let proxy = Proxy::start(b.address()).await;
    let to = anyone(&proxy.address);
    for lane in [Lane::Control, Lane::Bulk, Lane::Snapshot] {
        connect(&a, &to, lane).await;
    }
    let calls = [Lane::Bulk, Lane::Snapshot].map(|lane| a.transport.call(&to, lane, HOLD, Bytes::new(), LONG));
    let held = async {
        until("both are held", || b.service.held() == 2).await;
        interrupt(&proxy, ProxyBehavior::Up).await;
        tokio::time::sleep(PEER_DEAD_AFTER).await;
        assert_eq!(b.service.release(), 2);
    };
    let (answers, ()) = tokio::join!(join_all(calls), held);
    answers == [Ok(Bytes::new()), Ok(Bytes::new())]
}

#[tokio::test]
async fn long_calls_survive_an_interruption_of_the_link() {
    undisturbed("long calls survive", long_calls_survive).await;
}

#[tokio::test]
async fn a_restarted_peer_is_reached_again() {
    let authority = Authority::new();
    let a = Replica::start(authority.issue("m1"), 1);
    // No connection of another test takes its port on this host while it is away.
    let b = Replica::start_at(authority.issue("m2"), 2, SocketAddr::from(([127, 0, 0, 2], 0)));
    let (address, to) = (b.transport.address(), anyone(b.address()));
    connect(&a, &to, Lane::Control).await;
    let mut liveness = a.transport.liveness();
    assert_eq!(liveness.borrow_and_update().get(&2), Some(&true));
    b.transport.shutdown();
    liveness.changed().await.expect("a transport");
    assert_eq!(liveness.borrow_and_update().get(&2), Some(&false));
    let answer = b.transport.call(&anyone(a.address()), Lane::Control, ECHO, Bytes::new(), LONG).await;
    assert_eq!(answer, Err(PeerError::Closed));
    drop(b);
    let b = Replica::start_at(authority.issue("m2"), 2, address);
    liveness.wait_for(|members| members.get(&2) == Some(&true)).await.expect("a transport");
    a.transport.call(&to, Lane::Control, ECHO, Bytes::new(), LONG).await.expect("an answer");
    assert_eq!(b.service.requests.lock().len(), 1);
}

#[tokio::test]
async fn calls_to_a_slow_peer_time_out_and_a_full_queue_refuses() {
    let (a, b) = pair();
    let to = anyone(b.address());
    for lane in [Lane::Control, Lane::Bulk] {
        connect(&a, &to, lane).await;
    }
    let short = Duration::from_millis(50);
    let arrives = async || {
        let answer = a.transport.call(&to, Lane::Bulk, HOLD, Bytes::new(), short).await;
        assert_eq!(answer, Err(PeerError::Timeout));
        b.service.release() == 1
    };
    undisturbed("a call is sent before its time limit", arrives).await;
    let answer = a.transport.call(&to, Lane::Bulk, ECHO, Bytes::from("next"), LONG).await;
    assert_eq!(answer, Ok(Bytes::from("next")), "the late answer is nobody's");

    let call = |bytes: usize| a.transport.call(&to, Lane::Bulk, HOLD, Bytes::from(vec![0; bytes]), LONG);
    let calls: Vec<_> = (0..PEER_CALLS_MAX).map(|_| call(1)).collect();
    assert_eq!(call(1).await, Err(PeerError::QueueFull));
    drop(calls);
    tokio::time::sleep(short).await; // a request without a waiting caller is dropped when its turn comes
    let empty = async || a.transport.call(&to, Lane::Bulk, ECHO, Bytes::new(), LONG).await;
    assert_eq!(empty().await, Ok(Bytes::new()), "who gives up makes room");
    let part = PEER_CALL_BYTES_MAX / 8;
    let calls: Vec<_> = (0..8).map(|_| call(part)).collect();
    assert_eq!(call(1).await, Err(PeerError::QueueFull), "by bytes");
    let echo = a.transport.call(&to, Lane::Control, ECHO, Bytes::from("other lane"), LONG).await;
    assert_eq!(echo, Ok(Bytes::from("other lane")));
    drop(calls);
}

#[tokio::test]
async fn a_connection_without_a_hello_is_closed() {
    use tokio::io::AsyncReadExt;
    let (_, b) = pair();
    let mut silent = tokio::net::TcpStream::connect(b.transport.address()).await.expect("a connection");
    let since = Instant::now();
    let read = silent.read(&mut [0; 1]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
}

/// Calls a replica to which there are many silent connections. Returns whether it answered before these had gone by
/// themselves.
async fn silent_connections_are_passed() -> bool {
    let (a, b) = pair();
    let mut silent = Vec::new();
    let since = Instant::now();
    while silent.len() < 2 * PEER_CONNECTIONS_MAX {
        silent.push(tokio::net::TcpStream::connect(b.address()).await.expect("a connection"));
    }
    let answer = a.transport.call(&anyone(b.address()), Lane::Bulk, ECHO, Bytes::new(), LONG).await;
    answer == Ok(Bytes::new()) && since.elapsed() < PEER_HANDSHAKE_TIMEOUT
}

#[tokio::test]
async fn silent_connections_do_not_keep_peers_out() {
    undisturbed("a peer is let in", silent_connections_are_passed).await;
}

#[tokio::test]
async fn a_call_to_an_address_without_a_listener_fails_at_once() {
    let (a, b) = pair();
    let to = anyone(b.address());
    b.transport.shutdown();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let since = Instant::now();
    for _ in 0..10 {
        let answer = a.transport.call(&to, Lane::Control, ECHO, Bytes::new(), LONG).await;
        assert!(matches!(answer, Err(PeerError::Unreachable(_))), "{answer:?}");
    }
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_pause_of_this_side_does_not_count_as_silence_of_the_peer() {
    let (a, b) = pair();
    connect(&a, &anyone(b.address()), Lane::Control).await;
    let (mut here, mut there) = (a.transport.liveness(), b.transport.liveness());
    assert_eq!((here.borrow_and_update().len(), there.borrow_and_update().len()), (1, 1));
    std::thread::sleep(PEER_DEAD_AFTER * 2); // both sides are on this thread
    tokio::time::sleep(PEER_DEAD_AFTER / 2).await;
    assert!(!here.has_changed().expect("a transport") && !there.has_changed().expect("a transport"));
    a.transport.call(&anyone(b.address()), Lane::Control, ECHO, Bytes::new(), LONG).await.expect("an answer");
}
