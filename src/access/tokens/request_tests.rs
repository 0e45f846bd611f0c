use flotilla_proto::value;

use super::super::keys::SigningKey;
use super::*;
use crate::config::TokenOptions;
use crate::limits;

#[derive(Debug)]
struct Objects;

impl BoundObjects for Objects {
    fn revision(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<u64> {
        self.find(kind, namespace, name).map(|found| found.revision)
    }

    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<BoundProperties> {
        match (kind, namespace, name) {
            (BoundKind::Pod, "ns", "p") => Some(BoundProperties {
                uid: "u-p".into(),
                service_account: "bot".into(),
                node: "n".into(),
                ..BoundProperties::default()
            }),
            (BoundKind::Secret, "ns", "s") => Some(BoundProperties { uid: "u-s".into(), ..BoundProperties::default() }),
            (BoundKind::Node, "", "n") => Some(BoundProperties { uid: "u-n".into(), ..BoundProperties::default() }),
            _ => None,
        }
    }
}

fn ask(name: &str, request: Value) -> ApiResult<(Value, serde_json::Value)> {
    ask_with(&TokenOptions::default(), name, request).map(|(answer, claims, _)| (answer, claims))
}

fn ask_with(
    options: &TokenOptions,
    name: &str,
    mut request: Value,
) -> ApiResult<(Value, serde_json::Value, Option<String>)> {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let key = SigningKey::parse(&rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let issuer = Issuer::new(key, "issuer".into()).with(options);
    let account = Account { namespace: "ns".into(), name: name.into(), uid: "u-1".into() };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let fulfilled = fulfil(&issuer, &Objects, &["api".into()], &account, &mut request, now)?;
    let payload = request.str_at(&["status", "token"]).split('.').nth(1).unwrap().to_owned();
    let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    Ok((request, claims, fulfilled.warning))
}

fn refusal(name: &str, reference: Value) -> (u16, String) {
    let mut request = value!({"spec": {}});
    request.set_at(&["spec", "boundObjectRef"], reference);
    let error = ask(name, request).unwrap_err();
    (error.code, error.message)
}

#[test]
fn a_request_without_fields_gets_defaults() {
    let (answer, claims) = ask("bot", value!({"metadata": {}, "spec": {}})).unwrap();
    assert_eq!(answer.int_at(&["spec", "expirationSeconds"]), Some(3_600));
    assert_eq!(answer.str_at(&["status", "expirationTimestamp"]), "1970-01-01T01:16:40Z");
    assert_eq!(answer.str_at(&["metadata", "uid"]), "u-1");
    assert_eq!(claims["aud"], serde_json::json!(["api"]));
    assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(1_000), Some(4_600)));
    assert_eq!(claims["sub"], "system:serviceaccount:ns:bot");
    assert_eq!(claims["kubernetes.io"]["serviceaccount"]["uid"], "u-1");
}

#[test]
fn a_token_for_a_pod_names_its_node_and_lives_long() {
    let request = value!({"spec": {"expirationSeconds": 3_607, "boundObjectRef": {"kind": "Pod", "name": "p"}}});
    let (answer, claims) = ask("bot", request).unwrap();
    let kubernetes = &claims["kubernetes.io"];
    assert_eq!((&kubernetes["pod"]["uid"], &kubernetes["node"]["uid"]), (&"u-p".into(), &"u-n".into()));
    assert_eq!(kubernetes["warnafter"], 4_607);
    assert_eq!(claims["exp"], 1_000 + limits::TOKEN_EXTENDED_SECONDS);
    assert_eq!(answer.str_at(&["status", "expirationTimestamp"]), "1970-01-01T01:16:47Z");
}

#[test]
fn a_configured_limit_shortens_tokens_and_extension_can_be_off() {
    let limited = TokenOptions { service_account_max_token_expiration_seconds: 3_600, ..TokenOptions::default() };
    let request = value!({"spec": {"expirationSeconds": 3_607, "boundObjectRef": {"kind": "Pod", "name": "p"}}});
    let (answer, claims, warning) = ask_with(&limited, "bot", request.clone()).unwrap();
    assert_eq!(warning.unwrap(), "requested expiration of 3607 seconds shortened to 3600 seconds");
    assert_eq!(claims["exp"], 4_600);
    assert_eq!(answer.int_at(&["spec", "expirationSeconds"]), Some(3_600));
    let plain = TokenOptions { service_account_extend_token_expiration: false, ..TokenOptions::default() };
    let (_, claims, warning) = ask_with(&plain, "bot", request).unwrap();
    assert_eq!((claims["exp"].as_i64(), warning), (Some(4_607), None));
}

#[test]
fn wrong_requests_are_refused() {
    let pod = |name: &str| value!({"kind": "Pod", "apiVersion": "v1", "name": (name)});
    assert_eq!(refusal("bot", pod("missing")), (404, "pods \"missing\" not found".into()));
    assert_eq!(
        refusal("other", pod("p")).1,
        "cannot bind token for serviceaccount \"other\" to pod running with different serviceaccount name."
    );
    assert_eq!(refusal("bot", value!({"kind": "Secret"})), (400, "Name parameter required.".into()));
    let odd = value!({"kind": "Secret", "name": "a/b"});
    assert_eq!(refusal("bot", odd), (400, "Name parameter invalid: \"a/b\": may not contain '/'".into()));
    let later = value!({"kind": "Pod", "apiVersion": "v2", "name": "missing"});
    assert_eq!(refusal("bot", later).1, "pods \"missing\" not found");
    let other = value!({"kind": "ConfigMap", "apiVersion": "v1", "name": "s"});
    assert_eq!(refusal("bot", other).1, "cannot bind token to object of type /v1, Kind=ConfigMap");
    let replaced = value!({"kind": "Secret", "name": "s", "uid": "x"});
    let (code, message) = refusal("bot", replaced);
    assert_eq!(code, 409);
    assert!(message.starts_with(
        "Operation cannot be fulfilled on Secret \"s\": the UID in the bound object reference (x) does not match"
    ));
    for (seconds, why) in [(599, "less than 10 minutes"), (4_294_967_297_i64, "larger than 2^32 seconds")] {
        let error = ask("bot", value!({"spec": {"expirationSeconds": (seconds)}})).unwrap_err();
        assert!(error.code == 422 && error.message.contains(why), "{}", error.message);
    }
    assert_eq!(ask("bot", value!({"metadata": {"name": "other"}})).unwrap_err().code, 422);
    assert_eq!(ask("bot", value!({"metadata": {"namespace": "other"}})).unwrap_err().code, 400);
}
