//! How a connection that speaks HTTP/2 ends when the server leaves it.
//!
//! Its client is told to begin no more streams there, and finishes those that are open (RFC 9113, section 6.8). The
//! HTTP server has no word for that, so the frame that says it is put between those that it writes. Requests may be on
//! their way then, and are answered. A moment later the server is given the same frame to read, as if its client was to
//! leave, too: so it closes the connection when no stream is open any more, and tells which was the last that it saw.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Sleep, sleep};

use super::connections::{Connections, Open};
use super::frames::{Frames, GO_AWAY};
use crate::limits;

/// How far it is.
enum Stage {
    /// The server stays.
    Staying(Pin<Box<OwnedNotified>>, Option<Waker>),
    /// The client is told behind the frame that is being written.
    Telling,
    /// The client has been told; what it sent before is on its way.
    Settling(Pin<Box<Sleep>>),
    /// The server reads the rest of this, behind the frame that is being read.
    Closing(&'static [u8]),
    /// Everything was written; the client closes the connection, or this is over.
    Closed(Pin<Box<Sleep>>),
}

/// One connection, from its first byte.
pub(super) struct Farewell {
    connection: Open,
    stage: Stage,
    written: Frames,
    read: Frames,
}

impl Farewell {
    pub(super) fn new(connections: &Connections) -> Self {
        let connection = connections.open();
        let stage = Stage::Staying(Box::pin(connection.left()), None);
        Self { connection, stage, written: Frames::of_server(), read: Frames::of_client() }
    }

    /// Goes on when the time has come, and wakes this task then.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) {
        match &mut self.stage {
            Stage::Staying(left, waits) => {
                // That it will wake this task is cheaper to see than to ask it anew.
                if !waits.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    let _ = left.as_mut().poll(cx);
                    *waits = Some(cx.waker().clone());
                }
                if self.connection.is_left() {
                    self.stage = Stage::Telling;
                }
            }
            Stage::Settling(alarm) => {
                if alarm.as_mut().poll(cx).is_ready() {
                    self.stage = Stage::Closing(&GO_AWAY);
                }
            }
            Stage::Telling | Stage::Closing(_) | Stage::Closed(_) => {}
        }
    }

    /// Notes what the server has written: so many bytes of these.
    pub(super) fn wrote(&mut self, bufs: &[IoSlice<'_>], mut written: usize) {
        for buf in bufs {
            let taken = buf.len().min(written);
            self.written.follow(&buf[..taken]);
            written -= taken;
        }
    }

    /// What is to be written now, where the server would write its next byte.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>) -> Option<&'static [u8]> {
        if !matches!(self.stage, Stage::Telling) || !self.written.is_between() {
            return None;
        }
        self.stage = Stage::Settling(Box::pin(sleep(limits::SETTLE_TIME)));
        self.advance(cx);
        Some(&GO_AWAY)
    }

    /// Reads for the server: what the client sent, or what is told to the server itself.
    pub(super) fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut T,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Stage::Closing(rest) = &mut self.stage
            && !rest.is_empty()
            && (rest.len() < GO_AWAY.len() || self.read.is_between())
        {
            let (now, later) = rest.split_at(rest.len().min(buf.remaining()));
            buf.put_slice(now);
            *rest = later;
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        self.read.follow(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }

    /// Waits, when everything was written, until the client has closed the connection, too. Closing it while the client
    /// sends on would take from the client what it has not received yet.
    pub(super) fn poll_closed<T: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, stream: &mut T) -> Poll<()> {
        match &self.stage {
            Stage::Staying(..) => return Poll::Ready(()),
            Stage::Closed(_) => {}
            _ => self.stage = Stage::Closed(Box::pin(sleep(limits::FAREWELL_TIMEOUT))),
        }
        let Stage::Closed(alarm) = &mut self.stage else { return Poll::Ready(()) };
        if alarm.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let mut bytes = [0; 1_024];
            let mut buf = ReadBuf::new(&mut bytes);
            if ready!(Pin::new(&mut *stream).poll_read(cx, &mut buf)).is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}
