//! Authenticates requests: finds the user to whom their credentials belong.

use std::sync::Arc;
use std::time::SystemTime;

use ring::digest::{SHA256, digest};

use super::bearer::{Bearer, EXTRA_SPACE};
use super::bootstrap_tokens::BootstrapTokens;
use super::connection::ConnectionIdentity;
use super::front_proxy::FrontProxy;
use super::methods::AuthenticationMethods;
use super::openid::{Issuers, OpenId, OpenIdError};
use super::refused::{Refused, Retry, UNKNOWN};
use super::token_file::TokenFile;
use super::token_owner::TokenOwner;
use super::tokens::{KeySet, ServiceAccountTokens};
use super::user::User;
use crate::limits::TOKEN_BYTES;
use crate::wall_clock;

/// The user of a request, after authentication.
#[derive(Debug, Clone)]
pub struct Authenticated {
    /// The user; anonymous when there were no credentials.
    pub user: Arc<User>,
    /// A text for a `Warning` header.
    pub warning: Option<&'static str>,
}

/// Finds the user of a request.
///
/// Tries a trusted client certificate first, and then a bearer token: a static token, one of a service account, a
/// bootstrap token, one of an OpenID Connect provider, or one that a webhook knows. A request without credentials is
/// anonymous. A token that no method knows is an error even where anonymous requests are allowed. An untrusted client
/// certificate is an error too, unless a valid token comes with it. The gateway tries the headers of a trusted front
/// proxy before it calls this.
#[derive(Debug)]
pub struct Authenticator {
    anonymous: Arc<User>,
    methods: AuthenticationMethods,
    file: TokenFile,
    service_accounts: ServiceAccountTokens,
}

impl Authenticator {
    /// Returns the keys that verify tokens of service accounts.
    pub const fn keys(&self) -> &KeySet {
        self.service_accounts.keys()
    }

    /// Creates an authenticator for static tokens and those of service accounts.
    pub fn new(file: TokenFile, service_accounts: ServiceAccountTokens) -> Self {
        Self {
            anonymous: Arc::new(User::anonymous()),
            methods: AuthenticationMethods::default(),
            file,
            service_accounts,
        }
    }

    /// Returns the same authenticator with other methods of authentication.
    #[must_use]
    pub fn with(self, methods: AuthenticationMethods) -> Self {
        Self { methods, ..self }
    }

    /// Returns the front proxies, if any are configured.
    pub fn proxy(&self) -> Option<&Arc<FrontProxy>> {
        self.methods.proxy.as_ref()
    }

    /// Returns the user of a request for `path`. `authorization` is the value of the header `Authorization`.
    ///
    /// # Errors
    /// No credential of the request is valid, or the request has none and needs one.
    pub fn authenticate(
        &self,
        connection: &ConnectionIdentity,
        authorization: Option<&[u8]>,
        path: &str,
    ) -> Result<Authenticated, Refused> {
        let now = wall_clock::now();
        let found = |user: &Arc<User>| Ok(Authenticated { user: Arc::clone(user), warning: None });
        if let Some(user) = connection.user(now) {
            return found(user);
        }
        let bearer = authorization.map_or(Bearer::None, Bearer::parse);
        if let Bearer::Token(token) = bearer {
            return match self.owner(token, self.audiences(), now) {
                Ok(TokenOwner { user, warning, .. }) => Ok(Authenticated { user, warning }),
                Err(refused) => {
                    tracing::debug!(error = refused.text(), "bearer token refused");
                    Err(refused)
                }
            };
        }
        match connection {
            ConnectionIdentity::None if !self.methods.anonymous.is_at(path) => Err(Refused::of("no credentials")),
            ConnectionIdentity::None => {
                let warning = (bearer == Bearer::Misplaced).then_some(EXTRA_SPACE);
                Ok(Authenticated { user: Arc::clone(&self.anonymous), warning })
            }
            ConnectionIdentity::User { .. } | ConnectionIdentity::Refused => Err(Refused::of("invalid certificate")),
        }
    }

    /// Returns the audiences of the API itself.
    pub fn audiences(&self) -> &[String] {
        self.service_accounts.audiences()
    }

