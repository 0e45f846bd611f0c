//! Verifies service account tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use dashmap::DashMap;

use super::bound::{BoundKind, BoundObjects};
use super::claims::{Claims, Kubernetes, LegacyClaims, NumericDate, Reference};
use super::jose::Unverified;
use super::keys::KeySet;
use super::legacy::{INVALID_SINCE, LegacyToken};
use super::uses::LegacyUses;
use super::{GROUP, LEGACY_ISSUER, USER_PREFIX};
use crate::access::connection::CREDENTIAL_ID;
use crate::access::user::User;
use crate::field::quote;
use crate::limits::{TOKEN_CACHE_ENTRIES, TOKEN_CLOCK_LEEWAY};

/// The reason why a token of a service account is not valid. A TokenReview shows these texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TokenError {
    #[error("invalid signature, no keys found")]
    NoKey,
    #[error("invalid signature")]
    Signature,
    #[error("malformed claims: {0}")]
    Claims(String),
    #[error("token audiences {0} is invalid for the target audiences {1}")]
    Audience(String, String),
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("service account token is issued in the future")]
    IssuedLater,
    #[error("resource name may not be empty")]
    NoAccount,
    #[error("serviceaccounts {0} not found")]
    AccountMissing(String),
    #[error("service account {0}/{1} has been deleted")]
    AccountDeleted(String, String),
    #[error("service account UID ({0}) does not match claim ({1})")]
    AccountReplaced(String, String),
    #[error("service account token has been invalidated")]
    Invalidated,
    #[error("{0} claim is {1}")]
    LegacyClaim(&'static str, &'static str),
    #[error("Token has been invalidated")]
    LegacyInvalidated,
    #[error("Token does not match server's copy")]
    LegacyReplaced,
    #[error("ServiceAccount {0}/{1} has been deleted")]
    LegacyAccountDeleted(String, String),
    #[error("ServiceAccount UID ({0}) does not match claim ({1})")]
    LegacyAccountReplaced(String, String),
    #[error(
        "the token in secret {namespace}/{secret} for service account {namespace}/{account} has been marked invalid. \
         Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
         '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
    )]
    LegacyMarked { namespace: String, secret: String, account: String },
}

impl TokenError {
    /// Returns whether the token is invalid only because of its bound objects, which may be outdated on this replica.
    pub const fn is_by_objects(&self) -> bool {
        matches!(
            self,
            Self::AccountMissing(_)
                | Self::AccountDeleted(..)
                | Self::AccountReplaced(..)
                | Self::Invalidated
                | Self::LegacyInvalidated
                | Self::LegacyReplaced
                | Self::LegacyAccountDeleted(..)
                | Self::LegacyAccountReplaced(..)
                | Self::LegacyMarked { .. }
        )
    }
}

/// A token whose signature and claims are valid.
#[derive(Debug)]
pub struct Verified {
    user: Arc<User>,
    /// The audiences of the token; those of the API if the token has none.
    audiences: Vec<String>,
    /// The claims `exp`, `nbf` and `iat`.
    times: [Option<NumericDate>; 3],
    bonds: BoundTo,
    /// Whether the token was used since the cache was last full.
    used: AtomicBool,
}

impl Verified {
    /// Returns the service account as a user.
    pub const fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Returns the audiences of the token.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Returns the warning for a client with this token. `None` if no warning is due.
    pub fn warning(&self) -> Option<&'static str> {
        match &self.bonds {
            BoundTo::Objects { .. } => None,
            BoundTo::Secret(token) => token.warning(),
        }
    }
}

/// The objects on which the validity of a token depends.
#[derive(Debug)]
enum BoundTo {
    /// Objects of a namespace (and a node) that must exist.
    Objects { namespace: String, bonds: Vec<BoundObject> },
    /// The Secret in which the token lives, and its account.
    Secret(LegacyToken),
}

/// An object that must exist for the token to be valid.
#[derive(Debug)]
struct BoundObject {
    kind: BoundKind,
    to: Reference,
    /// Revision at which the object was last found valid; 0 for none.
    seen: AtomicU64,
}

/// Verifies tokens of service accounts.
#[derive(Debug)]
pub struct ServiceAccountTokens {
    keys: KeySet,
    issuers: Vec<String>,
    audiences: Vec<String>,
    objects: Arc<dyn BoundObjects>,
    uses: Arc<LegacyUses>,
    verified: DashMap<[u8; 32], Arc<Verified>>,
}

