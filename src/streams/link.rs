//! A SPDY connection to a node, split into a reading and a writing half.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::spdy::{self, Received};
use crate::limits;

/// The reading half.
pub struct Reading<P> {
    io: ReadHalf<P>,
    buffer: BytesMut,
}

/// The writing half. It also sends pings, which keep the node from closing an idle connection.
pub struct Writing<P> {
    io: WriteHalf<P>,
    frames: mpsc::Receiver<Bytes>,
}

/// Sends frames to the writing half.
pub type Frames = mpsc::Sender<Bytes>;

/// Splits a connection into its two halves.
pub fn split<P: AsyncRead + AsyncWrite>(peer: P) -> (Reading<P>, Writing<P>, Frames) {
    let (read, write) = tokio::io::split(peer);
    let (sender, frames) = mpsc::channel(limits::STREAM_FRAMES);
    (Reading { io: read, buffer: BytesMut::new() }, Writing { io: write, frames }, sender)
}

impl<P: AsyncRead + AsyncWrite> Reading<P> {
    /// Returns the next frame. Returns `None` when the connection ends or the bytes are not a frame.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            if let Some(frame) = spdy::take(&mut self.buffer).ok()? {
                return Some(frame);
            }
            self.buffer.reserve(limits::STREAM_CHUNK_BYTES);
            if self.io.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}

impl<P: AsyncRead + AsyncWrite> Writing<P> {
    /// Writes frames until the connection fails or all senders are dropped.
    pub async fn run(mut self) {
        let mut number = 1;
        let mut pings = tokio::time::interval(limits::SPDY_PING_INTERVAL.max(Duration::from_millis(1)));
        pings.tick().await;
        loop {
            let frame = tokio::select! {
                frame = self.frames.recv() => match frame {
                    Some(frame) => frame,
                    None => return,
                },
                _ = pings.tick() => {
                    number += 2;
                    spdy::ping(number)
                }
            };
            if self.io.write_all(&frame).await.is_err() || self.io.flush().await.is_err() {
                return;
            }
        }
    }
}
