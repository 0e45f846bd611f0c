//! Tokens of OpenID Connect providers (OpenID Connect Core 1.0; Kubernetes documentation, "Authenticating", section
//! "OpenID Connect Tokens").
//!
//! [`issuers`] has the providers whose tokens are accepted. [`settings`] has the rules by which tokens of a provider
//! are accepted and their claims become a user, [`claims`] applies these rules, [`keys`] verifies signatures, and
//! [`provider`] fetches the keys. A token is verified once and then cached by its digest. A request waits for a
//! provider only if its token names the provider and no known key has made the signature.

mod claims;
mod issuers;
mod keys;
mod provider;
mod settings;

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use dashmap::DashMap;
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::claims::{Claims, Validity};
pub use self::issuers::Issuers;
pub use self::keys::Algorithm;
use self::keys::ProviderKeys;
use self::provider::Provider;
pub use self::settings::{IssuerSettings, Mapping, SettingsError, ValidationRule};
use super::tokens::Unverified;
use super::user::User;
use crate::causes::with_causes;
use crate::field::quote;
use crate::limits;
use crate::outbound::Outbound;

/// The reason why a token of the provider is not valid. A TokenReview shows these texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OpenIdError {
    #[error("oidc: authenticator not initialized")]
    NoKeys,
    #[error("oidc: verify token: {0}")]
    Token(String),
    #[error("oidc: verify token: failed to verify signature: failed to verify id token signature")]
    Signature,
    #[error("{0}")]
    Claims(String),
}

impl OpenIdError {
    /// Returns whether other keys of the provider may make the token valid.
    pub const fn is_by_keys(&self) -> bool {
        matches!(self, Self::NoKeys | Self::Signature)
    }
}

/// A token that is parsed and not verified yet.
struct UnverifiedToken<'t> {
    parts: Unverified<'t>,
    claims: Claims,
}

impl<'t> UnverifiedToken<'t> {
    /// Parses a token. Returns `None` if it is not a JSON Web Token whose claims are an object.
    fn parse(token: &'t [u8]) -> Option<Self> {
        let parts = Unverified::parse(token)?;
        let claims = Claims::parse(&parts.payload)?;
        Some(Self { parts, claims })
    }
}

/// A token whose signature and claims are valid.
#[derive(Debug)]
struct Verified {
    user: Arc<User>,
    validity: Validity,
}

/// Verifies tokens of one provider.
#[derive(Debug)]
pub struct OpenId {
    settings: IssuerSettings,
    provider: Provider,
    /// `None` until they have been fetched.
    keys: ArcSwapOption<ProviderKeys>,
    verified: DashMap<[u8; 32], Arc<Verified>>,
    /// When the last attempt to fetch keys ended. One task fetches at a time.
    fetched: Mutex<Option<Instant>>,
}

impl OpenId {
    /// Returns a verifier that has no keys yet.
    pub fn new(settings: IssuerSettings, outbound: Outbound) -> Self {
        let provider = Provider::new(&settings, outbound);
        Self { settings, provider, keys: ArcSwapOption::empty(), verified: DashMap::new(), fetched: Mutex::default() }
    }

    /// Returns the user of a token that was verified before. `None` if it was not. `digest` is the SHA-256 digest of
    /// the token.
    ///
    /// # Errors
    /// The token is not valid any more.
    pub fn known(&self, digest: &[u8; 32], now: SystemTime) -> Option<Result<Arc<User>, OpenIdError>> {
        let known = self.verified.get(digest)?;
        let valid = known.validity.check(now).map_err(OpenIdError::Token);
        Some(valid.map(|()| Arc::clone(&known.user)))
    }

    /// Returns the user of a token. `None` if the token is not one of this provider.
    ///
    /// # Errors
    /// The token names this provider, but is not valid.
    fn user(
        &self,
        token: &UnverifiedToken<'_>,
        digest: &[u8; 32],
        now: SystemTime,
    ) -> Option<Result<Arc<User>, OpenIdError>> {
        let UnverifiedToken { parts, claims } = token;
        if !claims.is_of(&self.settings.url) {
            return None;
        }
        let Some(keys) = self.keys.load_full() else { return Some(Err(OpenIdError::NoKeys)) };
        let verified = self.verify(&keys, parts, claims, now);
        Some(verified.map(|user| {
            let user = Arc::new(user);
            self.remember(*digest, Verified { user: Arc::clone(&user), validity: claims.validity() }, &keys);
            user
        }))
    }

    /// Caches a token that these keys have verified.
    fn remember(&self, digest: [u8; 32], verified: Verified, keys: &Arc<ProviderKeys>) {
        if self.verified.len() >= limits::TOKEN_CACHE_ENTRIES {
            self.verified.clear();
        }
        self.verified.insert(digest, Arc::new(verified));
        // The provider may have withdrawn the key meanwhile.
        if !self.keys.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, keys)) {
            self.verified.remove(&digest);
        }
    }

    /// Checks a token in the order in which Kubernetes does.
    fn verify(
        &self,
        keys: &ProviderKeys,
        parts: &Unverified<'_>,
        claims: &Claims,
        now: SystemTime,
    ) -> Result<User, OpenIdError> {
        claims.check_subject().map_err(OpenIdError::Token)?;
        claims.check_audience(&self.settings.audiences).map_err(OpenIdError::Token)?;
        claims.validity().check(now).map_err(OpenIdError::Token)?;
        let algorithm = self.settings.algorithms.iter().find(|algorithm| algorithm.name() == parts.algorithm);
        let Some(algorithm) = algorithm else {
            let wanted: Vec<String> = self.settings.algorithms.iter().map(|wanted| quote(wanted.name())).collect();
            let (wanted, found) = (wanted.join(" "), quote(&parts.algorithm));
            let why = format!("oidc: id token signed with unsupported algorithm, expected [{wanted}] got {found}");
            return Err(OpenIdError::Token(why));
        };
        if !keys.verify(*algorithm, &parts.key_id, parts.message, &parts.signature) {
            return Err(OpenIdError::Signature);
        }
        claims.user(&self.settings).map_err(OpenIdError::Claims)
    }

    /// Fetches the keys of the provider, unless the last attempt was within `limits::OPENID_FETCH_INTERVAL`. Concurrent
    /// callers wait for the same answer.
    pub async fn fetch_keys(&self) {
        let mut fetched = self.fetched.lock().await;
        if fetched.is_some_and(|at| at.elapsed() < limits::OPENID_FETCH_INTERVAL) {
            return;
        }
        match self.provider.keys().await {
            Ok(keys) => {
                // A token of a key that the provider has withdrawn is not accepted any longer.
                self.keys.store(Some(Arc::new(keys)));
                self.verified.clear();
            }
            Err(error) => {
                let issuer = &self.settings.url;
                tracing::error!(issuer, error = with_causes(&error), "cannot fetch the keys of the OpenID issuer");
            }
        }
        *fetched = Some(Instant::now());
    }

    /// Returns whether the keys were fetched: only then can tokens be verified.
    pub fn is_ready(&self) -> bool {
        self.keys.load().is_some()
    }

    /// Keeps the keys fresh, for ever.
    pub async fn follow(&self) {
        loop {
            self.fetch_keys().await;
            let pause =
                if self.keys.load().is_some() { limits::OPENID_KEYS_LIFETIME } else { limits::OPENID_RETRY_INTERVAL };
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
#[path = "openid_tests.rs"]
mod tests;