impl ServiceAccountTokens {
    /// Creates a verifier for these keys and issuers. `audiences` are those of the API.
    pub fn new(keys: KeySet, issuers: &[String], audiences: &[String], objects: Arc<dyn BoundObjects>) -> Self {
        Self {
            keys,
            issuers: issuers.to_vec(),
            audiences: audiences.to_vec(),
            objects,
            uses: Arc::default(),
            verified: DashMap::new(),
        }
    }

    /// Returns the queue of uses of tokens in Secrets.
    pub const fn uses(&self) -> &Arc<LegacyUses> {
        &self.uses
    }

    /// Returns the keys.
    pub const fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// Returns the audiences of the API.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Verifies a token that must be issued for one of `audiences`. Returns `None` if it is not a service account
    /// token. `key` is the SHA-256 digest of the token.
    ///
    /// # Errors
    /// It is a service account token, but not valid.
    pub fn authenticate(
        &self,
        token: &[u8],
        key: &[u8; 32],
        audiences: &[String],
        now: SystemTime,
    ) -> Result<Option<Arc<Verified>>, TokenError> {
        let known = self.verified.get(key).map(|entry| Arc::clone(entry.value()));
        let verified = match known {
            Some(verified) => verified,
            None => match self.verify(token, key)? {
                Some(verified) => self.remember(*key, verified),
                None => return Ok(None),
            },
        };
        verified.used.store(true, Ordering::Relaxed);
        if !verified.audiences.iter().any(|own| audiences.contains(own)) {
            return Err(TokenError::Audience(list(&verified.audiences), list(audiences)));
        }
        self.check(&verified, now)?;
        Ok(Some(verified))
    }

    /// Checks claims and signature.
    fn verify(&self, token: &[u8], digest: &[u8; 32]) -> Result<Option<Verified>, TokenError> {
        #[derive(serde::Deserialize)]
        struct Issuer {
            #[serde(default)]
            iss: String,
        }
        let Some(parts) = Unverified::parse(token) else { return Ok(None) };
        let Ok(Issuer { iss }) = serde_json::from_slice(&parts.payload) else { return Ok(None) };
        let legacy = iss == LEGACY_ISSUER;
        if !legacy && !self.issuers.contains(&iss) {
            return Ok(None);
        }
        let mut candidates = self.keys.candidates(&parts.key_id).peekable();
        if candidates.peek().is_none() {
            return Err(TokenError::NoKey);
        }
        if !candidates.any(|key| key.algorithm.name() == parts.algorithm && key.verify(parts.message, &parts.signature))
        {
            return Err(TokenError::Signature);
        }
        let malformed = |error: serde_json::Error| TokenError::Claims(error.to_string());
        if legacy {
            self.legacy(serde_json::from_slice(&parts.payload).map_err(malformed)?, digest).map(Some)
        } else {
            self.bound(serde_json::from_slice(&parts.payload).map_err(malformed)?).map(Some)
        }
    }

    fn bound(&self, claims: Claims) -> Result<Verified, TokenError> {
        let Kubernetes { namespace, node, pod, secret, serviceaccount, .. } = claims.kubernetes.unwrap_or_default();
        if serviceaccount.name.is_empty() {
            return Err(TokenError::NoAccount);
        }
        let mut user = account_user(&namespace, &serviceaccount);
        let mut facts = |key: &str, value: String| user.extra.insert(key.to_owned(), vec![value]);
        if !claims.jti.is_empty() {
            facts(CREDENTIAL_ID, format!("JTI={}", claims.jti));
        }
        for (kind, reference) in [("pod", &pod), ("node", &node)] {
            if let Some(reference) = reference {
                facts(&format!("authentication.kubernetes.io/{kind}-name"), reference.name.clone());
                facts(&format!("authentication.kubernetes.io/{kind}-uid"), reference.uid.clone());
            }
        }
        let mut bonds = vec![BoundObject::new(BoundKind::ServiceAccount, serviceaccount)];
        // Beside a pod or Secret, the node is only information. Without them, the token is bound to the node.
        let node = if pod.is_some() || secret.is_some() { None } else { node };
        let others = [(BoundKind::Secret, secret), (BoundKind::Pod, pod), (BoundKind::Node, node)];
        bonds.extend(others.into_iter().filter_map(|(kind, to)| Some(BoundObject::new(kind, to?))));
        let audiences = if claims.aud.0.is_empty() { self.audiences.clone() } else { claims.aud.0 };
        let times = [claims.exp, claims.nbf, claims.iat];
        let bonds = BoundTo::Objects { namespace, bonds };
        Ok(Verified { user: user.into(), audiences, times, bonds, used: AtomicBool::new(true) })
    }

