//! A TLS connection that gathers the writes of HTTP/2 and sends them once per turn of its task.
//!
//! HTTP/2 flushes its connection after each frame. Sending the frame at each flush would cost a TLS record and a system
//! call every time. But the task usually writes several frames in a turn: an answer and its end, or an event for each
//! of a hundred watches. Therefore a flush only wakes the task once more. The task sends the written bytes when it next
//! reads, after all tasks that were ready in between. Many written bytes are sent without delay.

use std::future::Future as _;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::rt::net::TcpStream;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::client_side::{ClientSide, ReadSide};
use super::connections::Connections;
use super::graceful_close::GracefulClose;
use super::inbound::{CurrentRequest, Inbound};
use super::outlet::Outlet;
use crate::limits;

/// Size of a full TLS record (RFC 8446, section 5.1), in bytes.
const RECORD: usize = 16_384;

/// The number of buffers of one write that are used; HTTP/2 writes two.
const SLICES: usize = 8;

/// An accepted TLS connection.
pub struct BatchingStream {
    tls: TlsStream<TcpStream>,
    /// Closes the connection, for HTTP/2. Only HTTP/2 writes are gathered: HTTP/1.1 already writes whole answers.
    http2: Option<GracefulClose>,
    /// Reads the client's requests, for HTTP/1.1.
    http1: Option<Inbound>,
    /// The last bytes that were written, less than a record.
    tail: Vec<u8>,
    /// The number of encrypted bytes that were not sent.
    held: usize,
    /// Whether the task was woken and will send before it reads.
    promised: bool,
    outlet: Outlet,
    /// The handlers' view of the connection.
    reads: ReadSide,
    /// When to check whether the client has disconnected, while nothing is read from it.
    look: Option<Pin<Box<Sleep>>>,
}

impl BatchingStream {
    /// Wraps a connection of a server after the handshake.
    pub fn new(mut tls: TlsStream<TcpStream>, connections: &Connections) -> Self {
        let session = tls.get_mut().1;
        let http2 = (session.alpn_protocol() == Some(b"h2")).then(|| GracefulClose::new(connections));
        if http2.is_some() {
            // This type bounds the buffered bytes itself; rustls would refuse some of them.
            session.set_buffer_limit(None);
        }
        let http1 = http2.is_none().then(Inbound::new);
        let (outlet, reads) = (Outlet::default(), ReadSide::new());
        Self { tls, http2, http1, tail: Vec::new(), held: 0, promised: false, outlet, reads, look: None }
    }

    /// Returns the TLS stream.
    pub fn tls(&self) -> &TlsStream<TcpStream> {
        &self.tls
    }

    /// Returns the outlet, by which streams ask whether the connection accepts more.
    pub fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Returns the requests of the client, for HTTP/1.1.
    pub(super) fn current(&self) -> Option<&CurrentRequest> {
        self.http1.as_ref().map(Inbound::current)
    }

    /// Returns the handlers' view of the connection.
    pub fn client_side(&self) -> ClientSide {
        self.reads.client_side()
    }

