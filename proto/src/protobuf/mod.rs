//! Protobuf as Kubernetes speaks it: messages driven by the schema, and the envelope around them.
//!
//! The encoding is that of the reference's generated Go code, byte for byte: fields ascend by number, plain values are
//! written even when zero, pointers only when set, maps by ascending key. Free-form values travel as JSON inside.

mod decode;
mod encode;
mod envelope;
mod forward;
mod plan;
mod scalar;
mod source;
mod tape;
mod wire;

pub use decode::{decode, decode_onto};
pub use encode::{Transcoder, encode};
pub use envelope::{
    Envelope, MAGIC, decode_object, encode_object, open, write_event, write_item_head, write_list_head, write_object,
    write_tail,
};

/// The reason why bytes are not a message of the type, or a value has no message; in the words of the reference where
/// it has any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes end inside a field.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length that no message can have.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A field is encoded with the wire type of another type.
    #[error("proto: wrong wireType = {found} for field {field}")]
    WireType {
        /// The wire type that was found.
        found: u8,
        /// The field's name, capitalized.
        field: String,
    },
    /// A wire type that does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A field number that does not exist.
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    IllegalTag {
        /// Name of the message.
        message: String,
        /// The number.
        number: i32,
        /// The whole tag.
        tag: u64,
    },
    /// A group ends that did not begin.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndGroup(String),
    /// A group ends that did not begin, in a field that is skipped.
    #[error("proto: unexpected end of group")]
    UnexpectedEndGroup,
    /// More nested messages than [`PROTOBUF_DEPTH_MAX`](crate::limits::PROTOBUF_DEPTH_MAX), or
    /// [`PROTOBUF_WRITE_DEPTH_MAX`](crate::limits::PROTOBUF_WRITE_DEPTH_MAX).
    #[error("proto: exceeded max depth")]
    TooDeep,
    /// A text that is not a quantity.
    #[error(transparent)]
    Quantity(#[from] crate::quantity::Error),
    /// A free-form value that is not JSON.
    #[error(transparent)]
    Json(#[from] crate::json::Error),
    /// A number that JSON cannot express.
    #[error("json: unsupported value: {0}")]
    Unsupported(&'static str),
    /// An `IntOrString` whose type is neither an integer nor a string.
    #[error("impossible IntOrString.Type")]
    IntOrString,
    /// There are no bytes at all.
    #[error("empty data")]
    EmptyData,
    /// Nothing follows the magic number.
    #[error("empty body")]
    EmptyBody,
    /// The magic number is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// The type exists in JSON only.
    #[error(
        "object {0} does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
    )]
    JsonOnly(String),
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
