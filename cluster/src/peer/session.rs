//! The calls of one connection, from before it is made until it breaks.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connected_members::ControlConnection;
use super::connection::End;
use super::frame::{Frame, FrameKind, plain, read_hello};
use super::link::Lanes;
use super::outbox::{Outbox, Outgoing};
use super::timing::Timing;
use super::wire::Connected;
use super::{Hello, Lane, PeerError};
use crate::limits::{
    PEER_BYTES_PER_SECOND_MIN, PEER_CALL_BYTES_MAX, PEER_CALLS_MAX, PEER_IDENTITY_AGE, PEER_PINGS_MAX,
};

type CallResult = Result<Bytes, PeerError>;

/// The calls of one connection.
#[derive(Default)]
pub(super) struct Session {
    pub(super) outbox: Arc<Outbox>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    waiting: BTreeMap<u64, WaitingCall>,
    bytes: usize,
    last_id: u64,
    peer: Option<Hello>,
    ended: Option<PeerError>,
}

struct WaitingCall {
    answer: oneshot::Sender<CallResult>,
    bytes: usize,
}

impl Session {
    /// Queues a call.
    pub(super) fn begin(
        self: &Arc<Self>,
        member: Option<u64>,
        kind: FrameKind,
        method: u32,
        payload: Bytes,
    ) -> Result<QueuedCall, PeerError> {
        let (answer, result) = oneshot::channel();
        let bytes = payload.len();
        // A ping that checks whether the connection is stuck must be queued even if the connection is stuck and its
        // queue is full.
        let calls_max = PEER_CALLS_MAX + if kind == FrameKind::Ping { PEER_PINGS_MAX } else { 0 };
        let (id, ahead) = {
            let mut calls = self.calls.lock();
            if let Some(error) = &calls.ended {
                return Err(error.clone());
            }
            if calls.waiting.len() >= calls_max || calls.bytes + bytes > PEER_CALL_BYTES_MAX {
                return Err(PeerError::QueueFull);
            }
            calls.bytes += bytes;
            calls.last_id += 1;
            let id = calls.last_id;
            calls.waiting.insert(id, WaitingCall { answer, bytes });
            (id, calls.bytes)
        };
        let call = QueuedCall { session: Arc::clone(self), id, result, ahead };
        let frame = Frame { id, method, payload, ..plain(kind) };
        match self.outbox.push_within(Outgoing { frame, member }, calls_max, PEER_CALL_BYTES_MAX) {
            Ok(()) => Ok(call),
            Err(_) => Err(PeerError::QueueFull),
        }
    }

    /// Returns the hello of the other end; `None` until it is known.
    pub(super) fn peer(&self) -> Option<Hello> {
        self.calls.lock().peer.clone()
    }

    pub(super) fn set_peer(&self, hello: Hello) {
        self.calls.lock().peer = Some(hello);
    }

    /// Fails all calls, and all further ones.
    pub(super) fn end(&self, error: PeerError) {
        let waiting = {
            let mut calls = self.calls.lock();
            calls.ended.get_or_insert_with(|| error.clone());
            calls.bytes = 0;
            std::mem::take(&mut calls.waiting)
        };
        self.outbox.close("its calls are given up");
        for (_, call) in waiting {
            let _ = call.answer.send(Err(error.clone())); // fails if the caller stopped waiting
        }
    }

    fn finish(&self, id: u64, answer: CallResult) {
        if let Some(call) = self.remove(id) {
            let _ = call.answer.send(answer); // fails if the caller stopped waiting
        }
    }

    fn remove(&self, id: u64) -> Option<WaitingCall> {
        let mut calls = self.calls.lock();
        let call = calls.waiting.remove(&id)?;
        calls.bytes -= call.bytes;
        Some(call)
    }
}

/// A call that was queued. When it is dropped, its answer is ignored.
pub(super) struct QueuedCall {
    pub(super) session: Arc<Session>,
    id: u64,
    result: oneshot::Receiver<CallResult>,
    /// Bytes of the unanswered calls up to this one when it was queued.
    ahead: usize,
}

