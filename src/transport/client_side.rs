//! The part of a client's connection that handlers can use.
//!
//! A handler can upgrade a connection of HTTP/1.1 to another protocol. From then on, the connection keeps the bytes
//! that it reads for the handler, and HTTP reads none. The handler sends bytes as the body of the answer, which has no
//! end.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

use crate::limits;

/// A client's connection, as handlers see it. Clones refer to the same connection.
#[derive(Debug, Clone)]
pub struct ClientSide {
    taken: Rc<RefCell<TakenBytes>>,
    gone: watch::Receiver<bool>,
}

/// The reading side of a connection.
#[derive(Debug)]
pub(super) struct ReadSide {
    taken: Rc<RefCell<TakenBytes>>,
    gone: watch::Sender<bool>,
}

/// The bytes read since a handler took over the connection.
#[derive(Debug, Default)]
struct TakenBytes {
    is_taken: bool,
    has_ended: bool,
    bytes: BytesMut,
    /// Woken when there are bytes.
    reader: Option<Waker>,
    /// Woken when there is space.
    filler: Option<Waker>,
}

impl TakenBytes {
    fn end(&mut self) {
        self.has_ended = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl ClientSide {
    /// Takes over the connection. Returns the bytes that it reads from now on.
    pub fn take_over(&self) -> RawBytes {
        self.taken.borrow_mut().is_taken = true;
        RawBytes(Rc::clone(&self.taken))
    }

    /// Waits until the client sends no more: its connection is closed or has failed.
    pub async fn gone(mut self) {
        // An error means that the connection was dropped, which is also an end.
        let _ = self.gone.wait_for(|gone| *gone).await;
    }
}

/// The bytes of a connection that was taken over. They end with the connection.
#[derive(Debug)]
pub struct RawBytes(Rc<RefCell<TakenBytes>>);

impl Stream for RawBytes {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut taken = self.0.borrow_mut();
        if taken.bytes.is_empty() {
            if taken.has_ended {
                return Poll::Ready(None);
            }
            taken.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let bytes = taken.bytes.split().freeze();
        if let Some(filler) = taken.filler.take() {
            filler.wake();
        }
        Poll::Ready(Some(bytes))
    }
}

impl ReadSide {
    pub(super) fn new() -> Self {
        Self { taken: Rc::default(), gone: watch::Sender::new(false) }
    }

    /// Returns the handlers' view of the connection.
    pub(super) fn client_side(&self) -> ClientSide {
        ClientSide { taken: Rc::clone(&self.taken), gone: self.gone.subscribe() }
    }

    /// Returns whether a handler has taken over the connection.
    pub(super) fn is_taken_over(&self) -> bool {
        self.taken.borrow().is_taken
    }

    /// Returns whether the buffer is full, so that nothing is read until the handler has taken some bytes.
    pub(super) fn is_full(&self) -> bool {
        let taken = self.taken.borrow();
        taken.is_taken && !taken.has_ended && taken.bytes.len() >= limits::TAKEN_OVER_BYTES
    }

    /// Notes that the client has disconnected, even if some of its bytes were not read.
    pub(super) fn end(&self) {
        self.taken.borrow_mut().end();
        self.gone.send_replace(true);
    }

    /// Reads for HTTP. After a takeover, HTTP gets no more bytes.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        mut io: impl AsyncRead + Unpin,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        if !self.taken.borrow().is_taken {
            let read = ready!(Pin::new(&mut io).poll_read(cx, buf));
            if read.is_err() || (buf.filled().len() == before && buf.remaining() > 0) {
                self.gone.send_replace(true);
            }
            return Poll::Ready(read);
        }
        loop {
            {
                let mut taken = self.taken.borrow_mut();
                if taken.has_ended {
                    return Poll::Pending;
                }
                if taken.bytes.len() >= limits::TAKEN_OVER_BYTES {
                    taken.filler = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
            let read = ready!(Pin::new(&mut io).poll_read(cx, buf));
            let mut taken = self.taken.borrow_mut();
            let filled = &buf.filled()[before..];
            if read.is_err() || filled.is_empty() {
                taken.end();
                self.gone.send_replace(true);
                return Poll::Pending;
            }
            taken.bytes.extend_from_slice(filled);
            if let Some(reader) = taken.reader.take() {
                reader.wake();
            }
            buf.set_filled(before);
        }
    }
}

impl Drop for ReadSide {
    fn drop(&mut self) {
        self.taken.borrow_mut().end();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    struct Reading(ReadSide, DuplexStream);

    impl AsyncRead for Reading {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
            let Self(side, io) = self.get_mut();
            side.poll_read(cx, io, buf)
        }
    }

    #[tokio::test]
    async fn bytes_after_a_takeover_go_to_the_handler() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut reading = Reading(ReadSide::new(), near);
        let side = reading.0.client_side();
        far.write_all(b"http").await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(reading.read(&mut buffer).await.unwrap(), 4);
        let mut raw = side.take_over();
        far.write_all(b"spdy").await.unwrap();
        assert!(reading.read(&mut buffer).now_or_never().is_none());
        assert_eq!(raw.next().await.unwrap(), "spdy");
        assert!(raw.next().now_or_never().is_none() && side.clone().gone().now_or_never().is_none());
        drop(far);
        assert!(reading.read(&mut buffer).now_or_never().is_none());
        assert_eq!(raw.next().await, None);
        side.gone().await;
    }

    #[tokio::test]
    async fn the_buffer_of_a_takeover_is_bounded() {
        let (mut far, near) = tokio::io::duplex(16 * limits::TAKEN_OVER_BYTES);
        let mut reading = Reading(ReadSide::new(), near);
        let mut raw = reading.0.client_side().take_over();
        far.write_all(&vec![1; 10 * limits::TAKEN_OVER_BYTES]).await.unwrap();
        let mut buffer = [0; 1024];
        assert!(reading.read(&mut buffer).now_or_never().is_none());
        assert!(raw.next().await.unwrap().len() < limits::TAKEN_OVER_BYTES + buffer.len());
        drop(reading);
        assert_eq!(raw.next().await, None, "the connection has ended");
    }
}
