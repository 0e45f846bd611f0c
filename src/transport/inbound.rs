//! Reads the requests of HTTP/1.1 clients before the HTTP server does.
//!
//! The HTTP server accepts 96 header lines, 128 KiB of a head and 64 KiB of a URI. Proxies for users of many groups
//! send more, and the reference accepts a mebibyte in total. Therefore this module reads the heads. The HTTP server
//! gets a short head for each request, which states only how the body and the connection end. Handlers find the full
//! head in [`CurrentRequest`]. Thus heads have one reader, with the rules of the reference, and no second reader that
//! could understand them differently.
//!
//! The bytes after a request are read only after its answer, which decides whether they are HTTP. A connection
//! therefore holds one request at a time, however many the client pipelines. A request for an upgrade is the last one:
//! the bytes after it belong to the other protocol, or the connection closes.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};

use actix_web::http::Method;
use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::chunked::Chunked;
use super::head::{self, Length, Refusal, RequestHead, TOO_LARGE, TOO_MANY};
use crate::limits;

/// The number of heads above [`limits::HEAD_BYTES_COMMON`] that are being read or answered.
static LARGE: AtomicUsize = AtomicUsize::new(0);

/// A large head, counted until this is dropped.
#[derive(Debug)]
pub(super) struct Large(());

