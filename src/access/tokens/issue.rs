//! Issues tokens of service accounts.

use std::time::{SystemTime, UNIX_EPOCH};

use super::claims::{Audience, Claims, Kubernetes, LegacyClaims, NumericDate, Reference};
use super::keys::SigningKey;
use super::{LEGACY_ISSUER, USER_PREFIX, jose};
use crate::config::TokenOptions;

/// The service account that a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// The content of a token besides its account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueRequest {
    /// The audiences.
    pub audiences: Vec<String>,
    /// The time for which the token is valid, in seconds.
    pub seconds: i64,
    /// Name and UID of a pod that it is bound to.
    pub pod: Option<(String, String)>,
    /// Name and UID of a secret that it is bound to.
    pub secret: Option<(String, String)>,
    /// Name and UID of a node that it is bound to, or that its pod runs on.
    pub node: Option<(String, String)>,
    /// Seconds after which the token should be replaced, if that is before it expires.
    pub warn_after_seconds: Option<i64>,
}

/// A token that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The token.
    pub token: String,
    /// When it expires, in seconds since 1970.
    pub expires: i64,
    /// Its id; the user's `authentication.kubernetes.io/credential-id` contains it.
    pub credential_id: String,
}

/// A service account and the Secret that holds its token without expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyAccount {
    /// The service account.
    pub account: Account,
    /// Name of the Secret, in the account's namespace.
    pub secret: String,
}

/// Signs tokens of service accounts.
#[derive(Debug, Clone)]
pub struct Issuer {
    key: SigningKey,
    name: String,
    /// The longest validity in seconds. `None` if there is no limit.
    pub(super) seconds_max: Option<i64>,
    /// Whether the tokens that kubelets request for pods are valid for longer than requested.
    pub(super) extends: bool,
}

impl Issuer {
    /// Creates an issuer with this name and key.
    pub const fn new(key: SigningKey, name: String) -> Self {
        Self { key, name, seconds_max: None, extends: true }
    }

    /// Sets the validity of tokens.
    #[must_use]
    pub fn with(self, options: &TokenOptions) -> Self {
        let seconds_max = Some(options.service_account_max_token_expiration_seconds).filter(|seconds| *seconds > 0);
        Self { seconds_max, extends: options.service_account_extend_token_expiration, ..self }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Issues a token.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn issue(&self, account: &Account, request: &IssueRequest, now: SystemTime) -> Result<Issued, rustls::Error> {
        let reference = |of: &Option<(String, String)>| {
            of.as_ref().map(|(name, uid)| Reference { name: name.clone(), uid: uid.clone() })
        };
        let start = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
        let expires = start.saturating_add(request.seconds);
        let id = uuid()?;
        let claims = Claims {
            aud: Audience(request.audiences.clone()),
            exp: Some(NumericDate(expires)),
            iat: Some(NumericDate(start)),
            iss: self.name.clone(),
            jti: id.clone(),
            kubernetes: Some(Kubernetes {
                namespace: account.namespace.clone(),
                node: reference(&request.node),
                pod: reference(&request.pod),
                secret: reference(&request.secret),
                serviceaccount: Reference { name: account.name.clone(), uid: account.uid.clone() },
                warnafter: request.warn_after_seconds.map(|seconds| NumericDate(start.saturating_add(seconds))),
            }),
            nbf: Some(NumericDate(start)),
            sub: format!("{USER_PREFIX}{}:{}", account.namespace, account.name),
        };
        Ok(Issued { token: self.sign(&claims)?, expires, credential_id: format!("JTI={id}") })
    }

    /// Issues the token for a Secret of type `kubernetes.io/service-account-token`. It does not expire, and is valid
    /// only while the Secret contains it.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn issue_legacy(&self, of: &LegacyAccount) -> Result<String, rustls::Error> {
        let Account { namespace, name, uid } = &of.account;
        self.sign(&LegacyClaims {
            iss: LEGACY_ISSUER.into(),
            namespace: namespace.clone(),
            secret: of.secret.clone(),
            account: name.clone(),
            account_uid: uid.clone(),
            sub: format!("{USER_PREFIX}{namespace}:{name}"),
        })
    }

    fn sign(&self, claims: &impl serde::Serialize) -> Result<String, rustls::Error> {
        let payload = serde_json::to_vec(claims).map_err(|error| rustls::Error::General(error.to_string()))?;
        jose::sign(&self.key, &payload)
    }
}

/// Returns a random UUID (RFC 9562, version 4).
fn uuid() -> Result<String, rustls::Error> {
    let mut bytes = [0; 16];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
    let bits = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