    /// Returns whether the client has chosen HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.http2.is_some()
    }

    /// Checks from time to time whether the client has disconnected while nothing is read from it. Without this check,
    /// the disconnection would stay unnoticed as long as a handler that took over the connection takes no bytes.
    fn look_for_end(&mut self, cx: &mut Context<'_>) {
        loop {
            let look = self.look.get_or_insert_with(|| Box::pin(sleep(limits::HANG_UP_INTERVAL)));
            if look.as_mut().poll(cx).is_pending() {
                return;
            }
            self.look = None;
            let has_hung_up = match self.tls.get_ref().0.ready(Interest::READABLE).now_or_never() {
                Some(Ok(state)) => state.is_read_closed(),
                Some(Err(_)) => true,
                None => false,
            };
            if has_hung_up {
                self.reads.end();
                return;
            }
        }
    }

    /// Accepts written bytes: full records are encrypted, the rest waits for more.
    fn gather(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.held >= limits::CONNECTION_WRITE_BYTES {
            ready!(self.send(cx))?;
        }
        let total: usize = bufs.iter().map(|buf| buf.len()).sum();
        if self.tail.len() + total < RECORD {
            bufs.iter().for_each(|buf| self.tail.extend_from_slice(buf));
            return Poll::Ready(Ok(total));
        }
        let mut slices = [IoSlice::new(&[]); SLICES + 1];
        slices[0] = IoSlice::new(&self.tail);
        let bufs = bufs.iter().filter(|buf| !buf.is_empty()).take(SLICES);
        let offered: usize = bufs.clone().map(|buf| buf.len()).sum();
        let limit = self.tail.len() + offered;
        let mut room =
            (limit - limit % RECORD).clamp(RECORD.min(limit), limits::CONNECTION_WRITE_BYTES) - self.tail.len();
        for (slice, buf) in slices[1..].iter_mut().zip(bufs) {
            let taken = &buf[..buf.len().min(room)];
            room -= taken.len();
            *slice = IoSlice::new(taken);
        }
        let written = self.tls.get_mut().1.writer().write_vectored(&slices)?;
        self.held += written;
        let of_tail = written.min(self.tail.len());
        self.tail.drain(..of_tail);
        Poll::Ready(Ok(written - of_tail))
    }

    /// Inserts the frame that closes the connection, if it is due. Returns whether it did.
    fn insert_go_away(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let Some(frame) = self.http2.as_mut().and_then(|close| close.go_away(cx)) else { return Ok(false) };
        if self.tail.len() + frame.len() >= RECORD {
            self.encrypt()?;
        }
        self.tail.extend_from_slice(frame);
        Ok(true)
    }

    /// Encrypts the last bytes, less than a record.
    fn encrypt(&mut self) -> io::Result<()> {
        self.held += self.tail.len();
        self.tls.get_mut().1.writer().write_all(&self.tail)?;
        self.tail.clear();
        Ok(())
    }

    /// Sends all bytes that were written.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.tail.is_empty() {
            self.encrypt()?;
        }
        if Pin::new(&mut self.tls).poll_flush(cx)?.is_pending() {
            self.outlet.fill();
            return Poll::Pending;
        }
        self.outlet.empty();
        self.held = 0;
        self.promised = false;
        Poll::Ready(Ok(()))
    }

    /// Returns an error if the connection must be closed.
    fn goes_on(&self, cx: &Context<'_>) -> io::Result<()> {
        if self.outlet.is_closing(cx) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not receive its answers"));
        }
        Ok(())
    }
}

impl Drop for BatchingStream {
    fn drop(&mut self) {
        // Streams that wait for the connection must be woken a last time; they then notice that it is closed.
        self.outlet.empty();
    }
}

/// Reads the bytes for HTTP/1.1.
struct Heads<'c> {
    inbound: &'c mut Inbound,
    tls: &'c mut TlsStream<TcpStream>,
}

impl AsyncRead for Heads<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { inbound, tls } = &mut *self;
        inbound.poll_read(cx, *tls, buf)
    }
}

impl AsyncRead for BatchingStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.goes_on(cx)?;
        if let Some(inbound) = &mut this.http1 {
            if this.reads.is_taken_over() {
                inbound.leave();
            }
            let read = this.reads.poll_read(cx, Heads { inbound, tls: &mut this.tls }, buf);
            match this.reads.is_full() {
                true => this.look_for_end(cx),
                false => this.look = None,
            }
            return read;
        }
        let Some(close) = &mut this.http2 else { return Poll::Ready(Ok(())) };
        close.advance(cx, this.outlet.is_leaving());
        this.promised |= this.insert_go_away(cx)?;
        if this.promised
            && let Poll::Ready(Err(error)) = this.send(cx)
        {
            return Poll::Ready(Err(error));
        }
        let Some(close) = &mut this.http2 else { return Poll::Ready(Ok(())) };
        close.poll_read(cx, &mut this.tls, buf)
    }
}

impl AsyncWrite for BatchingStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.goes_on(cx)?;
        if this.http2.is_none() {
            return Pin::new(&mut this.tls).poll_write_vectored(cx, bufs);
        }
        this.outlet.has_turn();
        let written = ready!(this.gather(cx, bufs))?;
        this.http2.iter_mut().for_each(|close| close.wrote(bufs, written));
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.http2.is_none() {
            return Pin::new(&mut this.tls).poll_flush(cx);
        }
        this.insert_go_away(cx)?;
        if !this.promised && (this.held > 0 || !this.tail.is_empty()) {
            this.promised = true;
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.send(cx))?;
        ready!(Pin::new(&mut this.tls).poll_shutdown(cx))?;
        match (&mut this.http2, &mut this.http1) {
            (Some(close), _) => close.poll_closed(cx, &mut this.tls).map(Ok),
            (None, Some(inbound)) => inbound.poll_closed(cx, &mut this.tls).map(Ok),
            (None, None) => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
#[path = "batching_stream_tests.rs"]
mod tests;
