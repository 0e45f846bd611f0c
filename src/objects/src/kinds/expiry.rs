//! Expiry of objects that a controller removes: CertificateSigningRequests and bootstrap tokens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use crate::rules::key_pair::pem_blocks;

/// The namespace of bootstrap tokens, with which nodes join.
pub const BOOTSTRAP_TOKEN_NAMESPACE: &str = "kube-system";
/// The type of Secrets with bootstrap tokens.
pub const BOOTSTRAP_TOKEN_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Seconds for which a request is kept after its certificate was issued, or after it was denied or failed.
const ANSWERED_SECONDS: i64 = 3_600;
/// Seconds for which a request is kept while it waits for an approval, and again while it waits for its certificate.
const PENDING_SECONDS: i64 = 24 * 3_600;

/// Returns when a CertificateSigningRequest expires: some time after its creation or its last answer, but no later than
/// its certificate. Returns `None` if it does not expire.
pub fn of_certificate_request(request: &Value) -> Option<Timestamp> {
    let after = |since: &str, seconds: i64| {
        let since = Timestamp::parse(since).ok()?;
        Some(Timestamp { seconds: since.seconds.saturating_add(seconds), nanos: 0 })
    };
    let conditions = request.list_at(&["status", "conditions"]);
    if conditions.is_empty() {
        return after(request.str_at(&["metadata", "creationTimestamp"]), PENDING_SECONDS);
    }
    let certificate = STANDARD.decode(request.str_at(&["status", "certificate"])).unwrap_or_default();
    let ends = conditions.iter().flat_map(|condition| {
        let updated = condition.str_at(&["lastUpdateTime"]);
        match condition.str_at(&["type"]) {
            "Approved" if certificate.is_empty() => [after(updated, PENDING_SECONDS), None],
            "Approved" => [after(updated, ANSWERED_SECONDS), runs_out(&certificate)],
            "Denied" | "Failed" => [after(updated, ANSWERED_SECONDS), None],
            _ => [None, None],
        }
    });
    ends.flatten().min_by_key(|end| end.seconds)
}

/// Returns when the first certificate of a PEM chain expires.
fn runs_out(pem: &[u8]) -> Option<Timestamp> {
    let first = pem_blocks(pem).into_iter().next()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(&first.der).ok()?;
    Some(Timestamp { seconds: certificate.validity().not_after.timestamp(), nanos: 0 })
}

/// Returns when a bootstrap token expires. A token with a time that cannot be parsed has expired. Returns `None` if the
/// token does not expire.
pub fn of_bootstrap_token(secret: &Value) -> Option<Timestamp> {
    let is_token = secret.str_at(&["type"]) == BOOTSTRAP_TOKEN_TYPE;
    let stated = Some(secret.str_at(&["data", "expiration"])).filter(|stated| is_token && !stated.is_empty())?;
    let text = STANDARD.decode(stated).ok().and_then(|text| String::from_utf8(text).ok());
    let end = text.and_then(|text| Timestamp::parse(&text).ok());
    Some(end.unwrap_or(Timestamp { seconds: 0, nanos: 0 }))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn requests_expire_some_time_after_their_answer() {
        let created = value!({"creationTimestamp": "2026-01-01T00:00:00Z"});
        let of = |conditions: Value, certificate: &str| {
            let status = value!({"conditions": conditions, "certificate": (STANDARD.encode(certificate))});
            let request = value!({"metadata": (created.clone()), "status": status});
            of_certificate_request(&request).map(|end| end.to_string())
        };
        let condition = |kind: &str| value!([{"type": kind, "lastUpdateTime": "2026-01-02T00:00:00Z"}]);
        assert_eq!(of(Value::Null, "").as_deref(), Some("2026-01-02T00:00:00Z"));
        assert_eq!(of(condition("Approved"), "").as_deref(), Some("2026-01-03T00:00:00Z"));
        assert_eq!(of(condition("Approved"), "none").as_deref(), Some("2026-01-02T01:00:00Z"));
        assert_eq!(of(condition("Denied"), "").as_deref(), Some("2026-01-02T01:00:00Z"));
        assert_eq!(of(condition("Failed"), "").as_deref(), Some("2026-01-02T01:00:00Z"));
        assert_eq!(of(condition("Other"), ""), None);
        let certified = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).unwrap().cert.pem();
        assert_eq!(of(condition("Approved"), &certified).as_deref(), Some("2026-01-02T01:00:00Z"));
    }

    #[test]
    fn tokens_expire_at_their_time_or_if_it_is_malformed() {
        let of = |kind: &str, expiration: &str| {
            let secret = value!({"type": kind, "data": {"expiration": (STANDARD.encode(expiration))}});
            of_bootstrap_token(&secret).map(|end| end.seconds)
        };
        assert_eq!(of(BOOTSTRAP_TOKEN_TYPE, "2026-01-01T00:00:00Z"), Some(1_767_225_600));
        assert_eq!(of(BOOTSTRAP_TOKEN_TYPE, "soon"), Some(0));
        assert_eq!((of("Opaque", "soon"), of(BOOTSTRAP_TOKEN_TYPE, "")), (None, None));
    }
}
