//! Frames of SPDY/3.1, as far as a client needs them to open streams to a node.
//!
//! Header blocks are sent as uncompressed deflate blocks, which every reader of the format accepts. Each is flushed, so
//! that readers need no further bytes. Header blocks of answers are ignored: they say nothing but that the stream is
//! open. Therefore this module needs no compression dictionary.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::limits;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
/// The bit of control frames, with the version.
const CONTROL: u16 = 0x8003;
/// The flag of the last frame that a side sends on a stream.
const FIN: u8 = 1;
/// Bytes before the payload of a frame.
const HEAD: usize = 8;

/// The beginning of headers in zlib format (RFC 1950): deflate, with the dictionary of this checksum.
const ZLIB_HEAD: [u8; 6] = [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2];

/// An empty deflate block, as a flush produces it (RFC 1951, section 3.2.4, and `Z_SYNC_FLUSH` of zlib). Go's reader
/// returns a block only after it has read the beginning of the next one. If the frame ended there instead, the reader
/// would fail, and no further stream could be opened.
const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// A frame from a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// The node accepts a stream.
    Reply(u32),
    /// Data of a stream, and whether it is the last.
    Data(u32, Bytes, bool),
    /// A stream is aborted.
    Reset(u32),
    /// A ping, to be answered with the same number.
    Ping(u32),
    /// The node accepts no more streams.
    GoAway,
    /// Any other frame. It needs no answer.
    Other,
}

/// Returns the frame that opens a stream. Stream numbers are odd and ascending.
pub fn open(stream: u32, headers: &[(&str, &str)], is_first: bool) -> Bytes {
    let mut block = BytesMut::new();
    block.put_u32(headers.len() as u32);
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        block.put_u32(text.len() as u32);
        block.put_slice(text.as_bytes());
    }
    // An uncompressed deflate block that is not the last (RFC 1951, section 3.2.4).
    let length = block.len() as u16;
    let mut packed = BytesMut::new();
    if is_first {
        packed.put_slice(&ZLIB_HEAD);
    }
    packed.put_u8(0);
    packed.put_u16_le(length);
    packed.put_u16_le(!length);
    packed.put_slice(&block);
    packed.put_slice(&FLUSH);
    let mut out = control(SYN_STREAM, 10 + packed.len());
    out.put_u32(stream);
    out.put_u32(0);
    out.put_u16(0);
    out.put_slice(&packed);
    out.freeze()
}

/// Returns a frame with data of a stream. `is_last` ends the client's side of the stream.
pub fn data(stream: u32, data: &[u8], is_last: bool) -> Bytes {
    let mut out = BytesMut::with_capacity(HEAD + data.len());
    out.put_u32(stream);
    out.put_u32(data.len() as u32 | u32::from(if is_last { FIN } else { 0 }) << 24);
    out.put_slice(data);
    out.freeze()
}

/// Returns a ping, or the answer to one.
pub fn ping(number: u32) -> Bytes {
    let mut out = control(PING, 4);
    out.put_u32(number);
    out.freeze()
}

fn control(kind: u16, length: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD + length);
    out.put_u16(CONTROL);
    out.put_u16(kind);
    out.put_u32(length as u32);
    out
}

/// Removes the next frame from the buffer. `None` if it is not complete.
///
/// # Errors
/// The frame exceeds the size limit.
pub fn take(buffer: &mut BytesMut) -> Result<Option<Received>, &'static str> {
    let Some(head) = buffer.first_chunk::<HEAD>() else { return Ok(None) };
    let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let flags = head[4];
    let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
    if length > limits::SPDY_FRAME_BYTES {
        return Err("a frame is too long");
    }
    if buffer.len() < HEAD + length {
        buffer.reserve(HEAD + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(HEAD);
    let mut body = buffer.split_to(length).freeze();
    if first >> 31 == 0 {
        return Ok(Some(Received::Data(first, body, flags & FIN != 0)));
    }
    let number = |body: &mut Bytes| if body.len() < 4 { 0 } else { body.get_u32() };
    Ok(Some(match first as u16 {
        SYN_REPLY => Received::Reply(number(&mut body) & 0x7fff_ffff),
        RST_STREAM => Received::Reset(number(&mut body) & 0x7fff_ffff),
        PING => Received::Ping(number(&mut body)),
        GOAWAY => Received::GoAway,
        _ => Received::Other,
    }))
}

#[cfg(test)]
mod tests {
    use flate2::{Decompress, FlushDecompress};

    use super::*;

    #[test]
    fn only_complete_frames_are_taken() {
        let mut buffer = BytesMut::new();
        let sent = [data(3, b"ab", false), ping(8), data(5, b"", true)].concat();
        for byte in &sent[..sent.len() - 1] {
            buffer.put_u8(*byte);
        }
        assert_eq!(take(&mut buffer), Ok(Some(Received::Data(3, Bytes::from_static(b"ab"), false))));
        assert_eq!(take(&mut buffer), Ok(Some(Received::Ping(8))));
        assert_eq!(take(&mut buffer), Ok(None));
        buffer.put_u8(sent[sent.len() - 1]);
        assert_eq!(take(&mut buffer), Ok(Some(Received::Data(5, Bytes::new(), true))));
        buffer.put_slice(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff]);
        assert!(take(&mut buffer).is_err());
    }

    #[test]
    fn headers_can_be_unpacked() {
        let mut inflate = Decompress::new(false);
        for (number, is_first) in [(1, true), (3, false)] {
            let frame = open(number, &[("streamtype", "stdin")], is_first);
            assert_eq!(frame[..4], [0x80, 3, 0, 1]);
            assert_eq!(frame.len(), HEAD + usize::from(frame[7]));
            let packed = &frame[HEAD + 10 + if is_first { ZLIB_HEAD.len() } else { 0 }..];
            let mut block = [0; 64];
            let before = inflate.total_out();
            inflate.decompress(packed, &mut block, FlushDecompress::Sync).unwrap();
            let block = &block[..(inflate.total_out() - before) as usize];
            assert_eq!(block, b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05stdin");
            assert!(packed.ends_with(&FLUSH), "a reader could not tell that nothing follows");
        }
    }
}
