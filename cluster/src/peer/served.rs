//! Connections that peers made to this replica.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::connected_members::ControlConnection;
use super::connection::{Connection, End};
use super::frame::{Frame, FrameKind, plain, read_hello};
use super::greeting::{Greeting, Greetings};
use super::outbox::{Outbox, Outgoing};
use super::timing::Timing;
use super::transport::Shared;
use super::wire::{Connected, Connecting, Listener, Stream};
use super::{Hello, Lane, Refusal, Reply, Service, Side};
use crate::limits::{
    PEER_CONNECTIONS_MAX, PEER_FRAME_BYTES_MAX, PEER_FRAME_HEADER_BYTES, PEER_FRAMES_MAX, PEER_HANDSHAKE_TIMEOUT,
    PEER_REFUSAL_BYTES, PEER_REQUEST_BYTES_MAX, PEER_REQUESTS_MAX, PEER_RETRY_MIN,
};

/// Accepts connections of peers.
pub(super) async fn accept(shared: Arc<Shared>, mut listener: Box<dyn Listener>) {
    let (seats, greetings) = (Arc::new(Semaphore::new(PEER_CONNECTIONS_MAX)), Greetings::default());
    loop {
        let (connecting, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of a peer");
                sleep(PEER_RETRY_MIN).await; // most likely there are no file descriptors left
                continue;
            }
        };
        let (serving, greeting, seats) = (shared.clone(), greetings.begin(), seats.clone());
        shared.spawn(async move {
            let error = match greet(&serving, connecting, greeting).await {
                Err(error) => error,
                Ok(greeted) => match seats.try_acquire_owned() {
                    Ok(_seat) => serve(serving, greeted).await,
                    Err(_) => io::Error::other("too many connections of peers"),
                },
            };
            tracing::debug!(%from, %error, "a connection of a peer ended");
        });
    }
}

/// A connection, the peer's hello, and the lane.
type Greeted = (Connection<Box<dyn Stream>>, Hello, Lane);

/// Exchanges hellos with the peer that made a connection.
async fn greet(shared: &Shared, connecting: Connecting, mut greeting: Greeting) -> io::Result<Greeted> {
    let greet = async {
        let Connected { stream, name } = connecting.await?;
        let mut connection = Connection::new(stream, shared.hello.clone(), shared.clock.clone());
        let (hello, lane) = connection.hear_hello().await?;
        Connected::check(name.as_deref(), &hello)?;
        connection.say_hello(lane).await?;
        Ok((connection, hello, lane))
    };
    tokio::select! {
        biased;
        greeted = timeout(PEER_HANDSHAKE_TIMEOUT, greet) => match greeted {
            Ok(greeted) => greeted,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not say who it is")),
        },
        () = greeting.must_be_dropped() => Err(io::Error::other("the peer did not say who it is before many others came")),
    }
}

/// Serves one connection until it breaks. Returns the reason.
async fn serve(shared: Arc<Shared>, (connection, hello, lane): Greeted) -> io::Error {
    let is_control = lane == Lane::Control;
    let control_connection =
        is_control.then(|| ControlConnection::new(shared.connected_members.clone(), &hello, Side::There));
    shared.peer_connected.notify_waiters(); // a peer that calls can most likely be called as well
    let outbox = Arc::<Outbox>::default();
    let mut answerer = Answerer {
        outbox: outbox.clone(),
        under_way: Arc::default(),
        service: shared.service.clone(),
        timing: Timing::new(shared.clock.clone(), shared.hello.clone(), &hello),
        hello,
        control_connection,
    };
    let error = connection.run(&outbox, &mut answerer).await;
    outbox.close("the connection ended");
    error
}

/// The end of a connection that answers.
struct Answerer {
    outbox: Arc<Outbox>,
    under_way: Arc<UnderWay>,
    service: Arc<dyn Service>,
    hello: Hello,
    timing: Timing,
    control_connection: Option<ControlConnection>,
}

/// The requests that are not answered yet.
#[derive(Default)]
struct UnderWay {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

impl UnderWay {
    /// Counts a request. Returns false, without counting it, when there are too many.
    fn admit(&self, bytes: usize) -> bool {
        let requests = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes_all = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let fits = requests <= PEER_REQUESTS_MAX && bytes_all <= PEER_REQUEST_BYTES_MAX;
        if !fits {
            self.finish(bytes);
        }
        fits
    }

    fn finish(&self, bytes: usize) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Answerer {
    fn serve(&self, request: Frame) {
        let (id, bytes) = (request.id, request.payload.len());
        if !self.under_way.admit(bytes) {
            return self.outbox.push(refusal(id, "too many requests are under way"));
        }
        let (outbox, under_way) = (self.outbox.clone(), self.under_way.clone());
        let reply = Reply::new(move |answer| {
            under_way.finish(bytes);
            send(&outbox, id, answer);
        });
        self.service.serve(&self.hello, request.method, request.payload, reply);
    }
}

/// Sends an answer, or a refusal when the answer is too large or too many wait to be sent.
fn send(outbox: &Outbox, id: u64, answer: Result<Bytes, Refusal>) {
    let payload = match answer {
        Ok(payload) if payload.len() > PEER_FRAME_BYTES_MAX - PEER_FRAME_HEADER_BYTES => {
            return outbox.push(refusal(id, "the answer is too large"));
        }
        Ok(payload) => payload,
        Err(Refusal(why)) => return outbox.push(refusal(id, &why)),
    };
    let frame = Frame { id, payload, ..plain(FrameKind::Answer) };
    let outgoing = Outgoing { frame, member: None };
    if outbox.push_within(outgoing, PEER_FRAMES_MAX, PEER_REQUEST_BYTES_MAX).is_err() {
        outbox.push(refusal(id, "too many answers wait to be sent"));
    }
}

fn refusal(id: u64, why: &str) -> Frame {
    let why = &why[..why.floor_char_boundary(PEER_REFUSAL_BYTES)];
    Frame { id, payload: Bytes::copy_from_slice(why.as_bytes()), ..plain(FrameKind::Refusal) }
}

impl End for Answerer {
    fn received(&mut self, frame: Frame) -> io::Result<()> {
        self.control_connection.iter().for_each(ControlConnection::note_received);
        self.timing.receive(&frame);
        match frame.kind() {
            FrameKind::Request => self.serve(frame),
            FrameKind::Ping => self.outbox.push(Frame { id: frame.id, ..plain(FrameKind::Answer) }),
            FrameKind::Hello => {
                let (hello, _) = read_hello(frame.payload)?;
                Connected::check(Some(&self.hello.name), &hello)?;
                self.hello = hello;
                self.timing.changed(&self.hello);
                if let Some(control_connection) = &mut self.control_connection {
                    control_connection.changed(&self.hello);
                }
            }
            FrameKind::Beat => {}
            FrameKind::Answer | FrameKind::Refusal => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer on a connection for requests"));
            }
        }
        Ok(())
    }

    fn sends(&mut self, _: &Outgoing) -> io::Result<bool> {
        Ok(true)
    }
}