    /// Returns the verifier of service account tokens.
    pub const fn service_accounts(&self) -> &ServiceAccountTokens {
        &self.service_accounts
    }

    /// Returns the owner of a token that is issued for one of `audiences`, or for the API if `audiences` is empty.
    ///
    /// # Errors
    /// The token is not valid.
    pub fn review(&self, token: &[u8], audiences: &[String]) -> Result<TokenOwner, Refused> {
        let wanted = if audiences.is_empty() { self.audiences() } else { audiences };
        self.owner(token, wanted, wall_clock::now())
    }

    /// Returns the owner of a token that is issued for one of the audiences `wanted`. Static tokens are issued for the
    /// API.
    fn owner(&self, token: &[u8], wanted: &[String], now: SystemTime) -> Result<TokenOwner, Refused> {
        if token.len() > TOKEN_BYTES {
            return Err(Refused::of(UNKNOWN));
        }
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token).as_ref());
        let refused = match self.owner_without_webhook(token, &key, wanted, now) {
            Ok(owner) => return Ok(owner),
            Err(refused) => refused,
        };
        match self.methods.webhook.as_ref().map(|webhook| webhook.known(token, wanted)) {
            None => Err(refused),
            Some(None) => Err(Refused { is_unasked: true, ..refused }),
            Some(Some(answer)) => refused.unless(answer),
        }
    }

    fn owner_without_webhook(
        &self,
        token: &[u8],
        key: &[u8; 32],
        wanted: &[String],
        now: SystemTime,
    ) -> Result<TokenOwner, Refused> {
        if let Some(user) = self.file.user(key)
            && self.audiences().iter().any(|own| wanted.contains(own))
        {
            return Ok(self.of_api(Arc::clone(user), wanted));
        }
        match self.service_accounts.authenticate(token, key, wanted, now) {
            Ok(Some(verified)) => Ok(TokenOwner {
                user: Arc::clone(verified.user()),
                audiences: common(wanted, verified.audiences()),
                warning: verified.warning(),
            }),
            Ok(None) if BootstrapTokens::is_one(token) => {
                let retry = self.methods.bootstrap.as_ref().map(|_| Retry::AfterCatchingUp);
                self.bootstrap_user(token, wanted, now).ok_or_else(|| Refused { retry, ..Refused::of(UNKNOWN) })
            }
            Ok(None) => match self.openid_user(token, key, wanted, now) {
                Some(Ok(owner)) => Ok(owner),
                Some(Err((issuer, error))) => {
                    let retry = error.is_by_keys().then_some(Retry::WithNewKeys(issuer));
                    Err(Refused { retry, ..Refused::also(error.to_string()) })
                }
                None => Err(Refused::of(UNKNOWN)),
            },
            Err(error) => {
                let retry = error.is_by_objects().then_some(Retry::AfterCatchingUp);
                Err(Refused { retry, ..Refused::also(error.to_string()) })
            }
        }
    }

    /// Asks the webhook about the token of a request that was refused before the webhook was asked. `authorization` is
    /// the value of the header `Authorization`.
    ///
    /// # Errors
    /// The webhook does not know the token, or cannot be asked.
    pub async fn ask(&self, authorization: &[u8], refused: Refused) -> Result<Authenticated, Refused> {
        let Bearer::Token(token) = Bearer::parse(authorization) else { return Err(refused) };
        let TokenOwner { user, warning, .. } = self.ask_for(token, self.audiences(), refused).await?;
        Ok(Authenticated { user, warning })
    }

    /// Asks the webhook about a token that [`Authenticator::review`] refused before the webhook was asked.
    ///
    /// # Errors
    /// As for [`Authenticator::ask`].
    pub async fn ask_for(&self, token: &[u8], audiences: &[String], refused: Refused) -> Result<TokenOwner, Refused> {
        let wanted = if audiences.is_empty() { self.audiences() } else { audiences };
        let Some(webhook) = self.methods.webhook.as_ref().filter(|_| refused.is_unasked) else { return Err(refused) };
        refused.unless(webhook.ask(token, wanted).await)
    }

    /// Returns the owner of a bootstrap token, which is always issued for the API. `None` if the token is not valid, or
    /// if other audiences are wanted.
    fn bootstrap_user(&self, token: &[u8], wanted: &[String], now: SystemTime) -> Option<TokenOwner> {
        let user = self.methods.bootstrap.as_ref()?.user(token, now)?;
        let meant = self.audiences().iter().any(|own| wanted.contains(own));
        meant.then(|| self.of_api(Arc::new(user), wanted))
    }

    /// Returns the owner of a token of an OpenID Connect provider, which is always issued for the API. `None` if the
    /// token names no configured provider, or if other audiences are wanted.
    fn openid_user(
        &self,
        token: &[u8],
        digest: &[u8; 32],
        wanted: &[String],
        now: SystemTime,
    ) -> Option<Result<TokenOwner, (Arc<OpenId>, OpenIdError)>> {
        let is_meant = self.audiences().iter().any(|own| wanted.contains(own));
        let found = if is_meant { self.methods.issuers.user(token, digest, now)? } else { return None };
        Some(found.map(|user| self.of_api(user, wanted)))
    }

    /// Returns the OpenID Connect providers.
    pub const fn issuers(&self) -> &Arc<Issuers> {
        &self.methods.issuers
    }

    /// Returns the owner of a token that is issued for the API.
    fn of_api(&self, user: Arc<User>, wanted: &[String]) -> TokenOwner {
        TokenOwner { user, audiences: common(wanted, self.audiences()), warning: None }
    }
}

