//! Signs the ConfigMap `cluster-info` with every bootstrap token that is meant for it, so that a node that joins by a
//! token can verify the address and the authority of the cluster (Kubernetes documentation, "Authenticating with
//! Bootstrap Tokens", section "ConfigMap Signing").

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flotilla_cluster::{Interest, Scope, Selection};
use flotilla_proto::value::Value;
use ring::hmac;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::follow::follow;
use crate::kinds::expiry::{self, BOOTSTRAP_TOKEN_NAMESPACE, BOOTSTRAP_TOKEN_TYPE};
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
/// The path of the text that is signed.
const CONTENT: [&str; 2] = ["data", "kubeconfig"];
/// The prefix of the members of `data` that hold signatures. The token's id follows it.
const SIGNATURE: &str = "jws-kubeconfig-";

/// Signs the map, now and whenever it or a token has changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let (maps, secrets) = (agent.resource("", "configmaps")?, agent.resource("", "secrets")?);
    let queue = Queue::new(measured);
    let (map_table, secret_table) = (agent.registry.tables.table(&maps), agent.registry.tables.table(&secrets));
    let of_token = tokens_interest();
    let of_map = Interest { namespace: Some(NAMESPACE.into()), ..Interest::default() };
    tokio::join!(
        follow(&map_table, of_map, |seen| {
            if seen.live().is_some_and(|map| map.key().name() == NAME) {
                queue.add(());
            }
        }),
        follow(&secret_table, of_token, |seen| {
            if seen.live().or(seen.deleted()).is_some() {
                queue.add(());
            }
        }),
        queue.work(1, |()| async { sign(&agent, &maps, &secrets).await.map(|()| Requeue::Never) }),
    );
    Ok(())
}

fn tokens_interest() -> Interest {
    Interest {
        namespace: Some(BOOTSTRAP_TOKEN_NAMESPACE.into()),
        field: Some(("type".into(), BOOTSTRAP_TOKEN_TYPE.into())),
        ..Interest::default()
    }
}

