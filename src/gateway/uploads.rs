//! Bodies that take their time to come: a request takes no place among those in progress while it waits for its own.

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
use super::{Gateway, body};
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// The body of a request: all of it, or why it will not be there, or what is still coming for whoever passes it on.
pub(super) enum Body {
    /// It is there, or will not be.
    Read(ApiResult<Bytes>),
    /// It is on its way.
    Coming(web::Payload),
}

impl Body {
    /// That of a request which has none.
    pub(super) fn none() -> Self {
        Self::Read(Ok(Bytes::new()))
    }

    /// The bytes.
    ///
    /// # Errors
    /// 400 for one that broke off, 413 for one that is too long, 500 for one that nobody waited for.
    pub(super) fn read(self) -> ApiResult<Bytes> {
        match self {
            Self::Read(read) => read,
            Self::Coming(_) => Err(ApiError::internal("nobody waited for the body")),
        }
    }

    /// How many bytes there are; 0 where they are not there yet.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(read) => read.as_ref().map_or(0, Bytes::len),
            Self::Coming(_) => 0,
        }
    }

    /// What is to be passed on.
    ///
    /// # Errors
    /// 500 for one that was read already.
    pub(super) fn coming(self) -> ApiResult<web::Payload> {
        match self {
            Self::Coming(payload) => Ok(payload),
            Self::Read(_) => Err(ApiError::internal("the body was read already")),
        }
    }
}

/// Bodies that are on their way, by user.
#[derive(Debug, Clone, Default)]
pub struct Uploads(Arc<Mutex<Users>>);

#[derive(Debug, Default)]
struct Users {
    all: usize,
    of: HashMap<CompactString, usize>,
}

impl Uploads {
    /// Counts another one of a user; `None` when there are too many.
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

    /// How many there are.
    pub fn now(&self) -> usize {
        self.0.lock().all
    }
}

/// A body on its way, counted while this lives.
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

/// Waits for the body of a request that has its place. Where it is not there yet, the place is given to others
/// meanwhile; `None` when the user sends too many at a time, or there is no place when it has come.
pub(super) async fn arrive(
    gateway: &Gateway,
    user: &str,
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
    if !progress.take_seat(gateway, lane) {
        progress.terminated(gateway, 429);
        return None;
    }
    Some(Body::Read(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_takes_the_place_of_others() {
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
