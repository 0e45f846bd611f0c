//! Bodies that arrive slowly: a request holds no seat while it waits for its body.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use actix_web::web;
use bytes::Bytes;
use compact_str::CompactString;
use parking_lot::Mutex;

use super::exchange::Progress;
use super::seats::Lane;
use super::{Gateway, body, flows};
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// The body of a request.
pub(super) enum Body {
    /// The whole body, or the reason why it will not arrive.
    Read(ApiResult<Bytes>),
    /// The stream of a body that is passed on as it arrives.
    Coming(web::Payload),
}

impl Body {
    /// Returns the body of a request without one.
    pub(super) fn none() -> Self {
        Self::Read(Ok(Bytes::new()))
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// 400 for a body that broke off, 413 for a body that is too long, 500 for a body that was not awaited.
    pub(super) fn read(self) -> ApiResult<Bytes> {
        match self {
            Self::Read(read) => read,
            Self::Coming(_) => Err(ApiError::internal("nobody waited for the body")),
        }
    }

    /// Returns the length in bytes. 0 for a stream.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(read) => read.as_ref().map_or(0, Bytes::len),
            Self::Coming(_) => 0,
        }
    }

    /// Returns the stream.
    ///
    /// # Errors
    /// 500 if the body was read already.
    pub(super) fn coming(self) -> ApiResult<web::Payload> {
        match self {
            Self::Coming(payload) => Ok(payload),
            Self::Read(_) => Err(ApiError::internal("the body was read already")),
        }
    }
}

/// The number of bodies that requests wait for, by user.
#[derive(Debug, Clone, Default)]
pub struct Uploads(Arc<Mutex<Users>>);

#[derive(Debug, Default)]
struct Users {
    all: usize,
    of: HashMap<CompactString, usize>,
}

impl Uploads {
    /// Counts another body of a user. `None` if too many are counted.
    fn enter(&self, user: &str) -> Option<Upload> {
        let mut users = self.0.lock();
        let own = users.of.get(user).copied().unwrap_or(0);
        if users.all >= limits::UPLOADS || own >= limits::UPLOADS_OF_USER {
            return None;
        }
        users.all += 1;
        users.of.insert(user.into(), own + 1);
        Some(Upload { uploads: self.clone(), user: user.into() })
    }

    /// Returns the number of these bodies.
    pub fn now(&self) -> usize {
        self.0.lock().all
    }
}

/// A body that a request waits for, counted until this is dropped.
struct Upload {
    uploads: Uploads,
    user: CompactString,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut users = self.uploads.0.lock();
        users.all -= 1;
        if let Some(own) = users.of.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                users.of.remove(&self.user);
            }
        }
    }
}

/// Waits for the body of a request that has a seat. While the body has not arrived, the seat is free for others. `None`
/// if too many bodies are awaited already, or if the request gets no seat once its body has arrived.
pub(super) async fn arrive(
    gateway: &Gateway,
    (user, namespace): (&str, &str),
    payload: web::Payload,
    progress: &mut Progress,
) -> Option<Body> {
    let mut reading = pin!(body::read(payload));
    if let Poll::Ready(read) = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        return Some(Body::Read(read));
    }
    let Some(lane) = progress.lane().filter(|lane| !matches!(lane, Lane::Exempt { .. })) else {
        return Some(Body::Read(reading.await));
    };
    let Some(upload) = gateway.seats.uploads.enter(user) else {
        progress.terminated(gateway, 429);
        return None;
    };
    progress.leave_seat(gateway);
    let read = reading.await;
    drop(upload);
    if !Box::pin(flows::enter_again(gateway, (user, namespace), lane, progress)).await {
        progress.terminated(gateway, 429);
        return None;
    }
    Some(Body::Read(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_use_up_the_uploads_of_others() {
        let uploads = Uploads::default();
        let own: Vec<_> = std::iter::from_fn(|| uploads.enter("ann")).take(limits::UPLOADS).collect();
        assert_eq!(own.len(), limits::UPLOADS_OF_USER);
        let other = uploads.enter("bob").unwrap();
        assert_eq!(uploads.now(), limits::UPLOADS_OF_USER + 1);
        drop(own);
        assert!(uploads.enter("ann").is_some());
        drop(other);
        assert_eq!(uploads.now(), 0);
        assert!(uploads.0.lock().of.is_empty());
    }

    #[test]
    fn all_users_together_are_bounded() {
        let uploads = Uploads::default();
        let some: Vec<_> = (0..2 * limits::UPLOADS).map_while(|user| uploads.enter(&user.to_string())).collect();
        assert_eq!(some.len(), limits::UPLOADS);
    }
}