    /// Returns a token that lives in a Secret. It has the audiences of the API and does not expire.
    fn legacy(&self, claims: LegacyClaims, digest: &[u8; 32]) -> Result<Verified, TokenError> {
        let token = LegacyToken::new(claims, *digest)?;
        Ok(Verified {
            user: account_user(token.namespace(), token.account()).into(),
            audiences: self.audiences.clone(),
            times: [None; 3],
            bonds: BoundTo::Secret(token),
            used: AtomicBool::new(true),
        })
    }

    /// Checks the conditions that change with time: validity, and the objects to which the token is bound.
    fn check(&self, verified: &Verified, now: SystemTime) -> Result<(), TokenError> {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
        let [exp, nbf, iat] = verified.times;
        if nbf.is_some_and(|nbf| seconds(now + TOKEN_CLOCK_LEEWAY) < nbf.0) {
            return Err(TokenError::NotYet);
        }
        if exp.is_some_and(|exp| seconds(now - TOKEN_CLOCK_LEEWAY) > exp.0) {
            return Err(TokenError::Expired);
        }
        if iat.is_some_and(|iat| seconds(now + TOKEN_CLOCK_LEEWAY) < iat.0) {
            return Err(TokenError::IssuedLater);
        }
        match &verified.bonds {
            BoundTo::Objects { namespace, bonds } => {
                bonds.iter().try_for_each(|bond| self.check_bond(namespace, bond, now))
            }
            BoundTo::Secret(token) => token.check(&*self.objects, &self.uses, now),
        }
    }

    fn check_bond(&self, namespace: &str, bond: &BoundObject, now: SystemTime) -> Result<(), TokenError> {
        let namespace = if bond.kind == BoundKind::Node { "" } else { namespace };
        let name = &bond.to.name;
        let seen = bond.seen.load(Ordering::Relaxed);
        if seen != 0 && self.objects.revision(bond.kind, namespace, name) == Some(seen) {
            return Ok(());
        }
        let found = self.objects.find(bond.kind, namespace, name);
        let gone = found.as_ref().and_then(|found| found.deleted_at).is_some_and(|at| at < now - TOKEN_CLOCK_LEEWAY);
        match (bond.kind, &found) {
            (BoundKind::ServiceAccount, None) => return Err(TokenError::AccountMissing(quote(name))),
            (BoundKind::ServiceAccount, Some(_)) if gone => {
                return Err(TokenError::AccountDeleted(namespace.to_owned(), name.clone()));
            }
            (BoundKind::ServiceAccount, Some(found)) if found.uid != bond.to.uid => {
                return Err(TokenError::AccountReplaced(found.uid.to_string(), bond.to.uid.clone()));
            }
            (BoundKind::ServiceAccount, Some(_)) => {}
            (_, Some(found)) if !gone && found.uid == bond.to.uid => {}
            _ => return Err(TokenError::Invalidated),
        }
        if let Some(found) = found.filter(|found| found.deleted_at.is_none()) {
            bond.seen.store(found.revision, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Caches a verified token. If the cache is full, drops the tokens that were not used since it was last full, or
    /// all if every token was used.
    fn remember(&self, key: [u8; 32], verified: Verified) -> Arc<Verified> {
        if self.verified.len() >= TOKEN_CACHE_ENTRIES {
            self.verified.retain(|_, verified| verified.used.swap(false, Ordering::Relaxed));
            if self.verified.len() >= TOKEN_CACHE_ENTRIES {
                self.verified.clear();
            }
        }
        let verified = Arc::new(verified);
        self.verified.insert(key, Arc::clone(&verified));
        verified
    }
}

impl BoundObject {
    const fn new(kind: BoundKind, to: Reference) -> Self {
        Self { kind, to, seen: AtomicU64::new(0) }
    }
}

/// Returns a service account as a user.
fn account_user(namespace: &str, account: &Reference) -> User {
    User {
        name: format!("{USER_PREFIX}{namespace}:{}", account.name).into(),
        uid: account.uid.as_str().into(),
        groups: vec![GROUP.into(), format!("{GROUP}:{namespace}").into()],
        ..User::default()
    }
    .authenticated()
}

/// Formats a list as messages show it.
fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
