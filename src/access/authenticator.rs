//! From credentials to a user.

use std::sync::Arc;
use std::time::SystemTime;

use ring::digest::{SHA256, digest};

use super::bearer::{Bearer, EXTRA_SPACE};
use super::bootstrap_tokens::BootstrapTokens;
use super::connection::ConnectionIdentity;
use super::front_proxy::FrontProxy;
use super::token_file::TokenFile;
use super::tokens::{KeySet, ServiceAccountTokens};
use super::user::User;
use crate::limits::TOKEN_BYTES;
use crate::status::ApiError;
use crate::wall_clock;

/// Who asks.
#[derive(Debug, Clone)]
pub struct Authenticated {
    /// The user; anonymous when there were no credentials.
    pub user: Arc<User>,
    /// What to tell the client in a `Warning` header.
    pub warning: Option<&'static str>,
}

/// Whose a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenOwner {
    /// The user.
    pub user: Arc<User>,
    /// Which of the audiences asked for it is meant for.
    pub audiences: Vec<String>,
}

/// Ways to say who asks besides certificates and the tokens of a file and of service accounts.
#[derive(Debug)]
pub struct Ways {
    /// Whether requests without credentials are answered.
    pub anonymous: bool,
    /// Tokens by which nodes join.
    pub bootstrap: Option<BootstrapTokens>,
    /// Proxies that say who asks.
    pub proxy: Option<Arc<FrontProxy>>,
}

impl Default for Ways {
    fn default() -> Self {
        Self { anonymous: true, bootstrap: None, proxy: None }
    }
}

/// Finds the user of a request.
///
/// In order: a proxy that is believed says who asks; a trusted client certificate wins over everything else; then a
/// bearer token counts, and one that is not known is an error even where anonymous requests are welcome; an untrusted
/// client certificate is an error as well; without credentials the request is anonymous.
#[derive(Debug)]
pub struct Authenticator {
    anonymous: Arc<User>,
    ways: Ways,
    file: TokenFile,
    service_accounts: ServiceAccountTokens,
}

impl Authenticator {
    /// The keys by which tokens of service accounts are verified.
    pub const fn keys(&self) -> &KeySet {
        self.service_accounts.keys()
    }

    /// Knows static tokens and those of service accounts.
    pub fn new(file: TokenFile, service_accounts: ServiceAccountTokens) -> Self {
        Self { anonymous: Arc::new(User::anonymous()), ways: Ways::default(), file, service_accounts }
    }

    /// The same with other ways to say who asks.
    #[must_use]
    pub fn with(self, ways: Ways) -> Self {
        Self { ways, ..self }
    }

    /// Proxies that say who asks, if there may be any.
    pub fn proxy(&self) -> Option<&Arc<FrontProxy>> {
        self.ways.proxy.as_ref()
    }

    /// The user of a request on a connection, with the value of its header `Authorization`.
    ///
    /// # Errors
    /// When there are credentials, but none that is valid.
    pub fn authenticate(
        &self,
        connection: &ConnectionIdentity,
        authorization: Option<&[u8]>,
    ) -> Result<Authenticated, Refused> {
        let now = wall_clock::now();
        let found = |user: &Arc<User>| Ok(Authenticated { user: Arc::clone(user), warning: None });
        if let Some(user) = connection.user(now) {
            return found(user);
        }
        let bearer = authorization.map_or(Bearer::None, Bearer::parse);
        if let Bearer::Token(token) = bearer {
            return match self.token_user(token, self.audiences(), now) {
                Ok((user, _)) => found(&user),
                Err(refused) => {
                    tracing::debug!(error = refused.text, "bearer token refused");
                    Err(refused)
                }
            };
        }
        match connection {
            ConnectionIdentity::None if !self.ways.anonymous => {
                Err(Refused { text: "no credentials".into(), by_objects: false })
            }
            ConnectionIdentity::None => {
                let warning = (bearer == Bearer::Misplaced).then_some(EXTRA_SPACE);
                Ok(Authenticated { user: Arc::clone(&self.anonymous), warning })
            }
            ConnectionIdentity::User { .. } | ConnectionIdentity::Refused => {
                Err(Refused { text: "invalid certificate".into(), by_objects: false })
            }
        }
    }

    /// Audiences of the API itself.
    pub fn audiences(&self) -> &[String] {
        self.service_accounts.audiences()
    }

    /// Tokens of service accounts.
    pub const fn service_accounts(&self) -> &ServiceAccountTokens {
        &self.service_accounts
    }

