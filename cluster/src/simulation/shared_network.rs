//! The network between simulated hosts: connections that behave like TCP, over links that are slow, cut, cut in one
//! direction, or closed to new connections.
//!
//! The bytes of a connection arrive in order or not at all. Bytes that cannot pass wait, as TCP would retransmit them,
//! until the link is whole or [`PEER_TCP_TIMEOUT`] has passed, which breaks the connection for the sender. A process
//! that ends closes its connections. A host without power sends nothing; its connections break once it is back and
//! receives something on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use super::draw;
use super::time::Time;
use super::trace::Trace;
use crate::limits::PEER_TCP_TIMEOUT;

/// Bytes of one direction of a connection that may be in flight or unread.
pub(super) const WINDOW_BYTES: usize = 1 << 20;

/// The network that all hosts share.
pub(super) struct SharedNetwork {
    pub(super) state: Mutex<State>,
    pub(super) time: Time,
    trace: Trace,
}

#[derive(Default)]
pub(super) struct State {
    ports: Vec<Port>,
    /// Links over which nothing passes, each from one host to another.
    cuts: BTreeSet<(usize, usize)>,
    /// Links on which no connection is made, each from one host to another.
    closed: BTreeSet<(usize, usize)>,
    /// How much longer than the minimum a message takes at most, in milliseconds.
    jitter_ms: u64,
    pub(super) pipes: BTreeMap<u64, Pipe>,
    last_pipe: u64,
}

/// A host, as the network knows it.
#[derive(Default)]
pub(super) struct Port {
    /// The number of times that the host was started or lost its power: connections do not survive that.
    life: u64,
    is_powered: bool,
    pub(super) listening: Option<Incoming>,
}

/// Connections that wait to be accepted.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) waiting: VecDeque<(End, usize)>,
    pub(super) waker: Option<Waker>,
}

/// One end of a connection: the pipe that it reads and the one that it writes.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) reads: u64,
    pub(super) writes: u64,
}

/// One direction of a connection.
pub(super) struct Pipe {
    from: usize,
    to: usize,
    /// The life of the host that reads it.
    life: u64,
    under_way: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Whether nothing comes after the bytes in flight.
    is_finished: bool,
    pub(super) arrived: BytesMut,
    pub(super) is_at_end: bool,
    pub(super) is_broken_for_reader: bool,
    pub(super) is_broken_for_writer: bool,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    has_reader: bool,
    has_writer: bool,
}

/// The result of an attempt to connect.
pub(super) enum Dialed {
    Connected(End),
    Refused,
    /// No answer.
    Silence,
}

impl SharedNetwork {
    pub(super) fn new(hosts: usize, time: Time, trace: Trace) -> Arc<SharedNetwork> {
        let ports = (0..hosts).map(|_| Port { is_powered: true, ..Port::default() }).collect();
        let state = State { ports, jitter_ms: 2, ..State::default() };
        Arc::new(SharedNetwork { state: Mutex::new(state), time, trace })
    }

    /// Cuts or heals a link in one direction.
    pub(super) fn cut(&self, from: usize, to: usize, is_cut: bool) {
        let mut state = self.state.lock();
        match is_cut {
            true => _ = state.cuts.insert((from, to)),
            false => _ = state.cuts.remove(&(from, to)),
        }
    }

    /// Keeps hosts from making connections with each other, or lets them again.
    pub(super) fn close(&self, one: usize, other: usize, is_closed: bool) {
        let mut state = self.state.lock();
        for link in [(one, other), (other, one)] {
            match is_closed {
                true => _ = state.closed.insert(link),
                false => _ = state.closed.remove(&link),
            }
        }
    }

