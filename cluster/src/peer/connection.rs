//! One connection, run by the task that reads and writes it.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::frame::{Frame, FrameKind, FrameReader, hello_frame, plain, put_frame, read_hello, stamped};
use super::outbox::{Outbox, Outgoing};
use super::{Hello, Lane};
use crate::clock::HybridClock;
use crate::limits::{
    PEER_CHECK_INTERVAL, PEER_DEAD_AFTER, PEER_INTERRUPTION_MIN, PEER_KEEPALIVE_INTERVAL, PEER_READ_BYTES,
    PEER_WRITE_BYTES,
};

/// One end of a connection: the one that calls, or the one that answers.
pub(super) trait End {
    /// Handles a frame that was received.
    ///
    /// # Errors
    /// Fails when the connection must be closed.
    fn received(&mut self, frame: Frame) -> io::Result<()>;

    /// Called when a frame is about to be sent. Returns whether it must still be sent.
    ///
    /// # Errors
    /// Fails when the connection must be closed.
    fn sends(&mut self, outgoing: &Outgoing) -> io::Result<bool>;

    /// Called when a control connection has received something after a silence so long that the link may have been
    /// interrupted.
    fn resumed(&mut self) {}
}

/// A connection whose ends do not know each other yet.
pub(super) struct Connection<S> {
    stream: S,
    reader: FrameReader,
    out: BytesMut,
    flushed: bool,
    hello: watch::Receiver<Hello>,
    clock: HybridClock,
    lane: Lane,
    last_received: Instant,
    sent: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn new(stream: S, hello: watch::Receiver<Hello>, clock: HybridClock) -> Self {
        let now = Instant::now();
        let (reader, out, lane) = (FrameReader::default(), BytesMut::new(), Lane::Control);
        Self { stream, reader, out, flushed: true, hello, clock, lane, last_received: now, sent: now }
    }

    /// Sends the hello of this replica. The replica that made the connection states the lane in it.
    pub(super) async fn say_hello(&mut self, lane: Lane) -> io::Result<()> {
        self.lane = lane;
        self.put_hello();
        self.stream.write_all_buf(&mut self.out).await?;
        self.stream.flush().await
    }

    /// Waits for the hello of the other end.
    pub(super) async fn hear_hello(&mut self) -> io::Result<(Hello, Lane)> {
        loop {
            if let Some(frame) = self.reader.next()? {
                return match frame.kind() {
                    FrameKind::Hello => read_hello(frame.payload),
                    _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the first frame is no hello")),
                };
            }
            if self.stream.read_buf(self.reader.room()).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Receives and sends until the connection breaks. Returns the reason.
    pub(super) async fn run(mut self, outbox: &Arc<Outbox>, end: &mut impl End) -> io::Error {
        self.last_received = Instant::now();
        let mut check = pin!(tokio::time::sleep(PEER_KEEPALIVE_INTERVAL.min(PEER_CHECK_INTERVAL)));
        let ended = poll_fn(|task| {
            outbox.attend(task)?;
            loop {
                ready!(self.poll_once(task, outbox, end, check.as_mut()))?;
            }
        });
        let ended: io::Result<()> = ended.await;
        ended.err().unwrap_or_else(|| io::ErrorKind::Other.into())
    }

    /// Does the work that can be done now. Returns `Pending` when nothing more can be done.
    fn poll_once(
        &mut self,
        task: &mut Context<'_>,
        outbox: &Outbox,
        end: &mut impl End,
        mut check: Pin<&mut Sleep>,
    ) -> Poll<io::Result<()>> {
        // Received data is handled before the timer, so that a peer is not considered dead because this side was late.
        let received = self.poll_receive(task, end)?;
        if check.as_mut().poll(task).is_ready() {
            let late = check.deadline().elapsed();
            check.as_mut().reset(self.look_after(outbox, late)?);
            return Poll::Ready(Ok(()));
        }
        let sent = self.poll_send(task, outbox, end)?;
        match received.is_ready() || sent.is_ready() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    fn poll_receive(&mut self, task: &mut Context<'_>, end: &mut impl End) -> Poll<io::Result<()>> {
        let read = pin!(self.stream.read_buf(self.reader.room())).poll(task);
        if ready!(read)? == 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the peer closed the connection")));
        }
        let before = std::mem::replace(&mut self.last_received, Instant::now());
        if self.lane == Lane::Control && self.last_received >= before + PEER_INTERRUPTION_MIN {
            end.resumed();
        }
        while let Some(frame) = self.reader.next()? {
            end.received(frame)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends frames that wait. Returns `Pending` when none is left or the socket takes no more.
    fn poll_send(&mut self, task: &mut Context<'_>, outbox: &Outbox, end: &mut impl End) -> Poll<io::Result<()>> {
        if self.out.is_empty() {
            self.fill(outbox, end)?;
        }
        if self.out.is_empty() {
            if !self.flushed {
                ready!(Pin::new(&mut self.stream).poll_flush(task))?;
                self.flushed = true;
            }
            return Poll::Pending;
        }
        self.flushed = false;
        let written = ready!(Pin::new(&mut self.stream).poll_write(task, &self.out))?;
        self.out.advance(written);
        self.sent = Instant::now();
        Poll::Ready(Ok(()))
    }

    /// Takes frames that wait, as many as one write should send.
    fn fill(&mut self, outbox: &Outbox, end: &mut impl End) -> io::Result<()> {
        if self.out.capacity() > 2 * PEER_WRITE_BYTES {
            self.out = BytesMut::new(); // the memory of one large frame must not be kept for ever
        }
        self.out.reserve(PEER_READ_BYTES / 8);
        let mut reading = None; // read only after the first of these frames was queued
        while self.out.len() < PEER_WRITE_BYTES {
            let Some(outgoing) = outbox.pop() else { return Ok(()) };
            if !end.sends(&outgoing)? {
                continue;
            }
            if self.hello.has_changed().unwrap_or(false) {
                self.put_hello();
            }
            let reading = *reading.get_or_insert_with(|| self.clock.reading());
            put_frame(&stamped(outgoing.frame, reading), &mut self.out);
        }
        Ok(())
    }

    fn put_hello(&mut self) {
        let hello = hello_frame(&self.hello.borrow_and_update(), self.lane);
        put_frame(&stamped(hello, self.clock.reading()), &mut self.out);
    }

    /// Does periodic work, which was due `late` ago. Returns when it is due again.
    fn look_after(&mut self, outbox: &Outbox, late: Duration) -> io::Result<Instant> {
        if self.hello.has_changed().unwrap_or(false) {
            self.put_hello();
        }
        let now = Instant::now();
        if self.lane != Lane::Control {
            return Ok(now + PEER_CHECK_INTERVAL);
        }
        if late > PEER_KEEPALIVE_INTERVAL {
            // This side stood still, perhaps with the whole machine: that it received nothing meanwhile proves nothing.
            self.last_received = now.min(self.last_received + late);
        }
        if now >= self.last_received + PEER_DEAD_AFTER {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer is silent"));
        }
        if now >= self.sent + PEER_KEEPALIVE_INTERVAL {
            outbox.push(plain(FrameKind::Beat));
            self.sent = now;
        }
        Ok((self.sent + PEER_KEEPALIVE_INTERVAL).min(self.last_received + PEER_DEAD_AFTER))
    }
}