    /// Whose a token is that is meant for one of `audiences`; without any, for the API.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn review(&self, token: &[u8], audiences: &[String]) -> Result<TokenOwner, Refused> {
        let wanted = if audiences.is_empty() { self.audiences() } else { audiences };
        let (user, own) = self.token_user(token, wanted, wall_clock::now())?;
        Ok(TokenOwner { user, audiences: wanted.iter().filter(|audience| own.contains(audience)).cloned().collect() })
    }

    /// The user of a token and whom the token is meant for. Static tokens are meant for the API.
    fn token_user(
        &self,
        token: &[u8],
        wanted: &[String],
        now: SystemTime,
    ) -> Result<(Arc<User>, Vec<String>), Refused> {
        const UNKNOWN: &str = "invalid bearer token";
        let unknown = || Refused { text: UNKNOWN.into(), by_objects: false };
        if token.len() > TOKEN_BYTES {
            return Err(unknown());
        }
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token).as_ref());
        if let Some(user) = self.file.user(&key)
            && self.audiences().iter().any(|own| wanted.contains(own))
        {
            return Ok((Arc::clone(user), self.audiences().to_vec()));
        }
        match self.service_accounts.authenticate(token, &key, wanted, now) {
            Ok(Some(verified)) => Ok((Arc::clone(verified.user()), verified.audiences().to_vec())),
            Ok(None) => self.bootstrap_user(token, wanted, now).ok_or_else(|| Refused {
                by_objects: self.ways.bootstrap.is_some() && BootstrapTokens::is_one(token),
                ..unknown()
            }),
            Err(error) => Err(Refused { text: format!("[{UNKNOWN}, {error}]"), by_objects: error.is_by_objects() }),
        }
    }
}

impl Authenticator {
    /// The user of a token by which a node joins. It is meant for the API.
    fn bootstrap_user(&self, token: &[u8], wanted: &[String], now: SystemTime) -> Option<(Arc<User>, Vec<String>)> {
        let user = self.ways.bootstrap.as_ref()?.user(token, now)?;
        let meant = self.audiences().iter().any(|own| wanted.contains(own));
        meant.then(|| (Arc::new(user), self.audiences().to_vec()))
    }
}

/// Why it is not known who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What a TokenReview shows.
    pub text: String,
    /// Whether that follows from what is stored here, which may be behind.
    pub by_objects: bool,
}

impl From<Refused> for ApiError {
    /// 401; clients are not told more.
    fn from(_: Refused) -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tokens::{BoundKind, BoundObjects, Found, KeySet, SigningKey};
    use super::*;

    #[derive(Debug)]
    struct NoObjects;

    impl BoundObjects for NoObjects {
        fn revision(&self, _: BoundKind, _: &str, _: &str) -> Option<u64> {
            None
        }

        fn find(&self, _: BoundKind, _: &str, _: &str) -> Option<Found> {
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
    fn order() {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let key = SigningKey::parse(&pem).unwrap();
        let keys = KeySet::new(&key, KeySet::default());
        let api = ["api".to_owned()];
        let tokens = ServiceAccountTokens::new(keys, &api, &api, Arc::new(NoObjects));
        let file = TokenFile::parse("secret,ann,u-1").unwrap();
        let authenticator = Authenticator::new(file, tokens);
        let name = |connection: &ConnectionIdentity, header: Option<&str>| {
            authenticator.authenticate(connection, header.map(str::as_bytes)).map(|found| found.user.name.to_string())
        };
        let (valid, expired) = (certificate(60), certificate(-60));
        assert_eq!(name(&valid, Some("Bearer bad")).unwrap(), "cert");
        assert!(!name(&expired, None).unwrap_err().by_objects);
        assert!(!name(&ConnectionIdentity::Refused, None).unwrap_err().by_objects);
        let none = ConnectionIdentity::None;
        assert!(!name(&none, Some("Bearer bad")).unwrap_err().by_objects);
        assert_eq!(name(&none, Some("Bearer secret")).unwrap(), "ann");
        assert_eq!(name(&ConnectionIdentity::Refused, Some("Bearer secret")).unwrap(), "ann");
        assert_eq!(authenticator.review(b"secret", &[]).unwrap().audiences, ["api"]);
        assert_eq!(authenticator.review(b"secret", &["vault".into()]).unwrap_err().text, "invalid bearer token");
        assert_eq!(name(&none, Some("Basic YQ==")).unwrap(), "system:anonymous");
        assert_eq!(name(&none, None).unwrap(), "system:anonymous");
        assert!(authenticator.authenticate(&none, Some(b"Bearer  x")).unwrap().warning.is_some());
    }
}
