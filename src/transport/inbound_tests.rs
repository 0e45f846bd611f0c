use super::super::head::MALFORMED;
use super::*;

/// A client that sends bytes so many at a time, and then closes.
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

/// What the HTTP server reads of what a client sends, and what is asked.
fn read(text: &[u8], step: usize) -> (String, Vec<Question>) {
    let mut client = Client { bytes: text.to_vec(), step };
    let (mut inbound, mut all) = (Inbound::new(), Vec::new());
    let mut cx = Context::from_waker(std::task::Waker::noop());
    loop {
        let mut bytes = [0; 50];
        let mut buf = ReadBuf::new(&mut bytes);
        assert!(inbound.poll_read(&mut cx, &mut client, &mut buf).is_ready());
        if buf.filled().is_empty() {
            break;
        }
        all.extend_from_slice(buf.filled());
    }
    let asked = std::iter::from_fn(|| inbound.asked().next()).collect();
    (String::from_utf8(all).unwrap(), asked)
}

fn request(question: &Question) -> &RequestHead {
    match question {
        Question::Request(head, _) => head,
        Question::Refused(refusal) => panic!("{refusal:?}"),
    }
}

const SHORT: &str = "GET / HTTP/1.1\r\nhost: a\r\n";

#[test]
fn requests_pass_in_order_however_their_bytes_come() {
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
        let (given, asked) = read(sent.as_bytes(), step);
        assert_eq!(given, expected, "{step} at a time");
        let asked: Vec<String> = asked
            .iter()
            .map(|question| format!("{} {}", request(question).method, request(question).uri.as_ref().unwrap()))
            .collect();
        assert_eq!(asked, ["POST /a", "HEAD /b", "PUT /c", "DELETE /d"]);
    }
}

#[test]
fn what_is_refused_is_the_last() {
    let (given, asked) = read(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 10);
    assert_eq!(given, format!("{SHORT}\r\n{SHORT}connection: close\r\n\r\n"));
    assert!(matches!(asked[..], [Question::Request(..), Question::Refused(MALFORMED)]));
}

#[test]
fn bytes_of_another_protocol_are_left_alone() {
    let bytes = "GET\r\n\r\nno head\n\n";
    let head = "GET /exec HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";
    for step in [1, 7, 200] {
        let (given, asked) = read(format!("{head}{bytes}").as_bytes(), step);
        assert_eq!(given, format!("{SHORT}connection: upgrade\r\nupgrade: websocket\r\n\r\n{bytes}"));
        assert_eq!(asked.len(), 1);
    }
    // Of any other protocol the server decides whether it is spoken.
    let head = "POST /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
    let mut inbound = Inbound::new();
    inbound.take(format!("{head}begun").as_bytes());
    inbound.leave();
    inbound.take(bytes.as_bytes());
    assert_eq!(String::from_utf8(inbound.ready).unwrap(), format!("{SHORT}\r\nbegun{bytes}"));
}

#[test]
fn heads_are_bounded() {
    let with = |bytes: usize| {
        let (begin, end) = ("GET / HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n");
        format!("{begin}{}{end}", "x".repeat(bytes - begin.len() - end.len())).into_bytes()
    };
    let (_, asked) = read(&with(limits::HEAD_BYTES), 10_000);
    assert!(matches!(asked[..], [Question::Request(_, Some(_))]));
    let (_, asked) = read(&with(limits::HEAD_BYTES + 1), 10_000);
    assert!(matches!(asked[..], [Question::Refused(TOO_LARGE)]));
    let (_, asked) = read(&with(limits::HEAD_BYTES_COMMON), 10_000);
    assert!(matches!(asked[..], [Question::Request(_, None)]));
}

#[test]
fn large_heads_are_counted() {
    let large =
        || read(&[b"GET / HTTP/1.1\r\nHost: a\r\nX: ".as_slice(), &[b'x'; 100_000], b"\r\n\r\n"].concat(), 10_000).1;
    let held: Vec<_> = std::iter::repeat_with(large).take(2 * limits::LARGE_HEADS).collect();
    let refused = held.iter().filter(|asked| matches!(asked[..], [Question::Refused(TOO_MANY)])).count();
    // Other tests may hold some meanwhile.
    assert!((limits::LARGE_HEADS..limits::LARGE_HEADS + 8).contains(&refused), "{refused}");
    drop(held);
    assert!(matches!(large()[..], [Question::Request(..)]));
}
