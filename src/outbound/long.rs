//! Requests whose path and query are longer than the URI type allows.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::Method;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::transport::Duplex;

/// The path and query to send in place of those in the URI of a request. Callers put it into the request's extensions.
/// Such a request gets a connection of its own.
#[derive(Debug, Clone)]
pub struct LongTarget(pub String);

/// A connection that replaces the target of its first request. The caller writes `/` as the target.
pub struct Renamed {
    io: Box<dyn Duplex>,
    /// The number of written bytes that remain to drop: the method, a space, and the target.
    skipped: usize,
    /// The bytes that replace them.
    instead: Bytes,
}

impl Renamed {
    /// Replaces the target of a request with this method.
    pub fn new(io: Box<dyn Duplex>, method: &Method, LongTarget(target): LongTarget) -> Self {
        Self { io, skipped: format!("{method} /").len(), instead: format!("{method} {target}").into() }
    }
}

impl AsyncRead for Renamed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Renamed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { io, skipped, instead } = &mut *self;
        if *skipped > 0 {
            let now = buf.len().min(*skipped);
            *skipped -= now;
            return Poll::Ready(Ok(now));
        }
        while !instead.is_empty() {
            let written = ready!(Pin::new(&mut *io).poll_write(cx, instead))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            instead.advance(written);
        }
        Pin::new(io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn the_first_target_is_replaced_however_it_is_written() {
        for step in [1, 3, 100] {
            let (near, mut far) = tokio::io::duplex(7);
            let mut renamed = Renamed::new(Box::new(near), &Method::PUT, LongTarget("/long?x".into()));
            let sending = async move {
                for part in b"PUT / HTTP/1.1\r\n\r\nPUT / body".chunks(step) {
                    renamed.write_all(part).await.unwrap();
                }
            };
            let mut sent = String::new();
            let reading = far.read_to_string(&mut sent);
            let ((), read) = tokio::join!(sending, reading);
            read.unwrap();
            assert_eq!(sent, "PUT /long?x HTTP/1.1\r\n\r\nPUT / body");
        }
    }
}
