//! A TLS connection that sends what HTTP/2 writes a turn at a time.
//!
//! HTTP/2 flushes its connection behind every frame. Done as told, each frame is a TLS record and a system call of its
//! own, although a turn of the connection's task writes all frames that wait: an answer and its end, or an event for
//! each of a hundred watches. So a flush only promises: the task has itself woken once more, and what was written is
//! sent when it reads again, behind whatever else was ready meanwhile. Much is sent at once, without waiting.

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
use super::farewell::Farewell;
use super::inbound::{Asked, Inbound};
use super::outlet::Outlet;
use crate::limits;

/// Bytes of a full TLS record (RFC 8446, section 5.1).
const RECORD: usize = 16_384;

/// Buffers of one write that are looked at; HTTP/2 writes two.
const SLICES: usize = 8;

/// An accepted TLS connection.
pub struct Gathered {
    tls: TlsStream<TcpStream>,
    /// How it ends, if HTTP/2 is spoken. Only then writes are gathered: HTTP/1.1 writes whole answers already.
    http2: Option<Farewell>,
    /// How what the client sends is read, if HTTP/1.1 is spoken.
    http1: Option<Inbound>,
    /// What was written last and is less than a record.
    tail: Vec<u8>,
    /// Bytes that were encrypted and not sent.
    held: usize,
    /// Whether the connection's task will come to read again, and send first.
    promised: bool,
    outlet: Outlet,
    /// What handlers see of it.
    reads: ReadSide,
    /// When to look whether a client has hung up of which nothing is read.
    look: Option<Pin<Box<Sleep>>>,
}

impl Gathered {
    /// One of the connections of a server, whose handshake is done.
    pub fn new(mut tls: TlsStream<TcpStream>, connections: &Connections) -> Self {
        let session = tls.get_mut().1;
        let http2 = (session.alpn_protocol() == Some(b"h2")).then(|| Farewell::new(connections));
        if http2.is_some() {
            // What is held is counted here; rustls would refuse some of it.
            session.set_buffer_limit(None);
        }
        let http1 = http2.is_none().then(Inbound::new);
        let (outlet, reads) = (Outlet::default(), ReadSide::new());
        Self { tls, http2, http1, tail: Vec::new(), held: 0, promised: false, outlet, reads, look: None }
    }

    /// The TLS stream.
    pub fn tls(&self) -> &TlsStream<TcpStream> {
        &self.tls
    }

    /// What asks whether the connection takes more.
    pub fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// What its requests ask for, if HTTP/1.1 is spoken.
    pub(super) fn asked(&self) -> Option<&Asked> {
        self.http1.as_ref().map(Inbound::asked)
    }

    /// What handlers may know of it, and take over.
    pub fn client_side(&self) -> ClientSide {
        self.reads.client_side()
    }

    /// Whether HTTP/2 was agreed on.
    pub fn is_http2(&self) -> bool {
        self.http2.is_some()
    }

    /// Looks now and then whether a client has hung up while nothing is read of it: since whoever took the connection
    /// over takes nothing, the end would never be come to.
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

    /// Takes what is written: full records are encrypted, the rest waits for more.
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

    /// Writes what the client is to be told of the end of the connection, if it is time.
    fn tell(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let Some(frame) = self.http2.as_mut().and_then(|farewell| farewell.tell(cx)) else { return Ok(false) };
        if self.tail.len() + frame.len() >= RECORD {
            self.encrypt()?;
        }
        self.tail.extend_from_slice(frame);
        Ok(true)
    }

    /// Encrypts what is less than a record.
    fn encrypt(&mut self) -> io::Result<()> {
        self.held += self.tail.len();
        self.tls.get_mut().1.writer().write_all(&self.tail)?;
        self.tail.clear();
        Ok(())
    }

    /// Sends everything that was written.
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

    /// Whether the connection goes on; the error if it is to end.
    fn goes_on(&self, cx: &Context<'_>) -> io::Result<()> {
        if self.outlet.is_closing(cx) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of its answers"));
        }
        Ok(())
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        // Nobody would wake the streams that wait for room any more. They find out that there is nobody to send to.
        self.outlet.empty();
    }
}

/// What HTTP/1.1 reads.
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

impl AsyncRead for Gathered {
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
        let Some(farewell) = &mut this.http2 else { return Poll::Ready(Ok(())) };
        farewell.advance(cx);
        this.promised |= this.tell(cx)?;
        if this.promised
            && let Poll::Ready(Err(error)) = this.send(cx)
        {
            return Poll::Ready(Err(error));
        }
        let Some(farewell) = &mut this.http2 else { return Poll::Ready(Ok(())) };
        farewell.poll_read(cx, &mut this.tls, buf)
    }
}

impl AsyncWrite for Gathered {
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
        this.http2.iter_mut().for_each(|farewell| farewell.wrote(bufs, written));
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
        this.tell(cx)?;
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
            (Some(farewell), _) => farewell.poll_closed(cx, &mut this.tls).map(Ok),
            (None, Some(inbound)) => inbound.poll_closed(cx, &mut this.tls).map(Ok),
            (None, None) => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
#[path = "gathered_tests.rs"]
mod tests;
