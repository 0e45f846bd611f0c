//! The limits of answers.

use std::time::Duration;

/// Objects that a list reads under one lock.
pub const LIST_CHUNK_OBJECTS: usize = 64;

/// Bytes of a list that are encoded at a time; the next ones follow when the connection has taken these.
pub const LIST_CHUNK_BYTES: usize = 131_072;

/// Bytes of large objects that a list reads at a time. About as much stays in memory for a client that stops reading.
pub const LIST_READ_BYTES: usize = 524_288;

/// Bytes from which on a part of an answer is sent as it is stored, without a copy, so that a slow client holds no copy
/// of it.
pub const SHARED_BYTES_MIN: usize = 16_384;

/// Bytes of encoded answers of all streams that clients have not taken. Above this, each stream encodes
/// [`UNSENT_CHUNK_BYTES`] at a time.
pub const UNSENT_BYTES: usize = 64 << 20;

/// Bytes of encoded answers that clients have not taken, above which lists that must be encoded as a whole, such as
/// those in YAML, are refused: clients must try again.
pub const WHOLE_ANSWERS_BYTES: usize = 256 << 20;

/// Bytes that a stream encodes at a time while many wait for their clients.
pub const UNSENT_CHUNK_BYTES: usize = 4_096;

/// Bytes that a thread keeps for encoding between requests; larger buffers are freed.
pub const SCRATCH_BYTES: usize = 262_144;

/// Bytes above which answers are compressed for clients that accept gzip, as in the reference.
pub const GZIP_BYTES_MIN: usize = 131_072;

/// Bytes of encoded OpenAPI documents that are cached.
pub const OPENAPI_KEPT_BYTES: usize = 4 << 20;

/// Room for the text of a short list, in bytes, before it grows.
pub const LIST_FIRST_CHUNK_BYTES: usize = 8 << 10;

/// How long clients may cache an OpenAPI document whose hash is in the URL.
pub const OPENAPI_CLIENT_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
