//! The body of an answer. Its request counts as in progress in the pool until the body is dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::{Error, wording};

/// The body of an answer, read as it arrives.
#[derive(Debug)]
pub struct Answer {
    body: Incoming,
    /// The addresses of both ends of the connection, for errors.
    ends: Arc<str>,
    #[expect(dead_code, reason = "dropping it returns the permit")]
    place: Option<OwnedSemaphorePermit>,
}

impl Answer {
    pub(super) const fn new(body: Incoming, ends: Arc<str>, place: Option<OwnedSemaphorePermit>) -> Self {
        Self { body, ends, place }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(|error| wording::body(&error, &self.ends))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
