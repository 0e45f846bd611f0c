//! Forwards bytes in both directions, and merges streams.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, ReadHalf};

use super::ClientBytes;
use crate::limits;
use crate::tasks::{self, Task};

/// The bytes that a peer sends to a client. Meanwhile, the client's bytes are forwarded to the peer. The stream ends
/// when either side ends, and the connection to the peer closes with it.
pub struct Duplex<P> {
    peer: ReadHalf<P>,
    buffer: Box<[u8]>,
    forward: Task,
}

impl<P: AsyncRead + AsyncWrite + 'static> Duplex<P> {
    /// Starts forwarding.
    pub fn new(mut client: ClientBytes, peer: P) -> Self {
        let (read, mut write) = tokio::io::split(peer);
        let forward = tasks::owned("forwarding", async move {
            while let Some(bytes) = client.next().await {
                if write.write_all(&bytes).await.is_err() || write.flush().await.is_err() {
                    return;
                }
            }
        });
        Self { peer: read, buffer: vec![0; limits::STREAM_CHUNK_BYTES].into_boxed_slice(), forward }
    }
}

impl<P: AsyncRead + AsyncWrite> Stream for Duplex<P> {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { peer, buffer, forward } = &mut *self;
        let mut read = ReadBuf::new(buffer);
        match Pin::new(peer).poll_read(cx, &mut read) {
            Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                return Poll::Ready(Some(Ok(BytesMut::from(read.filled()).freeze())));
            }
            // A failure ends the stream like a close; the client's connection is closed in both cases.
            Poll::Ready(_) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        Pin::new(forward).poll(cx).map(|_| None)
    }
}

/// The items of two streams in the order of their arrival, until either stream ends.
pub struct Merged<A, B>(pub A, pub B);

impl<T, A: Stream<Item = T> + Unpin, B: Stream<Item = T> + Unpin> Stream for Merged<A, B> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match Pin::new(&mut self.0).poll_next(cx) {
            Poll::Pending => Pin::new(&mut self.1).poll_next(cx),
            ready => ready,
        }
    }
}
