//! Bodies of requests to other servers, and of their answers.

use std::error::Error as StdError;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, TryStreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Body as _, Frame};

use super::{Answer, Error};

/// The body of a request.
pub type Body = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// Returns an empty body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body whose bytes are all known.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body that is read as fast as the peer receives it.
pub fn streamed<E>(parts: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Body
where
    E: Into<Box<dyn StdError + Send + Sync>> + 'static,
{
    StreamBody::new(parts.map_ok(Frame::data).map_err(Into::into)).boxed_unsync()
}

/// Reads a whole answer of at most `bytes_max` bytes.
///
/// # Errors
/// The answer is longer, or ends too early.
pub async fn read(mut body: Answer, bytes_max: usize) -> Result<Bytes, Error> {
    let too_large = || Error::TooLarge(bytes_max);
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if read.len() + data.len() > bytes_max {
            return Err(too_large());
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

/// Reads the beginning of an answer, at most `bytes_max` bytes.
///
/// # Errors
/// The answer ends too early.
pub async fn read_beginning(mut body: Answer, bytes_max: usize) -> Result<Bytes, Error> {
    let mut read = BytesMut::new();
    while read.len() < bytes_max
        && let Some(frame) = body.frame().await
    {
        let Ok(data) = frame?.into_data() else { continue };
        read.extend_from_slice(&data[..data.len().min(bytes_max - read.len())]);
    }
    Ok(read.freeze())
}
