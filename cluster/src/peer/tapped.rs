//! A network that records which pieces of snapshots reach a member. A test can choose a fault for one of them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use flotilla_proto::replication::{Method, SnapshotPiece};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::watch;

use super::frame::{Frame, FrameKind, FrameReader, put_frame};
use super::wire::{Connected, Connecting, Listener, Network, Stream, TlsNetwork};
use crate::PeerTls;
use crate::limits::PEER_READ_BYTES;

/// The fault of a piece on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceFault {
    /// It is lost: all connections of the member break, and none can be made before [`Tap::heal`].
    Cut,
    /// It arrives after [`Tap::heal`], whatever arrives over other connections meanwhile.
    Delayed,
    /// It arrives with one bit flipped.
    Corrupted,
}

/// A piece that arrived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// The sender's name for the snapshot.
    pub(crate) snapshot: String,
    pub(crate) offset: u64,
}

#[derive(Default)]
struct State {
    /// The pieces that arrived, with their groups.
    came: Vec<(String, Piece)>,
    /// The group, the offset and the fault of the piece that will be intercepted when it first comes.
    fault: Option<(String, u64, PieceFault)>,
    /// The fault of the intercepted piece, until the network is healed.
    met: Option<PieceFault>,
}

impl State {
    fn is_cut(&self) -> bool {
        self.met == Some(PieceFault::Cut)
    }

    /// Returns the fault of a piece; `None` when it is not intercepted.
    fn meet(&mut self, group: &str, offset: u64) -> Option<PieceFault> {
        let (_, _, fault) = self.fault.take_if(|(doomed, at, _)| doomed == group && *at == offset)?;
        self.met = Some(fault);
        self.met
    }
}

/// The test's handle on a tapped network. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<watch::Sender<State>>);

impl Tap {
    /// Sets the fault of the next piece at this offset of a snapshot of a group.
    pub(crate) fn decide(&self, group: &str, offset: u64, fault: PieceFault) {
        self.0.send_modify(|state| state.fault = Some((group.to_owned(), offset, fault)));
    }

    /// Returns whether that piece was intercepted, and the network has not been healed since.
    pub(crate) fn has_met(&self) -> bool {
        self.0.borrow().met.is_some()
    }

    /// Lets everything pass again.
    pub(crate) fn heal(&self) {
        self.0.send_modify(|state| state.met = None);
    }

    /// Returns the pieces of a group's snapshots that reached the member, in order, including those that it refused.
    pub(crate) fn pieces(&self, group: &str) -> Vec<Piece> {
        self.0.borrow().came.iter().filter(|(of, _)| of == group).map(|(_, piece)| piece.clone()).collect()
    }

    /// Passes a piece on, as its fault says.
    async fn pass(&self, piece: &mut SnapshotPiece) -> io::Result<()> {
        if piece.bytes.is_empty() {
            return Ok(()); // it only asks how much was received
        }
        let mut fault = None;
        self.0.send_modify(|state| fault = state.meet(&piece.group, piece.offset));
        match fault {
            Some(PieceFault::Cut) => return Err(io::ErrorKind::ConnectionReset.into()),
            Some(PieceFault::Delayed) => drop(self.0.subscribe().wait_for(|state| state.met.is_none()).await),
            Some(PieceFault::Corrupted) => {
                let mut bytes = BytesMut::from(&piece.bytes[..]);
                bytes[0] ^= 1;
                piece.bytes = bytes.freeze();
            }
            None => {}
        }
        let came = (piece.group.clone(), Piece { snapshot: piece.name.clone(), offset: piece.offset });
        self.0.send_modify(|state| state.came.push(came));
        Ok(())
    }

    /// Routes a connection through the tap.
    fn tapped(&self, connected: io::Result<Connected>) -> io::Result<Connected> {
        let Connected { stream, name } = connected?;
        if self.0.borrow().is_cut() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let (near, far) = tokio::io::duplex(PEER_READ_BYTES);
        tokio::spawn(carry(stream, far, self.clone()));
        Ok(Connected { stream: Box::new(near), name })
    }
}

/// Copies both directions of a connection, until one end is gone or it is cut.
async fn carry(stream: Box<dyn Stream>, member: DuplexStream, tap: Tap) {
    let (mut from_peer, mut to_peer) = tokio::io::split(stream);
    let (mut from_member, to_member) = tokio::io::split(member);
    let mut state = tap.0.subscribe();
    tokio::select! {
        _ = tokio::io::copy(&mut from_member, &mut to_peer) => {}
        _ = bring(&mut from_peer, to_member, &tap) => {}
        _ = state.wait_for(State::is_cut) => {}
    }
}

/// Passes on the frames that a peer sends to the member, one by one.
async fn bring(from: &mut ReadHalf<Box<dyn Stream>>, mut to: WriteHalf<DuplexStream>, tap: &Tap) -> io::Result<()> {
    let (mut frames, mut out) = (FrameReader::default(), BytesMut::new());
    loop {
        let Some(mut frame) = frames.next()? else {
            match from.read_buf(frames.room()).await? {
                0 => return Ok(()),
                _ => continue,
            }
        };
        if let Some(mut piece) = piece(&frame) {
            tap.pass(&mut piece).await?;
            frame.payload = piece.encode_to_vec().into();
        }
        put_frame(&frame, &mut out);
        to.write_all_buf(&mut out).await?;
    }
}

/// Returns the piece of a snapshot in a frame; `None` if there is none.
fn piece(frame: &Frame) -> Option<SnapshotPiece> {
    let is_piece = frame.kind() == FrameKind::Request && frame.method == Method::SnapshotPiece as u32;
    is_piece.then(|| SnapshotPiece::decode(frame.payload.clone()).ok()).flatten()
}

/// The network of one member.
pub(crate) struct TappedNetwork(pub(crate) Tap);

struct TappedListener {
    listener: Box<dyn Listener>,
    tap: Tap,
}

impl Network for TappedNetwork {
    fn listen(&self, address: SocketAddr, tls: &PeerTls) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(TappedListener { listener: TlsNetwork.listen(address, tls)?, tap: self.0.clone() }))
    }

    fn dial(&self, address: &str, tls: &PeerTls) -> Connecting {
        let tap = self.0.clone();
        TlsNetwork.dial(address, tls).map(move |connected| tap.tapped(connected)).boxed()
    }

    fn is_deserted(&self, address: &str) -> BoxFuture<'static, bool> {
        TlsNetwork.is_deserted(address)
    }
}

impl Listener for TappedListener {
    fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Connecting, SocketAddr)>> {
        let tap = self.tap.clone();
        let accepting = self.listener.accept();
        async move {
            let (connecting, from) = accepting.await?;
            Ok((connecting.map(move |connected| tap.tapped(connected)).boxed(), from))
        }
        .boxed()
    }
}