impl QueuedCall {
    /// Waits for the answer until a time, extended by the time that sending the calls before it may take.
    pub(super) async fn answer(mut self, until: Instant) -> CallResult {
        let sending = Duration::from_secs(1).mul_f64(self.ahead as f64 / PEER_BYTES_PER_SECOND_MIN as f64);
        match tokio::time::timeout_at(until + sending, &mut self.result).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(PeerError::Closed),
            Err(_) => Err(PeerError::Timeout),
        }
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        drop(self.session.remove(self.id));
    }
}

/// The end of a connection that calls.
pub(super) struct Caller {
    session: Arc<Session>,
    control_connection: Option<ControlConnection>,
    timing: Timing,
    /// The other connections to the same address; only on a control connection.
    lanes: Option<Lanes>,
    since: Instant,
    member: u64,
    /// The name of the member, which does not change.
    name: String,
}

impl Caller {
    pub(super) fn new(
        session: Arc<Session>,
        control_connection: Option<ControlConnection>,
        timing: Timing,
        peer: &Hello,
    ) -> Self {
        let (since, member, name) = (Instant::now(), peer.member, peer.name.clone());
        Self { session, control_connection, timing, lanes: None, since, member, name }
    }

    /// Returns the caller, which also looks after the other connections to the same address.
    pub(super) fn looking_after(mut self, lanes: Lanes) -> Self {
        self.lanes = Some(lanes);
        self
    }

    fn learned(&mut self, hello: Hello) {
        self.member = hello.member;
        if let Some(control_connection) = &mut self.control_connection {
            control_connection.changed(&hello);
        }
        self.timing.changed(&hello);
        self.session.set_peer(hello);
    }
}

impl End for Caller {
    fn received(&mut self, frame: Frame) -> io::Result<()> {
        self.control_connection.iter().for_each(ControlConnection::note_received);
        self.timing.receive(&frame);
        match frame.kind() {
            FrameKind::Answer => self.session.finish(frame.id, Ok(frame.payload)),
            FrameKind::Refusal => {
                let why = String::from_utf8_lossy(&frame.payload).into_owned();
                self.session.finish(frame.id, Err(PeerError::Refused(why)));
            }
            FrameKind::Hello => {
                let (hello, lane): (Hello, Lane) = read_hello(frame.payload)?;
                Connected::check(Some(&self.name), &hello)?;
                tracing::debug!(member = hello.member, name = hello.name, ?lane, "a peer sent a new hello");
                self.learned(hello);
            }
            FrameKind::Beat => {}
            FrameKind::Request | FrameKind::Ping => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a request on a connection for answers"));
            }
        }
        Ok(())
    }

    fn sends(&mut self, outgoing: &Outgoing) -> io::Result<bool> {
        if !matches!(outgoing.frame.kind(), FrameKind::Request | FrameKind::Ping) {
            return Ok(true);
        }
        if outgoing.member.is_none_or(|member| member == self.member) {
            return Ok(self.session.calls.lock().waiting.contains_key(&outgoing.frame.id));
        }
        self.session.finish(outgoing.frame.id, Err(PeerError::Identity { found: self.member }));
        match self.since.elapsed() < PEER_IDENTITY_AGE {
            true => Ok(false),
            false => Err(io::Error::other(PeerError::Identity { found: self.member })),
        }
    }

    fn resumed(&mut self) {
        self.lanes.iter().for_each(Lanes::renew_stuck);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_limit_of_a_call_grows_with_the_bytes_queued_before_it() {
        let (session, second) = (Arc::<Session>::default(), Duration::from_secs(1));
        let until = Instant::now() + second / 2;
        let call = || {
            let payload = Bytes::from(vec![0; PEER_BYTES_PER_SECOND_MIN]);
            session.begin(None, FrameKind::Request, 1, payload).expect("a call")
        };
        let (first, next) = (call(), call());
        session.finish(first.id, Ok(Bytes::new()));
        tokio::time::advance(second).await;
        assert_eq!(first.answer(until).await, Ok(Bytes::new()));
        assert_eq!(next.answer(until).await, Err(PeerError::Timeout));
        assert_eq!(Instant::now(), until + 2 * second);
    }
}
