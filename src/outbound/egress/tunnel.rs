//! A connection through a konnectivity server: a gRPC call whose messages contain the bytes of the connection.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{CONTENT_TYPE, TE};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::packet::{CloseDial, CloseRequest, Data, DialRequest, Packet, PacketType, Payload};
use crate::limits;
use crate::outbound::transport::Duplex;
use crate::outbound::{Error, grpc};
use crate::tasks;

/// The URL of the call.
const CALL: &str = "http://localhost/ProxyService/Proxy";

/// Opens a connection to an address through the konnectivity server at the other end of a stream.
///
/// # Errors
/// The server does not speak this protocol, or cannot reach the address.
pub(super) async fn open(stream: Box<dyn Duplex>, address: &str) -> Result<Box<dyn Duplex>, Error> {
    let failed = |why: &dyn std::fmt::Display| Error::Dial(format!("the call of the proxy failed: {why}"));
    let over = CancellationToken::new();
    let stream = Cut { io: stream, over: Box::pin(over.clone().cancelled_owned()) };
    let handshake = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::OUTBOUND_PING_INTERVAL)
        .keep_alive_timeout(limits::OUTBOUND_PING_TIMEOUT)
        .max_header_list_size(limits::OUTBOUND_HEAD_BYTES as u32)
        .handshake(TokioIo::new(stream));
    let (mut client, connection) = handshake.await.map_err(|error| failed(&error))?;
    tasks::detached("proxy", async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a proxy failed");
        }
    });
    let (up, mut waiting) = mpsc::channel::<Bytes>(limits::EGRESS_PACKETS);
    let random = rand::random::<i64>() & i64::MAX;
    let dial = DialRequest { protocol: "tcp".to_owned(), address: address.to_owned(), random };
    up.send(Packet::framed(PacketType::DialRequest, Payload::DialRequest(dial)))
        .await
        .map_err(|error| failed(&error))?;
    let frames = stream::poll_fn(move |cx| match waiting.poll_recv(cx) {
        Poll::Ready(next) => Poll::Ready(next.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)))),
        Poll::Pending => Poll::Pending,
    });
    let request = Request::post(CALL).header(CONTENT_TYPE, "application/grpc").header(TE, "trailers");
    let request = request.body(StreamBody::new(frames)).map_err(|error| failed(&error))?;
    let answer = client.send_request(request).await.map_err(|error| failed(&error))?;
    if answer.status() != StatusCode::OK {
        return Err(failed(&answer.status()));
    }
    let mut packets = Packets { body: answer.into_body(), received: BytesMut::new() };
    let connection = dialled(&mut packets, random).await?;
    let (near, far) = tokio::io::duplex(2 * limits::EGRESS_DATA_BYTES);
    let gone = CancellationToken::new();
    let carried = Carried { up, packets, connection, gone: gone.clone() };
    tasks::detached("tunnel", async move {
        carry(far, carried).await;
        drop(over.drop_guard());
    });
    Ok(Box::new(Near { io: near, _gone: gone.drop_guard() }))
}

/// The connection to the proxy. Reading fails once the tunnel is over: every task of the connection then ends, whatever
/// it waits for.
struct Cut {
    io: Box<dyn Duplex>,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl AsyncRead for Cut {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Cut {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// This server's side of the tunnel. Dropping it ends the tunnel.
struct Near {
    io: DuplexStream,
    _gone: DropGuard,
}

impl AsyncRead for Near {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Near {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Waits for the answer to the request for a connection. Returns the id of the connection.
async fn dialled(packets: &mut Packets, random: i64) -> Result<i64, Error> {
    while let Some(packet) = packets.next().await? {
        match packet.payload {
            Some(Payload::DialResponse(answer)) if answer.random == random => {
                return if answer.error.is_empty() { Ok(answer.connection) } else { Err(Error::Dial(answer.error)) };
            }
            Some(Payload::CloseDial(CloseDial { random: closed })) if closed == random => break,
            _ => {}
        }
    }
    Err(Error::Dial("dial closed".to_owned()))
}

/// The messages of the proxy.
struct Packets {
    body: Incoming,
    received: BytesMut,
}

impl Packets {
    /// Returns the next message. `None` at the end of the call.
    async fn next(&mut self) -> Result<Option<Packet>, Error> {
        let failed = |why: &dyn std::fmt::Display| Error::Dial(format!("the call of the proxy failed: {why}"));
        loop {
            if let Some(packet) =
                grpc::take(&mut self.received, limits::EGRESS_PACKET_BYTES).map_err(|error| failed(&error))?
            {
                return Ok(Some(packet));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(failed(&error)),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.received.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }
}

/// The proxy's side of a tunnel.
struct Carried {
    up: mpsc::Sender<Bytes>,
    packets: Packets,
    connection: i64,
    /// Cancelled when this server's side is dropped.
    gone: CancellationToken,
}

/// Carries the bytes of a connection until one side closes it.
async fn carry(far: DuplexStream, carried: Carried) {
    let Carried { up, mut packets, connection, gone } = carried;
    let (mut reader, mut writer) = tokio::io::split(far);
    let mut receiving = std::pin::pin!(receive(&mut packets, &mut writer));
    tokio::select! {
        () = &mut receiving => return,
        () = send(&mut reader, &up, connection) => {}
        () = gone.cancelled() => {}
    }
    // The proxy answers once it has closed the connection; bytes may arrive before that.
    let closing = async {
        let close = Packet::framed(PacketType::CloseRequest, Payload::CloseRequest(CloseRequest { connection }));
        if up.send(close).await.is_ok() {
            receiving.await;
        }
    };
    let _ = tokio::time::timeout(limits::CLOSE_TIMEOUT, closing).await;
}

/// Sends the bytes that this server writes, until it closes the connection.
async fn send(reader: &mut ReadHalf<DuplexStream>, up: &mpsc::Sender<Bytes>, connection: i64) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(limits::EGRESS_DATA_BYTES);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let data = Data { connection, error: String::new(), data: buffer.split().freeze() };
                if up.send(Packet::framed(PacketType::Data, Payload::Data(data))).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Passes on the bytes that arrive, until the other side closes the connection.
async fn receive(packets: &mut Packets, writer: &mut WriteHalf<DuplexStream>) {
    while let Ok(Some(packet)) = packets.next().await {
        let data = match packet.payload {
            Some(Payload::Data(Data { data, .. })) => data,
            Some(Payload::CloseResponse(_)) => break,
            _ => continue,
        };
        if writer.write_all(&data).await.is_err() {
            return;
        }
    }
    // This server reads the rest, and then the end.
    let _ = writer.shutdown().await;
}
