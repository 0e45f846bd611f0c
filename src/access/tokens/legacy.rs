//! Checks tokens that live in Secrets, and records the day on which each was last used (KEP-2799).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use flotilla_proto::time::Timestamp;
use ring::digest::{SHA256, digest};

use super::USER_PREFIX;
use super::bound::{BoundKind, BoundObjects, BoundProperties};
use super::claims::{LegacyClaims, Reference};
use super::uses::{LegacyUses, Use};
use super::verify::TokenError;
use crate::field::quote;

/// The label of a Secret with the day on which its token was last used.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label of a Secret with the day since which its token is refused.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// The warning for clients whose token was generated without a request for it.
const GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                         auto-generated secret-based tokens.";
/// Seconds of a day in UTC: days are counted and labelled without leap seconds.
pub const SECONDS_PER_DAY: i64 = 86_400;

/// Formats the day of a time as the labels have it: `2026-01-31`.
pub fn day_of(time: Timestamp) -> String {
    let mut text = time.to_string();
    text.truncate("2026-01-31".len());
    text
}

/// A token in a Secret.
#[derive(Debug)]
pub(super) struct LegacyToken {
    namespace: String,
    secret: String,
    account: Reference,
    digest: [u8; 32],
    /// The revisions of the Secret and of the account with which the token was last found valid; 0 for none.
    valid_with: [AtomicU64; 2],
    /// Whether the account lists the Secret: it does if Kubernetes generated the token without a request.
    is_generated: AtomicBool,
    /// The day, counted from 1970, of the last use that is recorded or queued; 0 for none.
    noted: AtomicI64,
}

impl LegacyToken {
    /// Reads the claims of a token. `digest` is that of the token.
    ///
    /// # Errors
    /// A claim is missing or contradicts the others.
    pub(super) fn new(claims: LegacyClaims, digest: [u8; 32]) -> Result<Self, TokenError> {
        let required = [
            ("sub", &claims.sub),
            ("namespace", &claims.namespace),
            ("secretName", &claims.secret),
            ("serviceAccountName", &claims.account),
            ("serviceAccountUID", &claims.account_uid),
        ];
        if let Some((name, _)) = required.into_iter().find(|(_, value)| value.is_empty()) {
            return Err(TokenError::LegacyClaim(name, "missing"));
        }
        if claims.sub != format!("{USER_PREFIX}{}:{}", claims.namespace, claims.account) {
            return Err(TokenError::LegacyClaim("sub", "invalid"));
        }
        Ok(Self {
            namespace: claims.namespace,
            secret: claims.secret,
            account: Reference { name: claims.account, uid: claims.account_uid },
            digest,
            valid_with: [AtomicU64::new(0), AtomicU64::new(0)],
            is_generated: AtomicBool::new(false),
            noted: AtomicI64::new(0),
        })
    }

    /// Returns the namespace of the account and the Secret.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the account.
    pub(super) const fn account(&self) -> &Reference {
        &self.account
    }

    /// Returns the warning for a client with this token. `None` if no warning is due.
    pub(super) fn warning(&self) -> Option<&'static str> {
        self.is_generated.load(Ordering::Relaxed).then_some(GENERATED)
    }

    /// Checks the token against its Secret and its account, and records its use.
    ///
    /// # Errors
    /// The Secret or the account is missing, being deleted or replaced, or the Secret is marked as invalid.
    pub(super) fn check(
        &self,
        objects: &dyn BoundObjects,
        uses: &LegacyUses,
        now: SystemTime,
    ) -> Result<(), TokenError> {
        let found = [self.object(BoundKind::Secret), self.object(BoundKind::ServiceAccount)];
        let revisions = found.map(|(kind, name)| objects.revision(kind, &self.namespace, name));
        let known = self.valid_with.each_ref().map(|revision| Some(revision.load(Ordering::Relaxed)));
        let checked = if revisions == known { Ok(()) } else { self.compare(objects) };
        if matches!(checked, Ok(()) | Err(TokenError::LegacyMarked { .. })) {
            self.note(objects, uses, now);
        }
        checked
    }

    fn object(&self, kind: BoundKind) -> (BoundKind, &str) {
        (kind, if kind == BoundKind::Secret { &self.secret } else { &self.account.name })
    }

    fn compare(&self, objects: &dyn BoundObjects) -> Result<(), TokenError> {
        let find = |(kind, name): (BoundKind, &str)| objects.find(kind, &self.namespace, name);
        let secret = find(self.object(BoundKind::Secret)).filter(|secret| secret.deleted_at.is_none());
        let secret = secret.ok_or(TokenError::LegacyInvalidated)?;
        if secret.token.as_ref().is_none_or(|token| digest(&SHA256, token).as_ref() != self.digest) {
            return Err(TokenError::LegacyReplaced);
        }
        let Reference { name, uid } = &self.account;
        let account = find(self.object(BoundKind::ServiceAccount));
        let account = account.ok_or_else(|| TokenError::AccountMissing(quote(name)))?;
        if account.deleted_at.is_some() {
            return Err(TokenError::LegacyAccountDeleted(self.namespace.clone(), name.clone()));
        }
        if account.uid != *uid {
            return Err(TokenError::LegacyAccountReplaced(account.uid.to_string(), uid.clone()));
        }
        self.noted.store(0, Ordering::Relaxed); // a client may have removed the label
        if !secret.invalid_since.is_empty() {
            let (namespace, secret) = (self.namespace.clone(), self.secret.clone());
            return Err(TokenError::LegacyMarked { namespace, secret, account: name.clone() });
        }
        self.is_generated.store(account.secrets.iter().any(|listed| *listed == self.secret), Ordering::Relaxed);
        for (valid, found) in self.valid_with.iter().zip([&secret, &account]) {
            valid.store(found.revision, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Queues the day of this use for recording, unless the Secret has it already. The clock of another member may be
    /// ahead: then the Secret has the next day, which suffices.
    fn note(&self, objects: &dyn BoundObjects, uses: &LegacyUses, now: SystemTime) {
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
        let today = seconds / SECONDS_PER_DAY;
        if self.noted.load(Ordering::Relaxed) == today {
            return;
        }
        let Some(BoundProperties { uid, last_used, .. }) =
            objects.find(BoundKind::Secret, &self.namespace, &self.secret)
        else {
            return;
        };
        let day = |ahead| day_of(Timestamp { seconds: seconds + ahead, nanos: 0 });
        let is_recorded = last_used == day(0) || last_used == day(SECONDS_PER_DAY);
        let used = || Use { namespace: self.namespace.clone(), secret: self.secret.clone(), uid: uid.into() };
        if is_recorded || uses.add(used()) {
            self.noted.store(today, Ordering::Relaxed);
        }
    }
}
