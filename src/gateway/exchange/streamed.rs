//! Answers whose body the connection takes part by part.

use std::cell::RefCell;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::{Exchange, Origin};
use crate::limits;
use crate::tasks::Task;
use crate::transport::{Outlet, Wait};
use crate::unsent::UnsentBytes;
use crate::watchdog::{Stage, Work, during};

/// The source of a body's bytes.
pub(super) enum BodySource {
    /// The bytes are made while they are sent.
    Made(BoxBody),
    /// The bytes are in memory, and nothing else refers to them. Copies of parts are sent, so that the memory is free
    /// once the request's time is over.
    Whole(Bytes, UnsentBytes),
    /// The time of the request is over.
    Over,
}

impl BodySource {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Box<dyn Error>>>> {
        match self {
            Self::Made(body) => Pin::new(body).poll_next(cx),
            Self::Whole(bytes, _) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes, unsent) => {
                unsent.hold(bytes.len());
                let part = bytes.split_to(bytes.len().min(limits::LIST_CHUNK_BYTES));
                Poll::Ready(Some(Ok(Bytes::copy_from_slice(&part))))
            }
            // The answer has begun: the server can report the error only by breaking the answer off.
            Self::Over => Poll::Ready(Some(Err("the answer took too long".into()))),
        }
    }
}

/// An answer whose body is taken part by part.
pub(super) struct Sent {
    pub(super) code: u16,
    pub(super) size: BodySize,
    /// The number of bytes that the connection has taken.
    pub(super) bytes: u64,
    /// `None` for a request that cannot be one of the slowest.
    pub(super) origin: Option<Box<Origin>>,
}

/// The body that the connection takes part by part.
pub(super) struct Streamed {
    body: Rc<RefCell<BodySource>>,
    sent: Sent,
    expiry: Option<Task>,
    exchange: Exchange,
    outlet: Outlet,
    wait: Wait,
    work: Work,
    /// Whether all parts of the body are taken.
    is_over: bool,
    /// When the body ends even if its audit events are not sent by then.
    late: Option<Pin<Box<Sleep>>>,
}

impl Streamed {
    pub(super) fn of(mut exchange: Exchange, sent: Sent, body: BoxBody, outlet: Outlet, method: &str) -> Self {
        let source = match body.try_into_bytes() {
            Ok(bytes) if bytes.is_unique() => {
                let mut unsent = UnsentBytes::default();
                unsent.hold(bytes.len());
                BodySource::Whole(bytes, unsent)
            }
            Ok(bytes) => BodySource::Made(BoxBody::new(bytes)),
            Err(body) => BodySource::Made(body),
        };
        let work = Work::new(Stage::Sending, method, exchange.progress.served());
        let body = Rc::new(RefCell::new(source));
        let expiry = exchange.progress.ends.map(|ends| exchange.expire(ends, Rc::clone(&body), outlet.clone()));
        Self { body, sent, expiry, exchange, outlet, wait: Wait::default(), work, is_over: false, late: None }
    }

    /// Ends the body. If the audit events must be sent first, waits for that, but no longer than a request may take.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Box<dyn Error>>>> {
        if let Some(audited) = self.exchange.progress.audited.as_mut().filter(|audited| audited.is_awaited()) {
            // The client has taken all: it is not late any more.
            self.expiry = None;
            audited.end();
            let timeout = self.exchange.gateway.request_timeout;
            let late = self.late.get_or_insert_with(|| Box::pin(sleep(timeout)));
            if audited.poll_sent(cx).is_pending() && late.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(None)
    }
}

impl MessageBody for Streamed {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.sent.size
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let streamed = &mut *self;
        if streamed.is_over {
            return streamed.poll_end(cx);
        }
        ready!(streamed.outlet.poll_room(&mut streamed.wait, cx));
        if streamed.exchange.progress.ends.is_some_and(|ends| ends <= Instant::now()) {
            streamed.body.replace(BodySource::Over);
        }
        let next = during(&mut streamed.work, || streamed.body.borrow_mut().poll_next(cx));
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            if let Some(audited) = &mut streamed.exchange.progress.audited {
                audited.passes(bytes);
            }
            streamed.sent.bytes += bytes.len() as u64;
            streamed.outlet.give(bytes.len());
        }
        if matches!(next, Poll::Ready(None)) {
            streamed.is_over = true;
            return streamed.poll_end(cx);
        }
        next
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        let (Exchange { gateway, progress }, sent) = (&mut self.exchange, &mut self.sent);
        let origin = sent.origin.take();
        progress.answered(gateway, sent.code, sent.bytes, || origin.map(|origin| *origin).unwrap_or_default());
    }
}
