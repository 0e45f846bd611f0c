//! Messages of the konnectivity server, `sigs.k8s.io/apiserver-network-proxy`, and their frames in gRPC.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::{Message, Oneof};

/// A message in either direction.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(enumeration = "PacketType", tag = "1")]
    pub kind: i32,
    #[prost(oneof = "Payload", tags = "2, 3, 4, 5, 6, 7")]
    pub payload: Option<Payload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum PacketType {
    DialRequest = 0,
    DialResponse = 1,
    CloseRequest = 2,
    CloseResponse = 3,
    Data = 4,
    CloseDial = 5,
    Drain = 6,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Payload {
    #[prost(message, tag = "2")]
    DialRequest(DialRequest),
    #[prost(message, tag = "3")]
    DialResponse(DialResponse),
    #[prost(message, tag = "4")]
    Data(Data),
    #[prost(message, tag = "5")]
    CloseRequest(CloseRequest),
    #[prost(message, tag = "6")]
    CloseResponse(CloseResponse),
    #[prost(message, tag = "7")]
    CloseDial(CloseDial),
}

/// Asks for a connection.
#[derive(Clone, PartialEq, Message)]
pub struct DialRequest {
    #[prost(string, tag = "1")]
    pub protocol: String,
    #[prost(string, tag = "2")]
    pub address: String,
    /// Chosen by the client; the answer has it too.
    #[prost(int64, tag = "3")]
    pub random: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct DialResponse {
    /// Why there is no connection; empty if there is one.
    #[prost(string, tag = "1")]
    pub error: String,
    /// The id of the connection in further messages.
    #[prost(int64, tag = "2")]
    pub connection: i64,
    #[prost(int64, tag = "3")]
    pub random: i64,
}

/// Bytes of the connection.
#[derive(Clone, PartialEq, Message)]
pub struct Data {
    #[prost(int64, tag = "1")]
    pub connection: i64,
    #[prost(string, tag = "2")]
    pub error: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct CloseRequest {
    #[prost(int64, tag = "1")]
    pub connection: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct CloseResponse {
    #[prost(string, tag = "1")]
    pub error: String,
    #[prost(int64, tag = "2")]
    pub connection: i64,
}

/// Cancels a request for a connection.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct CloseDial {
    #[prost(int64, tag = "1")]
    pub random: i64,
}

/// Bytes before a message: whether it is compressed, and its length.
const FRAME_HEAD: usize = 5;

/// The reason why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The message is compressed, although this server did not ask for that.
    #[error("a message is compressed")]
    Compressed,
    /// The message is longer than the bound.
    #[error("a message of {0} bytes is too large")]
    TooLarge(usize),
    /// The message cannot be decoded.
    #[error("a message cannot be decoded: {0}")]
    Wrong(#[from] prost::DecodeError),
}

impl Packet {
    /// Returns the message in the frame of gRPC.
    pub fn framed(kind: PacketType, payload: Payload) -> Bytes {
        let packet = Self { kind: kind.into(), payload: Some(payload) };
        let mut frame = BytesMut::with_capacity(FRAME_HEAD + packet.encoded_len());
        frame.put_u8(0);
        frame.put_u32(packet.encoded_len() as u32);
        packet.encode_raw(&mut frame);
        frame.freeze()
    }

    /// Takes the first message out of received bytes. `None` if they do not contain all of it yet.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn take(received: &mut BytesMut, bytes_max: usize) -> Result<Option<Self>, FrameError> {
        let Some(head) = received.first_chunk::<FRAME_HEAD>() else { return Ok(None) };
        let [compressed, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if compressed != 0 {
            return Err(FrameError::Compressed);
        }
        if length > bytes_max {
            return Err(FrameError::TooLarge(length));
        }
        if received.len() < FRAME_HEAD + length {
            return Ok(None);
        }
        received.advance(FRAME_HEAD);
        Ok(Some(Self::decode(received.split_to(length).freeze())?))
    }
}
