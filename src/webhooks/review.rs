//! Reading the review in the answer of a webhook.

use bytes::Bytes;
use flotilla_proto::value::Value;

use super::call_error::{CallError, refused};
use crate::field::quote;
use crate::type_meta;

/// Returns whether an answer with this code may hold a review.
pub(super) fn is_success(code: u16) -> bool {
    (200..=206).contains(&code)
}

/// Reads the review from an answer. Kind and version may be missing; the caller checks them.
pub(super) fn document(code: u16, media: &str, body: &Bytes, asked: &Value) -> Result<Value, CallError> {
    if !is_success(code) {
        return Err(refused(code, media, body));
    }
    let failed = |why: String| CallError::unreachable(why);
    if body.is_empty() {
        return Err(failed(format!("0-length response with status code: {code} and content type: {media}")));
    }
    let document = type_meta::parse(body).map_err(failed)?;
    if document.is_null() {
        return Ok(Value::object());
    }
    check_kind(&document, asked).map_err(failed)?;
    Ok(document)
}

/// The versions of the kinds of reviews that have several versions.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Checks that a document has the kind and version of the review that was sent. Missing ones are accepted.
fn check_kind(document: &Value, asked: &Value) -> Result<(), String> {
    let or = |field: &str| match document.str_at(&[field]) {
        "" => asked.str_at(&[field]).to_owned(),
        stated => stated.to_owned(),
    };
    let (version, kind) = (or("apiVersion"), or("kind"));
    let (own_version, own_kind) = (asked.str_at(&["apiVersion"]), asked.str_at(&["kind"]));
    if (&*version, &*kind) == (own_version, own_kind) {
        return Ok(());
    }
    let last = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
    let group = own_version.split('/').next().unwrap_or_default();
    let registered = |version: &str| VERSIONS.iter().any(|known| version == format!("{group}/{known}"));
    let is_other_review = kind == own_kind && registered(own_version) && registered(&version);
    Err(match is_other_review || (&*version, &*kind) == ("v1", "Status") {
        true => {
            format!("converting ({}.{kind}) to ({}.{own_kind}): unknown conversion", last(&version), last(own_version))
        }
        false => {
            let (kind, version) = (quote(&kind), quote(&version));
            format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
        }
    })
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn answers_that_are_no_reviews_are_errors() {
        let asked = value!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
        let error_of = |code: u16, body: &'static str| {
            document(code, "text/plain", &Bytes::from_static(body.as_bytes()), &asked).unwrap_err()
        };
        let of_500 = error_of(500, "oh no\n");
        assert_eq!(of_500.message, "an error on the server (\"oh no\") has prevented the request from succeeding");
        assert_eq!(of_500.code, 500);
        let redirect = "the server responded with the status code 302 but did not return more information";
        assert_eq!(error_of(302, "").message, redirect);
        assert!(error_of(200, "<html>").message.contains("json: cannot unmarshal string into Go value of type struct"));
        assert_eq!(refused(500, "application/json", &Bytes::from_static(b"{}")).message.matches("unknown").count(), 1);
        let written = document(200, "", &Bytes::from_static(b"kind: AdmissionReview"), &asked).unwrap();
        assert_eq!(written.str_at(&["kind"]), "AdmissionReview");
        assert_eq!(error_of(200, "").message, "0-length response with status code: 200 and content type: text/plain");
        let list = "json: cannot unmarshal array into Go value of type struct { APIVersion string ";
        assert!(error_of(200, "[]").message.contains(list));
        let number = "json: cannot unmarshal number into Go struct field .kind of type string";
        assert!(error_of(200, r#"{"kind": 5}"#).message.contains(number));
        let other = r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#;
        let converting = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion";
        assert_eq!(error_of(200, other).message, converting);
        let unknown =
            "no kind \"X\" is registered for version \"admission.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"";
        assert_eq!(error_of(200, r#"{"kind": "X"}"#).message, unknown);
        let nothing = document(200, "", &Bytes::from_static(b"null"), &asked).unwrap();
        assert_eq!(nothing, Value::object());
        assert_eq!(error_of(403, r#"{"kind": "Status", "message": "no", "code": 418}"#).code, 418);
    }
}
