use std::sync::Arc;

use super::super::head::MALFORMED;
use super::*;

/// A client that sends its bytes in steps of `step`, and then closes.
struct Client {
    bytes: Vec<u8>,
    step: usize,
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let now = self.bytes.len().min(self.step).min(buf.remaining());
        let part: Vec<u8> = self.bytes.drain(..now).collect();
        buf.put_slice(&part);
        Poll::Ready(Ok(()))
    }
}

/// Returns the bytes that the HTTP server reads from a client, and the requests. A request is answered when no more
/// bytes are read.
fn read(text: &[u8], step: usize) -> (String, Vec<Question>) {
    let mut client = Client { bytes: text.to_vec(), step };
    let (mut inbound, mut all, mut current) = (Inbound::new(), Vec::new(), Vec::new());
    let mut cx = Context::from_waker(std::task::Waker::noop());
    loop {
        let mut bytes = [0; 50];
        let mut buf = ReadBuf::new(&mut bytes);
        let read = inbound.poll_read(&mut cx, &mut client, &mut buf);
        all.extend_from_slice(buf.filled());
        match inbound.current().take() {
            Some(question) => current.push(question),
            None if read.is_pending() => inbound.current().answered(),
            None if buf.filled().is_empty() => return (String::from_utf8(all).unwrap(), current),
            None => {}
        }
    }
}

fn request(question: &Question) -> &RequestHead {
    match question {
        Question::Request(head, _) => head,
        Question::Refused(refusal) => panic!("{refusal:?}"),
    }
}

const SHORT: &str = "GET / HTTP/1.1\r\nhost: a\r\n";

#[test]
fn requests_pass_in_order_in_parts_of_any_size() {
    let sent = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: y\r\n\r\nbo\n\ny\
                HEAD /b HTTP/1.0\nConnection: keep-alive\n\n\
                PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
                Expect: 100-continue\r\n\r\n2;e\r\n{}\r\n0\r\n\r\n\
                DELETE /d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let expected = format!(
        "{SHORT}content-length: 5\r\n\r\nbo\n\nyHEAD / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n\
         {SHORT}transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n\
         {SHORT}connection: close\r\n\r\n"
    );
    for step in (1..50).chain([sent.len()]) {
        let (given, current) = read(sent.as_bytes(), step);
        assert_eq!(given, expected, "{step} at a time");
        let current: Vec<String> = current
            .iter()
            .map(|question| format!("{} {}", request(question).method, request(question).uri.as_ref().unwrap()))
            .collect();
        assert_eq!(current, ["POST /a", "HEAD /b", "PUT /c", "DELETE /d"]);
    }
}

#[test]
fn no_request_follows_a_refused_one() {
    let (given, current) = read(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 10);
    assert_eq!(given, format!("{SHORT}\r\n{SHORT}connection: close\r\n\r\n"));
    assert!(matches!(current[..], [Question::Request(..), Question::Refused(MALFORMED)]));
}

#[test]
fn a_connection_holds_one_of_many_pipelined_requests() {
    let heads = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10_000).into_bytes();
    let mut client = Client { bytes: heads, step: usize::MAX };
    let (mut inbound, count) = (Inbound::new(), Arc::new(Count::default()));
    let waker = Arc::clone(&count).into();
    let mut cx = Context::from_waker(&waker);
    for answered in 0..3 {
        let mut given = Vec::new();
        for _ in 0..100 {
            let mut bytes = [0; 8_192];
            let mut buf = ReadBuf::new(&mut bytes);
            let _ = inbound.poll_read(&mut cx, &mut client, &mut buf);
            given.extend_from_slice(buf.filled());
        }
        assert_eq!(given, format!("{SHORT}\r\n").into_bytes());
        assert!(inbound.current().take().is_some() && inbound.current().take().is_none());
        assert_eq!(count.0.load(Ordering::Relaxed), answered);
        inbound.current().answered();
    }
    assert!(client.bytes.len() > 200_000, "bytes that are not needed yet are not read");
}

#[derive(Default)]
struct Count(AtomicUsize);

impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn bytes_of_another_protocol_pass_unchanged() {
    let bytes = "GET / HTTP/1.1\r\nHost: a\r\n\r\nno head\n\n";
    for (protocol, step) in [("websocket", 1), ("SPDY/3.1", 7), ("x", 200)] {
        let head = format!("GET /exec HTTP/1.1\r\nHost: a\r\nConnection: x, Upgrade\r\nUpgrade: {protocol}\r\n\r\n");
        let mut client = Client { bytes: format!("{head}{bytes}").into_bytes(), step };
        let mut inbound = Inbound::new();
        let short = read_on(&mut inbound, &mut client);
        assert_eq!(short, format!("{SHORT}connection: close\r\n\r\n"), "nothing is read of it as HTTP");
        assert!(request(&inbound.current().take().unwrap()).is_upgrade);
        inbound.leave();
        assert_eq!(read_on(&mut inbound, &mut client), bytes);
    }
}

/// Reads for the HTTP server until no more bytes are available.
fn read_on(inbound: &mut Inbound, client: &mut Client) -> String {
    let (mut cx, mut all) = (Context::from_waker(std::task::Waker::noop()), Vec::new());
    loop {
        let mut bytes = [0; 50];
        let mut buf = ReadBuf::new(&mut bytes);
        let read = inbound.poll_read(&mut cx, client, &mut buf);
        if read.is_pending() || buf.filled().is_empty() {
            return String::from_utf8(all).unwrap();
        }
        all.extend_from_slice(buf.filled());
    }
}

#[test]
fn heads_are_bounded() {
    let with = |bytes: usize| {
        let (begin, end) = ("GET / HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n");
        format!("{begin}{}{end}", "x".repeat(bytes - begin.len() - end.len())).into_bytes()
    };
    let (_, current) = read(&with(limits::HEAD_BYTES), 10_000);
    assert!(matches!(current[..], [Question::Request(_, Some(_))]));
    let (_, current) = read(&with(limits::HEAD_BYTES + 1), 10_000);
    assert!(matches!(current[..], [Question::Refused(TOO_LARGE)]));
    let (_, current) = read(&with(limits::HEAD_BYTES_COMMON), 10_000);
    assert!(matches!(current[..], [Question::Request(_, None)]));
}

#[test]
fn large_heads_are_counted() {
    let large =
        || read(&[b"GET / HTTP/1.1\r\nHost: a\r\nX: ".as_slice(), &[b'x'; 100_000], b"\r\n\r\n"].concat(), 10_000).1;
    let held: Vec<_> = std::iter::repeat_with(large).take(2 * limits::LARGE_HEADS).collect();
    let refused = held.iter().filter(|current| matches!(current[..], [Question::Refused(TOO_MANY)])).count();
    // Other tests may hold some at the same time.
    assert!((limits::LARGE_HEADS..limits::LARGE_HEADS + 8).contains(&refused), "{refused}");
    drop(held);
    assert!(matches!(large()[..], [Question::Request(..)]));
}

/// A client that neither sends nor closes.
struct Silent;

impl AsyncRead for Silent {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_client_to_close_is_bounded() {
    for refused in ["GET\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"] {
        let mut inbound = Inbound::new();
        read_on(&mut inbound, &mut Client { bytes: refused.into(), step: 100 });
        let closed = std::future::poll_fn(|cx| inbound.poll_closed(cx, &mut Silent));
        tokio::time::timeout(60 * limits::CLOSE_TIMEOUT, closed).await.expect("an end");
    }
}