async fn sign(agent: &Agent, maps: &Arc<Served>, secrets: &Arc<Served>) -> ApiResult<()> {
    let target = Target::object(maps, NAMESPACE, NAME);
    let Some(map) = agent.get(target)? else { return Ok(()) };
    let tokens = tokens(agent, secrets)?;
    let Some(wanted) = signatures(&map, &tokens) else { return Ok(()) };
    if signed(&map).eq(wanted.iter().map(|(id, signature)| (&**id, &**signature))) {
        return Ok(());
    }
    let edited = agent.edit(target, map.str_at(&["metadata", "uid"]), |map| {
        // Another writer may have changed the signed text meanwhile.
        let Some(wanted) = signatures(map, &tokens) else { return };
        let Some(data) = map.get_mut("data").and_then(Value::as_object_mut) else { return };
        data.retain(|key, _| !key.starts_with(SIGNATURE));
        for (id, signature) in wanted {
            map.set_at(&["data", &format!("{SIGNATURE}{id}")], signature);
        }
    });
    match edited.await {
        Err(ApiError { code: 404, .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the signatures in a map, by the ids of their tokens.
fn signed(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    let data = map.map_at(&["data"]).into_iter().flat_map(|data| data.iter());
    let found = data.filter_map(|(key, value)| Some((key.strip_prefix(SIGNATURE)?, value.as_str()?)));
    found.collect::<BTreeMap<_, _>>().into_iter()
}

/// Returns the signatures that a map must have, by the ids of their tokens. `None` if there is nothing to sign.
fn signatures(map: &Value, tokens: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    let content = map.at(&CONTENT).as_str()?;
    Some(tokens.iter().map(|(id, secret)| (id.clone(), signature(content, id, secret))).collect())
}

/// Signs a text: a JSON Web Signature with detached content (RFC 7515, appendix F), by HMAC with SHA-256.
fn signature(content: &str, id: &str, secret: &str) -> String {
    // The id has only lower-case letters and digits, see `token`.
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
}

/// Returns the valid tokens for signing: their ids and secrets.
fn tokens(agent: &Agent, secrets: &Arc<Served>) -> ApiResult<BTreeMap<String, String>> {
    let snapshot = agent.registry.tables.table(secrets).snapshot();
    let interest = tokens_interest();
    let selection =
        Selection { scope: Scope::namespace(BOOTSTRAP_TOKEN_NAMESPACE), field: interest.field, ..Selection::default() };
    let mut tokens = BTreeMap::new();
    for batch in scan(&snapshot, selection) {
        let found = batch.map_err(ApiError::internal)?;
        tokens.extend(found.iter().filter_map(|secret| token(&stored_value(secret).ok()?)));
    }
    Ok(tokens)
}

/// Returns the id and secret of a token. `None` if the Secret is not a token that is valid for signing.
fn token(secret: &Value) -> Option<(String, String)> {
    let data = |key: &str| String::from_utf8(STANDARD.decode(secret.str_at(&["data", key])).ok()?).ok();
    let id = secret.str_at(&["metadata", "name"]).strip_prefix("bootstrap-token-")?;
    let is_id = id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    let has_expired = expiry::of_bootstrap_token(secret).is_some_and(|end| end.seconds <= now().seconds);
    let is_valid = is_id
        && secret.str_at(&["type"]) == BOOTSTRAP_TOKEN_TYPE
        && secret.at(&["metadata", "deletionTimestamp"]).is_null()
        && data("token-id")? == id
        && data("usage-bootstrap-signing")? == "true"
        && !has_expired;
    let secret = data("token-secret").filter(|secret| is_valid && !secret.is_empty())?;
    Some((id.to_owned(), secret))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn secret(changed: &[(&str, &str)]) -> Value {
        let mut secret = value!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": (BOOTSTRAP_TOKEN_TYPE)});
        let data = [("token-id", "abcdef"), ("token-secret", "0123456789abcdef"), ("usage-bootstrap-signing", "true")];
        for (key, value) in data.iter().chain(changed) {
            secret.set_at(&["data", key], STANDARD.encode(value));
        }
        secret
    }

    #[test]
    fn tokens_sign_if_they_allow_signing_and_are_valid() {
        assert_eq!(token(&secret(&[])), Some(("abcdef".into(), "0123456789abcdef".into())));
        assert!(token(&secret(&[("expiration", "2999-01-01T00:00:00Z")])).is_some());
        for unfit in [
            ("usage-bootstrap-signing", "yes"),
            ("token-id", "abcdeg"),
            ("token-secret", ""),
            ("expiration", "2020-01-01T00:00:00Z"),
            ("expiration", "soon"),
        ] {
            assert_eq!(token(&secret(&[unfit])), None, "{unfit:?}");
        }
    }

    #[test]
    fn a_signature_is_detached_and_depends_on_content_id_and_secret() {
        // As Python's `hmac` computes it.
        let expected = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..CoZmgliQrL6yXSqrrxsyRrBUY12-qGAT34CgalrvfUw";
        assert_eq!(signature("a", "abcdef", "0123456789abcdef"), expected);
        assert_ne!(signature("b", "abcdef", "0123456789abcdef"), expected);
    }

    #[test]
    fn signatures_of_removed_tokens_are_removed() {
        let map = value!({"data": {"kubeconfig": "a", "jws-kubeconfig-zzzzzz": "old", "other": "b"}});
        let tokens = BTreeMap::from([("abcdef".to_owned(), "s".to_owned())]);
        let wanted = signatures(&map, &tokens).unwrap();
        assert_eq!(wanted.keys().collect::<Vec<_>>(), ["abcdef"]);
        assert_eq!(signed(&map).collect::<Vec<_>>(), [("zzzzzz", "old")]);
        assert_eq!(signatures(&value!({"data": {}}), &tokens), None);
    }
}
