//! The issuers whose tokens are accepted. They may be replaced while the server runs.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::sync::Notify;

use super::{OpenId, OpenIdError, UnverifiedToken};
use crate::access::user::User;

/// The issuers, in the order in which they are configured.
#[derive(Debug, Default)]
pub struct Issuers {
    all: ArcSwap<Vec<Arc<OpenId>>>,
    replaced: Notify,
}

/// The user of a token. `Err` has the issuer that the token names, and the reason why the token is not valid.
pub type TokenUser = Result<Arc<User>, (Arc<OpenId>, OpenIdError)>;

impl Issuers {
    /// Returns these issuers.
    pub fn new(all: Vec<Arc<OpenId>>) -> Self {
        Self { all: ArcSwap::from_pointee(all), replaced: Notify::new() }
    }

    /// Replaces the issuers.
    pub fn replace(&self, all: Vec<Arc<OpenId>>) {
        self.all.store(Arc::new(all));
        self.replaced.notify_one();
    }

    /// Returns the user of a token. `None` if the token names none of the issuers. `digest` is the SHA-256 digest of
    /// the token.
    pub fn user(&self, token: &[u8], digest: &[u8; 32], now: SystemTime) -> Option<TokenUser> {
        let all = self.all.load();
        let (issuer, found) = match all.iter().find_map(|issuer| Some((issuer, issuer.known(digest, now)?))) {
            Some(known) => known,
            None => {
                let token = UnverifiedToken::parse(token).filter(|_| !all.is_empty())?;
                all.iter().find_map(|issuer| Some((issuer, issuer.user(&token, digest, now)?)))?
            }
        };
        Some(found.map_err(|error| (Arc::clone(issuer), error)))
    }

    /// Keeps the keys of all issuers fresh, for ever.
    pub async fn follow(&self) {
        loop {
            let all = self.all.load_full();
            let replaced = self.replaced.notified();
            if all.is_empty() {
                replaced.await;
            } else {
                tokio::select! {
                    _ = join_all(all.iter().map(|issuer| issuer.follow())) => {}
                    () = replaced => {}
                }
            }
        }
    }
}
