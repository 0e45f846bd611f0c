//! Messages of the konnectivity server, `sigs.k8s.io/apiserver-network-proxy`.

use bytes::Bytes;
use prost::{Message, Oneof};

use crate::outbound::grpc;

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
    /// A number that the client chooses and the answer repeats.
    #[prost(int64, tag = "3")]
    pub random: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct DialResponse {
    /// The reason why no connection was made; empty if one was made.
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

impl Packet {
    /// Returns the message in a gRPC frame.
    pub fn framed(kind: PacketType, payload: Payload) -> Bytes {
        grpc::framed(&Self { kind: kind.into(), payload: Some(payload) })
    }
}