    /// Breaks the connections that one host has made to another, in the order in which they were made, except the first
    /// few.
    pub(super) fn break_connections(&self, from: usize, to: usize, except: usize) {
        let mut state = self.state.lock();
        let made = state.pipes.iter().filter(|(id, pipe)| is_callers(**id) && (pipe.from, pipe.to) == (from, to));
        let broken: Vec<u64> = made.map(|(id, _)| *id).skip(except).collect();
        let mut wakers = Vec::new();
        for id in broken.into_iter().flat_map(|id| [id, opposite(id)]) {
            wakers.extend(state.pipes.get_mut(&id).into_iter().flat_map(Pipe::break_off));
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn set_jitter(&self, jitter_ms: u64) {
        self.state.lock().jitter_ms = jitter_ms;
    }

    /// Takes the power from a host, or gives it back. Without power it sends nothing.
    pub(super) fn power(&self, host: usize, is_powered: bool) {
        let mut state = self.state.lock();
        let port = &mut state.ports[host];
        port.is_powered = is_powered;
        port.life += 1;
    }

    /// Delivers the bytes that are due.
    pub(super) fn tick(&self) {
        let now = self.time.now_ms();
        let mut state = self.state.lock();
        let ids: Vec<u64> = state.pipes.keys().copied().collect();
        let mut wakers = Vec::new();
        for id in ids {
            self.deliver(&mut state, id, now, &mut wakers);
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn deliver(&self, state: &mut State, id: u64, now: u64, wakers: &mut Vec<Waker>) {
        let Some(mut pipe) = state.pipes.remove(&id) else { return };
        let port = &state.ports[pipe.to];
        let passes = !state.cuts.contains(&(pipe.from, pipe.to)) && port.is_powered;
        if !pipe.has_reader && !pipe.has_writer {
            return; // neither end exists any more
        }
        let mut is_reset = false;
        if !passes {
            let late = pipe.under_way.front().is_some_and(|(due, _)| *due + PEER_TCP_TIMEOUT.as_millis() as u64 <= now);
            pipe.is_broken_for_writer |= late;
            wakers.extend(pipe.writer.take_if(|_| late));
        } else if port.life != pipe.life {
            is_reset = !pipe.under_way.is_empty() || pipe.is_finished;
        } else {
            self.arrive(&mut pipe, now, wakers);
        }
        let writer_is_broken = pipe.is_broken_for_writer || is_reset;
        if is_reset {
            pipe.is_broken_for_writer = true;
            pipe.under_way.clear();
            wakers.extend(pipe.writer.take());
        }
        state.pipes.insert(id, pipe);
        // An end that cannot send any more cannot receive either.
        if writer_is_broken && let Some(back) = state.pipes.get_mut(&opposite(id)) {
            back.is_broken_for_reader = true;
            wakers.extend(back.reader.take());
        }
    }

    fn arrive(&self, pipe: &mut Pipe, now: u64, wakers: &mut Vec<Waker>) {
        while let Some((due, bytes)) = pipe.under_way.pop_front() {
            if due > now {
                pipe.under_way.push_front((due, bytes));
                return;
            }
            self.trace.event([1, pipe.from as u64, pipe.to as u64], &bytes);
            pipe.arrived.extend_from_slice(&bytes);
            wakers.extend(pipe.reader.take());
        }
        if pipe.is_finished && !pipe.is_at_end {
            pipe.is_at_end = true;
            wakers.extend(pipe.reader.take());
        }
    }

    /// Draws how long a message and its answer take, in milliseconds.
    pub(super) fn round_trip_ms(&self) -> u64 {
        let state = self.state.lock();
        state.latency_ms() + state.latency_ms()
    }

    /// Tries to connect.
    pub(super) fn dial(&self, from: usize, to: usize) -> Dialed {
        let mut state = self.state.lock();
        let is_cut = state.cuts.contains(&(from, to)) || state.cuts.contains(&(to, from));
        if is_cut || state.closed.contains(&(from, to)) || !state.ports[to].is_powered {
            return Dialed::Silence;
        }
        if state.ports[to].listening.is_none() {
            return Dialed::Refused;
        }
        state.last_pipe += 2;
        let (there, back) = (state.last_pipe, state.last_pipe + 1);
        let lives = (state.ports[to].life, state.ports[from].life);
        state.pipes.insert(there, Pipe::new(from, to, lives.0));
        state.pipes.insert(back, Pipe::new(to, from, lives.1));
        let incoming = state.ports[to].listening.as_mut().map(|incoming| {
            incoming.waiting.push_back((End { reads: there, writes: back }, from));
            incoming.waker.take()
        });
        drop(state);
        incoming.flatten().into_iter().for_each(Waker::wake);
        Dialed::Connected(End { reads: back, writes: there })
    }
}

/// Returns the other direction of a connection.
fn opposite(pipe: u64) -> u64 {
    pipe ^ 1
}

/// Returns whether the host that made a connection writes this direction of it.
fn is_callers(pipe: u64) -> bool {
    pipe.is_multiple_of(2)
}

impl State {
    pub(super) fn port(&mut self, host: usize) -> &mut Port {
        &mut self.ports[host]
    }

    /// Draws how long the next message takes, in milliseconds.
    pub(super) fn latency_ms(&self) -> u64 {
        1 + draw::below(self.jitter_ms + 1)
    }

    /// Puts bytes into a pipe. Returns how many; `None` when there is no room or the pipe is broken.
    pub(super) fn send(&mut self, pipe: u64, now: u64, bytes: &[u8]) -> Option<usize> {
        let latency = self.latency_ms();
        let pipe = self.pipes.get_mut(&pipe).filter(|pipe| !pipe.is_broken_for_writer)?;
        let room = WINDOW_BYTES.saturating_sub(pipe.bytes);
        let length = room.min(bytes.len());
        if length == 0 {
            return None;
        }
        let due = pipe.under_way.back().map_or(0, |(due, _)| *due).max(now + latency);
        pipe.under_way.push_back((due, Bytes::copy_from_slice(&bytes[..length])));
        pipe.bytes += length;
        Some(length)
    }

    /// Drops an end of a connection. The bytes that it has written still arrive, unless its host has no power.
    pub(super) fn leave(&mut self, end: End, host: usize) {
        let is_powered = self.ports[host].is_powered;
        if let Some(pipe) = self.pipes.get_mut(&end.writes) {
            pipe.has_writer = false;
            pipe.is_finished |= is_powered;
        }
        if let Some(pipe) = self.pipes.get_mut(&end.reads) {
            pipe.has_reader = false;
        }
    }
}

impl Pipe {
    fn new(from: usize, to: usize, life: u64) -> Pipe {
        Pipe {
            from,
            to,
            life,
            under_way: VecDeque::new(),
            bytes: 0,
            is_finished: false,
            arrived: BytesMut::new(),
            is_at_end: false,
            is_broken_for_reader: false,
            is_broken_for_writer: false,
            reader: None,
            writer: None,
            has_reader: true,
            has_writer: true,
        }
    }

    /// Breaks this direction for both ends. Returns what waits for it.
    fn break_off(&mut self) -> impl Iterator<Item = Waker> + use<> {
        (self.is_broken_for_writer, self.is_broken_for_reader) = (true, true);
        self.under_way.clear();
        self.reader.take().into_iter().chain(self.writer.take())
    }

    /// Takes up to `max` bytes that have arrived.
    pub(super) fn take(&mut self, max: usize) -> Bytes {
        let taken = self.arrived.split_to(max.min(self.arrived.len())).freeze();
        self.bytes -= taken.len();
        taken
    }
}
