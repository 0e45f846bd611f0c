//! Authenticates joining nodes by tokens in Secrets (Kubernetes documentation, "Authenticating with Bootstrap Tokens").

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_cluster::{Key, Store, Table, TableId};
use flotilla_proto::json;
use flotilla_proto::value::Value;
use ring::digest::{SHA256, digest};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::user::User;
use crate::limits;
use crate::unreadable;

/// Type of a Secret that holds a bootstrap token.
const TYPE: &str = "bootstrap.kubernetes.io/token";
/// Namespace of these Secrets.
const NAMESPACE: &str = "kube-system";
/// Group of every user of a bootstrap token. The names of further groups begin with it and a colon.
const GROUP: &str = "system:bootstrappers";

/// Authenticates bootstrap tokens.
pub struct BootstrapTokens(Arc<Table>);

impl std::fmt::Debug for BootstrapTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootstrapTokens")
    }
}

impl BootstrapTokens {
    /// Creates an authenticator that reads this store.
    pub fn new(store: &Store) -> Self {
        Self(store.table(&TableId::new("secrets")))
    }

    /// Returns whether a token has the form of a bootstrap token.
    pub fn is_one(token: &[u8]) -> bool {
        split(token).is_some()
    }

    /// Returns the user of a token. `None` if the token is not valid.
    pub fn user(&self, token: &[u8], now: SystemTime) -> Option<User> {
        let (id, secret) = split(token)?;
        let object = self.0.get(Key::namespaced(NAMESPACE, &format!("bootstrap-token-{id}")).as_str())?;
        unreadable::prove(&object).ok()?;
        let found = json::parse(&object.bytes()[..]).ok()?;
        match judge(&found, id, secret, now) {
            Ok(user) => Some(user),
            Err(why) => {
                tracing::debug!(id, why, "bootstrap token refused");
                None
            }
        }
    }
}

/// Splits a token into its id and secret: six and sixteen lower-case letters and digits, separated by a dot.
fn split(token: &[u8]) -> Option<(&str, &str)> {
    let (id, secret) = std::str::from_utf8(token).ok()?.split_once('.')?;
    let fits = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    };
    (fits(id, 6) && fits(secret, 16)).then_some((id, secret))
}

/// Returns the user to whom a Secret assigns the token with this id and secret. `Err` has the reason why the token is
/// refused.
fn judge(found: &Value, id: &str, secret: &str, now: SystemTime) -> Result<User, &'static str> {
    let data = |key: &str| {
        let bytes = STANDARD.decode(found.str_at(&["data", key])).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    };
    if !found.str_at(&["metadata", "deletionTimestamp"]).is_empty() {
        return Err("its Secret is being deleted");
    }
    if found.str_at(&["type"]) != TYPE {
        return Err("its Secret has another type");
    }
    // Compares digests: the time that this takes reveals nothing about the secret.
    let hash = |text: &str| digest(&SHA256, text.as_bytes());
    if hash(&data("token-secret")).as_ref() != hash(secret).as_ref() || data("token-id") != id {
        return Err("its Secret has another id or secret");
    }
    let expires = data("expiration");
    let is_over = |time: OffsetDateTime| SystemTime::from(time) <= now;
    if !expires.is_empty() && OffsetDateTime::parse(&expires, &Rfc3339).map_or(true, is_over) {
        return Err("it has expired");
    }
    if data("usage-bootstrap-authentication") != "true" {
        return Err("it is not meant for authentication");
    }
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    let extra = data("auth-extra-groups");
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        if !is_group(group) {
            return Err("its Secret names a group that bootstrap tokens cannot assign");
        }
        groups.insert(group.to_owned());
    }
    let groups = groups.into_iter().map(Into::into).collect();
    let user = User { name: format!("system:bootstrap:{id}").into(), groups, ..User::default() };
    Ok(user.authenticated())
}

/// Returns whether bootstrap tokens may assign a group.
fn is_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':')) else { return false };
    let plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    rest.len() <= limits::BOOTSTRAP_GROUP_BYTES
        && rest.bytes().all(|byte| plain(byte) || matches!(byte, b':' | b'-'))
        && rest.bytes().next_back().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flotilla_proto::value;

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn secret(of: &[(&str, &str)]) -> Value {
        let mut data =
            vec![("token-id", "abcdef"), ("token-secret", SECRET), ("usage-bootstrap-authentication", "true")];
        data.extend(of);
        let mut secret = value!({"type": TYPE, "metadata": {"name": "bootstrap-token-abcdef"}, "data": {}});
        let data = data.iter().map(|(key, value)| (*key, Value::from(STANDARD.encode(value).as_str())));
        if let Value::Object(members) = &mut secret {
            members.insert("data", Value::Object(data.collect()));
        }
        secret
    }

    #[test]
    fn a_token_is_split_into_id_and_secret() {
        assert_eq!(split(b"abcdef.0123456789abcdef"), Some(("abcdef", SECRET)));
        for other in ["abcde.0123456789abcdef", "abcdef.0123456789abcde", "Abcdef.0123456789abcdef", "abcdef", ""] {
            assert_eq!(split(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_valid_secret_assigns_user_and_groups() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        let user = |of: &[(&str, &str)]| judge(&secret(of), "abcdef", SECRET, now);
        let found = user(&[("auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a")]).unwrap();
        assert_eq!(found.name, "system:bootstrap:abcdef");
        let groups =
            ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b", "system:authenticated"];
        assert_eq!(found.groups, groups);
        assert!(user(&[("expiration", "1970-01-01T00:02:00Z")]).is_ok());
        for of in [
            ("expiration", "1970-01-01T00:01:00Z"),
            ("expiration", "soon"),
            ("usage-bootstrap-authentication", "yes"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers:"),
            ("token-id", "abcdeg"),
            ("token-secret", "0123456789abcdeg"),
        ] {
            assert!(user(&[of]).is_err(), "{of:?}");
        }
        assert!(judge(&value!({"type": "Opaque"}), "abcdef", SECRET, now).is_err());
    }
}