/// Returns the wanted audiences for which a token is issued.
fn common(wanted: &[String], issued_for: &[String]) -> Vec<String> {
    wanted.iter().filter(|audience| issued_for.contains(audience)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tokens::{BoundKind, BoundObjects, BoundProperties, KeySet, SigningKey};
    use super::*;

    #[derive(Debug)]
    struct NoObjects;

    impl BoundObjects for NoObjects {
        fn revision(&self, _: BoundKind, _: &str, _: &str) -> Option<u64> {
            None
        }

        fn find(&self, _: BoundKind, _: &str, _: &str) -> Option<BoundProperties> {
            None
        }
    }

    fn certificate(seconds_left: i64) -> ConnectionIdentity {
        let now = wall_clock::now();
        let left = Duration::from_secs(seconds_left.unsigned_abs());
        let not_after = if seconds_left < 0 { now - left } else { now + left };
        ConnectionIdentity::User { user: Arc::new(User { name: "cert".into(), ..User::default() }), not_after }
    }

    #[test]
    fn a_certificate_comes_before_a_token_and_a_token_before_anonymous() {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let key = SigningKey::parse(&pem).unwrap();
        let keys = KeySet::new(&key, KeySet::default());
        let api = ["api".to_owned()];
        let tokens = ServiceAccountTokens::new(keys, &api, &api, Arc::new(NoObjects));
        let file = TokenFile::parse("secret,ann,u-1").unwrap();
        let authenticator = Authenticator::new(file, tokens);
        let name = |connection: &ConnectionIdentity, header: Option<&str>| {
            authenticator
                .authenticate(connection, header.map(str::as_bytes), "/")
                .map(|found| found.user.name.to_string())
        };
        let (valid, expired) = (certificate(60), certificate(-60));
        assert_eq!(name(&valid, Some("Bearer bad")).unwrap(), "cert");
        assert!(name(&expired, None).unwrap_err().retry.is_none());
        assert!(name(&ConnectionIdentity::Refused, None).unwrap_err().retry.is_none());
        let none = ConnectionIdentity::None;
        assert!(name(&none, Some("Bearer bad")).unwrap_err().retry.is_none());
        assert_eq!(name(&none, Some("Bearer secret")).unwrap(), "ann");
        assert_eq!(name(&ConnectionIdentity::Refused, Some("Bearer secret")).unwrap(), "ann");
        assert_eq!(authenticator.review(b"secret", &[]).unwrap().audiences, ["api"]);
        assert_eq!(authenticator.review(b"secret", &["vault".into()]).unwrap_err().text(), "invalid bearer token");
        assert_eq!(name(&none, Some("Basic YQ==")).unwrap(), "system:anonymous");
        assert_eq!(name(&none, None).unwrap(), "system:anonymous");
        assert!(authenticator.authenticate(&none, Some(b"Bearer  x"), "/").unwrap().warning.is_some());
    }
}
