//! Closes an HTTP/2 connection when the server stops, or asks its client to connect anew.
//!
//! The client gets a GOAWAY frame: it opens no more streams and finishes the open ones (RFC 9113, section 6.8). The
//! HTTP server cannot send that frame by itself, so it is inserted between frames that the server writes. Requests
//! already on their way are still answered. After a moment, the server reads the same frame as if the client had sent
//! it. It then closes the connection once no stream is open, and states the last stream that it processed.

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

/// The stage of closing.
enum CloseStage {
    /// The server keeps the connection.
    Staying(Pin<Box<OwnedNotified>>, Option<Waker>),
    /// The GOAWAY frame follows the frame that is being written.
    SendingGoAway,
    /// The client has got the frame; its earlier requests may still arrive.
    AfterGoAway(Pin<Box<Sleep>>),
    /// The server reads the rest of these bytes, after the frame that it is reading.
    Closing(&'static [u8]),
    /// All bytes were written. The client closes the connection before this deadline.
    Closed(Pin<Box<Sleep>>),
}

/// Follows one connection from its first byte.
pub(super) struct GracefulClose {
    connection: Open,
    stage: CloseStage,
    written: Frames,
    read: Frames,
}

impl GracefulClose {
    pub(super) fn new(connections: &Connections) -> Self {
        let connection = connections.open();
        let stage = CloseStage::Staying(Box::pin(connection.left()), None);
        Self { connection, stage, written: Frames::of_server(), read: Frames::of_client() }
    }

    /// Advances the stage if that is due. Otherwise, arranges that this task is woken when it is due. `is_leaving` says
    /// that the connection closes although the server goes on.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, is_leaving: bool) {
        match &mut self.stage {
            CloseStage::Staying(left, waits) => {
                // Comparing wakers is cheaper than polling again.
                if !waits.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    let _ = left.as_mut().poll(cx);
                    *waits = Some(cx.waker().clone());
                }
                if is_leaving || self.connection.is_left() {
                    self.stage = CloseStage::SendingGoAway;
                }
            }
            CloseStage::AfterGoAway(alarm) => {
                if alarm.as_mut().poll(cx).is_ready() {
                    self.stage = CloseStage::Closing(&GO_AWAY);
                }
            }
            CloseStage::SendingGoAway | CloseStage::Closing(_) | CloseStage::Closed(_) => {}
        }
    }

    /// Notes that the server has written this many bytes of these buffers.
    pub(super) fn wrote(&mut self, bufs: &[IoSlice<'_>], mut written: usize) {
        for buf in bufs {
            let taken = buf.len().min(written);
            self.written.follow(&buf[..taken]);
            written -= taken;
        }
    }

    /// Returns the bytes to insert before the next byte that the server writes. Returns `None` if there are none.
    pub(super) fn go_away(&mut self, cx: &mut Context<'_>) -> Option<&'static [u8]> {
        if !matches!(self.stage, CloseStage::SendingGoAway) || !self.written.is_between() {
            return None;
        }
        self.stage = CloseStage::AfterGoAway(Box::pin(sleep(limits::SETTLE_TIME)));
        self.advance(cx, true);
        Some(&GO_AWAY)
    }

    /// Reads for the server: the client's bytes, or the frame that makes the server close.
    pub(super) fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut T,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let CloseStage::Closing(rest) = &mut self.stage
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

    /// Waits, after all bytes were written, until the client has closed the connection too. If the server closed it
    /// while the client still sends, the client could lose bytes that it has not received yet.
    pub(super) fn poll_closed<T: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, stream: &mut T) -> Poll<()> {
        match &self.stage {
            CloseStage::Staying(..) => return Poll::Ready(()),
            CloseStage::Closed(_) => {}
            _ => self.stage = CloseStage::Closed(Box::pin(sleep(limits::CLOSE_TIMEOUT))),
        }
        let CloseStage::Closed(alarm) = &mut self.stage else { return Poll::Ready(()) };
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
