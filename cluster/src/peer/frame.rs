//! The encoding of frames.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flotilla_proto::peer as wire;
pub(super) use flotilla_proto::peer::{Frame, FrameKind};
use prost::Message;

use super::{Hello, Lane};
use crate::clock::ClockReading;
use crate::limits::{PEER_FRAME_BYTES_MAX, PEER_READ_BYTES};

/// Bytes of a frame's length prefix.
const LENGTH_BYTES: usize = 4;

/// Appends an encoded frame.
pub(super) fn put_frame(frame: &Frame, out: &mut BytesMut) {
    let bytes = frame.encoded_len();
    out.reserve(LENGTH_BYTES + bytes);
    out.put_u32(bytes as u32);
    frame.encode_raw(out);
}

/// Splits received bytes into frames. The payload of a frame shares the memory of the buffer.
#[derive(Default)]
pub(super) struct FrameReader {
    buffer: BytesMut,
}

impl FrameReader {
    /// Returns the buffer to read into. It has room for the rest of a frame that has begun.
    pub(super) fn room(&mut self) -> &mut BytesMut {
        let missing = self.frame_bytes().map_or(0, |bytes| (LENGTH_BYTES + bytes).saturating_sub(self.buffer.len()));
        if missing.max(PEER_READ_BYTES / 8) > self.buffer.capacity() - self.buffer.len() {
            self.buffer.reserve(missing.max(PEER_READ_BYTES));
        }
        &mut self.buffer
    }

    /// Returns the next frame; `None` until it is complete.
    ///
    /// # Errors
    /// Fails when the bytes are not a frame, or the frame is too large.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let Some(bytes) = self.frame_bytes() else { return Ok(None) };
        if bytes > PEER_FRAME_BYTES_MAX {
            let text = format!("a frame of {bytes} bytes is too large: {PEER_FRAME_BYTES_MAX} bytes fit");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if self.buffer.len() < LENGTH_BYTES + bytes {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_BYTES);
        let frame = self.buffer.split_to(bytes).freeze();
        Frame::decode(frame).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn frame_bytes(&self) -> Option<usize> {
        let length = self.buffer.first_chunk::<LENGTH_BYTES>()?;
        Some(u32::from_be_bytes(*length) as usize)
    }
}

/// Returns the frame with a reading of the sender's clock.
pub(super) fn stamped(frame: Frame, reading: ClockReading) -> Frame {
    Frame { now: reading.now, latest: reading.latest, ..frame }
}

/// Returns the reading of the sender's clock when it sent a frame.
pub(super) fn clock_reading(frame: &Frame) -> ClockReading {
    ClockReading { now: frame.now, latest: frame.latest }
}

/// Returns a frame that has only a kind.
pub(super) fn plain(kind: FrameKind) -> Frame {
    Frame { kind: kind.into(), ..Frame::default() }
}

/// Returns a frame with the identity of this replica.
pub(super) fn hello_frame(hello: &Hello, lane: Lane) -> Frame {
    let Hello { cluster, member, name, version, drained, address, found_checksum, serves, full, reached_voters, life } =
        hello.clone();
    let lane = match lane {
        Lane::Control => wire::Lane::Control,
        Lane::Bulk => wire::Lane::Bulk,
        Lane::Snapshot => wire::Lane::Snapshot,
    };
    let message = wire::Hello {
        cluster,
        member,
        name,
        version,
        lane: lane.into(),
        drained,
        address,
        sees: found_checksum,
        serves,
        full,
        hears: reached_voters,
        life,
    };
    Frame { payload: message.encode_to_vec().into(), ..plain(FrameKind::Hello) }
}

/// Reads the payload of [`hello_frame`].
///
/// # Errors
/// Fails when the payload is not a hello.
pub(super) fn read_hello(payload: Bytes) -> io::Result<(Hello, Lane)> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let message = wire::Hello::decode(payload).map_err(|error| invalid(error.to_string()))?;
    let lane = match wire::Lane::try_from(message.lane) {
        Ok(wire::Lane::Control) => Lane::Control,
        Ok(wire::Lane::Bulk) => Lane::Bulk,
        Ok(wire::Lane::Snapshot) => Lane::Snapshot,
        Err(_) => return Err(invalid(format!("the hello names an unknown lane, {}", message.lane))),
    };
    let wire::Hello {
        cluster,
        member,
        name,
        version,
        drained,
        address,
        sees: found_checksum,
        serves,
        full,
        hears: reached_voters,
        life,
        ..
    } = message;
    Ok((
        Hello { cluster, member, name, version, drained, address, found_checksum, serves, full, reached_voters, life },
        lane,
    ))
}