impl Large {
    fn enter() -> Option<Self> {
        let large = Self(());
        (LARGE.fetch_add(1, Ordering::Relaxed) < limits::LARGE_HEADS).then_some(large)
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        LARGE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that was passed to the HTTP server.
pub(super) enum Question {
    /// A request for the gateway.
    Request(Box<RequestHead>, Option<Large>),
    /// A request to refuse. No request follows it.
    Refused(Refusal),
}

/// The latest request of a connection that was passed to the HTTP server. Clones refer to the same request.
#[derive(Clone, Default)]
pub(super) struct CurrentRequest(Rc<RequestState>);

#[derive(Default)]
struct RequestState {
    question: RefCell<Option<Question>>,
    /// Whether it was not answered yet.
    is_open: Cell<bool>,
    /// Woken once it was answered.
    reader: RefCell<Option<Waker>>,
}

impl CurrentRequest {
    /// Takes the request. The caller must answer it. `None` if it was already taken.
    pub fn take(&self) -> Option<Question> {
        self.0.question.take()
    }

    /// Notes that the HTTP server has the answer. The HTTP server writes it before it reads again.
    pub fn answered(&self) {
        self.0.is_open.set(false);
        let reader = self.0.reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    fn set(&self, question: Question) {
        self.0.is_open.set(true);
        self.0.question.replace(Some(question));
    }

    fn poll_answered(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.0.is_open.get() {
            return Poll::Ready(());
        }
        self.0.reader.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

/// The part of the input that follows.
enum InboundStage {
    Head,
    /// A body; this many bytes of it are missing.
    Body(u64),
    Chunks(Chunked),
    /// Bytes of another protocol.
    Other,
    /// Bytes that are ignored.
    Over,
}

/// Reads one connection from its first byte.
pub(super) struct Inbound {
    stage: InboundStage,
    /// The head that is being read, and how many of its bytes were searched for its end.
    head: Vec<u8>,
    searched: usize,
    large: Option<Large>,
    /// When the head must be complete.
    deadline: Option<Pin<Box<Sleep>>>,
    /// The bytes that the HTTP server reads next, and how many of them it has read.
    ready: Vec<u8>,
    given: usize,
    buffer: Box<[u8]>,
    /// The part of the buffer that was not processed.
    left: Range<usize>,
    current: CurrentRequest,
    /// Whether the server closes the connection after the answer although the client may still send.
    is_cut: bool,
    /// The wait for the client to close it in that case.
    close_wait: Option<Pin<Box<Sleep>>>,
}

impl Inbound {
    pub fn new() -> Self {
        Self {
            stage: InboundStage::Head,
            head: Vec::new(),
            searched: 0,
            large: None,
            deadline: None,
            ready: Vec::new(),
            given: 0,
            buffer: vec![0; limits::HTTP1_READ_BYTES].into(),
            left: 0..0,
            current: CurrentRequest::default(),
            is_cut: false,
            close_wait: None,
        }
    }

    /// Returns the requests of this connection.
    pub fn current(&self) -> &CurrentRequest {
        &self.current
    }

    /// Waits a moment, after all bytes were written, until a client that may still send has closed the connection too.
    /// If the server closed it first, the client could lose the answer.
    pub fn poll_closed<T: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, stream: &mut T) -> Poll<()> {
        while self.is_cut {
            let moment = self.close_wait.get_or_insert_with(|| Box::pin(sleep(limits::CLOSE_TIMEOUT)));
            if moment.as_mut().poll(cx).is_ready() {
                break;
            }
            let mut read = ReadBuf::new(&mut self.buffer);
            if ready!(Pin::new(&mut *stream).poll_read(cx, &mut read)).is_err() || read.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(())
    }

    /// Forwards all further bytes unchanged, because the connection was upgraded.
    pub fn leave(&mut self) {
        (self.stage, self.is_cut) = (InboundStage::Other, false);
    }

    /// Reads for the HTTP server.
    pub fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut T,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let ready = &self.ready[self.given..];
            if !ready.is_empty() {
                let now = ready.len().min(buf.remaining());
                buf.put_slice(&ready[..now]);
                self.given += now;
                return Poll::Ready(Ok(()));
            }
            self.ready.clear();
            self.given = 0;
            if self.left.is_empty() {
                let mut read = ReadBuf::new(&mut self.buffer);
                if Pin::new(&mut *stream).poll_read(cx, &mut read)?.is_pending() {
                    return self.poll_deadline(cx);
                }
                self.left = 0..read.filled().len();
                if self.left.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            if matches!(self.stage, InboundStage::Head) {
                ready!(self.current.poll_answered(cx));
            }
            let buffer = std::mem::take(&mut self.buffer);
            let left = self.take(&buffer[self.left.clone()]);
            self.left.start = self.left.end - left;
            self.buffer = buffer;
        }
    }

    /// Ends the connection if the client takes too long to send a head.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.head.is_empty() {
            self.deadline = None;
            return Poll::Pending;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(limits::REQUEST_HEAD_TIMEOUT)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Processes bytes that were read, as far as the stage allows. Returns how many are left.
    fn take(&mut self, mut bytes: &[u8]) -> usize {
        while !bytes.is_empty() {
            bytes = match &mut self.stage {
                InboundStage::Head if self.current.0.is_open.get() => return bytes.len(),
                InboundStage::Head => self.take_head(bytes),
                InboundStage::Body(left) => {
                    let (body, rest) = bytes.split_at(bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX)));
                    self.ready.extend_from_slice(body);
                    *left -= body.len() as u64;
                    if *left == 0 {
                        self.stage = InboundStage::Head;
                    }
                    rest
                }
                InboundStage::Chunks(chunks) => {
                    let rest = chunks.pass(bytes, &mut self.ready);
                    if chunks.is_done() {
                        self.stage = InboundStage::Head;
                    } else if chunks.is_broken() {
                        self.stage = InboundStage::Over;
                    }
                    rest
                }
                InboundStage::Other => {
                    self.ready.extend_from_slice(bytes);
                    return 0;
                }
                InboundStage::Over => return 0,
            };
        }
        0
    }

    /// Adds bytes to the head. Returns those after its end, which belong to the body.
    fn take_head<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let before = self.head.len();
        let room = limits::HEAD_BYTES - before;
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let Some(end) = self.find_end() else {
            if self.head.len() >= limits::HEAD_BYTES {
                self.refuse(TOO_LARGE);
            } else if self.head.len() > limits::HEAD_BYTES_COMMON && self.large.is_none() {
                self.large = Large::enter();
                if self.large.is_none() {
                    self.refuse(TOO_MANY);
                }
            }
            return &[];
        };
        self.head.truncate(end);
        let (head, large) = (Bytes::from(std::mem::take(&mut self.head)), self.large.take());
        self.searched = 0;
        self.deadline = None;
        match head::parse(&head) {
            Ok(head) => self.pass(head, large),
            Err(refusal) => self.refuse(refusal),
        }
        &bytes[end - before..]
    }

    /// Returns the end of the empty line that ends the head. `None` if it has not arrived.
    fn find_end(&mut self) -> Option<usize> {
        while let Some(at) = memchr::memchr(b'\n', &self.head[self.searched..]) {
            let line = self.searched + at + 1;
            match &self.head[line..] {
                [b'\n', ..] => return Some(line + 1),
                [b'\r', b'\n', ..] => return Some(line + 2),
                // The next bytes decide.
                [] | [b'\r'] => {
                    self.searched = line - 1;
                    return None;
                }
                _ => self.searched = line,
            }
        }
        self.searched = self.head.len();
        None
    }

    /// Gives the HTTP server a short head, and handlers the full one.
    fn pass(&mut self, head: RequestHead, large: Option<Large>) {
        let method = if head.method == Method::HEAD { "HEAD" } else { "GET" };
        let version = if head.is_old { "1.0" } else { "1.1" };
        let mut short = format!("{method} / HTTP/{version}\r\nhost: a\r\n");
        self.is_cut = head.is_upgrade;
        short.push_str(match (head.closes || head.is_upgrade, head.is_old) {
            (true, _) => "connection: close\r\n",
            (false, true) => "connection: keep-alive\r\n",
            (false, false) => "",
        });
        self.stage = match head.length {
            Length::Bytes(0) => InboundStage::Head,
            Length::Bytes(length) => {
                short.push_str(&format!("content-length: {length}\r\n"));
                InboundStage::Body(length)
            }
            Length::Chunks => {
                short.push_str("transfer-encoding: chunked\r\n");
                InboundStage::Chunks(Chunked::default())
            }
        };
        short.push_str(if head.expects { "expect: 100-continue\r\n\r\n" } else { "\r\n" });
        self.ready.extend_from_slice(short.as_bytes());
        self.current.set(Question::Request(Box::new(head), large));
    }

    /// Refuses the connection's last request, after the earlier ones were answered.
    fn refuse(&mut self, refusal: Refusal) {
        self.ready.extend_from_slice(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        self.current.set(Question::Refused(refusal));
        (self.head, self.large, self.stage, self.is_cut) = (Vec::new(), None, InboundStage::Over, true);
    }
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;
