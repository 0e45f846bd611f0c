//! What a webhook says, and whether that is an answer at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value::{Map, Value};

use crate::field::quote;
use crate::status::{ApiError, Details};

/// What a webhook says of a write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Whether the write may be made.
    pub allowed: bool,
    /// A JSON patch of the object, and the type that it states; empty for none.
    pub patch: Vec<u8>,
    /// Type of the patch; empty for none.
    pub patch_type: String,
    /// Why not, as a `Status`.
    pub status: Value,
    /// What the client is to be told.
    pub warnings: Vec<String>,
    /// What the audit log is to have: keys and values.
    pub annotations: Vec<(String, String)>,
}

impl Verdict {
    /// Reads the answer to a review of this version and UID.
    ///
    /// # Errors
    /// What of it is not as it must be, in the reference's words.
    pub fn read(answer: &Value, version: &str, uid: &str, mutating: bool) -> Result<Self, String> {
        let Some(response) = answer.map_at(&["response"]) else { return Err("webhook response was absent".into()) };
        let text = |field: &str| response.get(field).and_then(Value::as_str).unwrap_or("");
        if version == "v1" {
            if text("uid") != uid {
                return Err(format!("expected response.uid={}, got {}", quote(uid), quote(text("uid"))));
            }
            let (api_version, kind) = (answer.str_at(&["apiVersion"]), answer.str_at(&["kind"]));
            if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
                let expected = "admission.k8s.io/v1, Kind=AdmissionReview";
                return Err(format!("expected webhook response of {expected}, got {api_version}, Kind={kind}"));
            }
        }
        let patch = STANDARD.decode(text("patch")).map_err(|error| format!("illegal base64 data: {error}"))?;
        let stated_type = response.get("patchType").filter(|stated| !stated.is_null());
        let (patch, patch_type) = match (version, mutating) {
            ("v1", _) => {
                check_patch(&patch, stated_type, mutating)?;
                (patch, text("patchType").to_owned())
            }
            (_, true) if !patch.is_empty() => (patch, "JSONPatch".to_owned()),
            _ => (Vec::new(), String::new()),
        };
        let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let annotations = response.get("auditAnnotations").and_then(Value::as_object).into_iter().flat_map(Map::iter);
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or("").to_owned()));
        Ok(Self {
            allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or(false),
            patch,
            patch_type,
            status: response.get("status").cloned().unwrap_or_default(),
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
            annotations: annotations.collect(),
        })
    }

    /// The refusal that a client gets of a write which is not allowed by a webhook of this name.
    pub fn refusal(&self, webhook: &str) -> ApiError {
        let text = |field: &str| self.status.str_at(&[field]);
        let denied = format!("admission webhook {} denied the request", quote(webhook));
        let message = match (text("message"), text("reason")) {
            ("", "") => format!("{denied} without explanation"),
            ("", why) | (why, _) => format!("{denied}: {why}"),
        };
        let code = self.status.int_at(&["code"]).and_then(|code| u16::try_from(code).ok());
        let code = code.filter(|code| (400..1_000).contains(code)).unwrap_or(400);
        let mut stated = self.status.as_object().cloned().unwrap_or_else(Map::new);
        stated.insert("message", message.as_str());
        stated.insert("code", i64::from(code));
        if matches!(text("status"), "" | "Success") {
            stated.insert("status", "Failure");
        }
        let details = Details { stated: Value::Object(stated), ..Details::default() };
        ApiError { details: Some(Box::new(details)), ..ApiError::new(code, "", message) }
    }
}

fn check_patch(patch: &[u8], stated_type: Option<&Value>, mutating: bool) -> Result<(), String> {
    let complaint = match (mutating, patch.is_empty(), stated_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, _, Some(stated)) if stated.as_str() == Some("") => "webhook returned invalid response.patchType of \"\"",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(complaint.into())
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn read(response: Value, version: &str, mutating: bool) -> Result<Verdict, String> {
        let api_version = format!("admission.k8s.io/{version}");
        let answer = value!({"kind": "AdmissionReview", "apiVersion": api_version, "response": response});
        Verdict::read(&answer, version, "u", mutating)
    }

    #[test]
    fn answers_are_checked() {
        let refused = |response: Value, mutating: bool| read(response, "v1", mutating).unwrap_err();
        assert_eq!(refused(Value::Null, true), "webhook response was absent");
        assert_eq!(refused(value!({"uid": "x"}), true), "expected response.uid=\"u\", got \"x\"");
        let alone = value!({"uid": "u", "patch": "W10="});
        assert_eq!(refused(alone.clone(), true), "webhook returned response.patch but not response.patchType");
        assert_eq!(refused(alone.clone(), false), "validating webhook may not return response.patch");
        assert_eq!(read(alone, "v1beta1", true).unwrap().patch_type, "JSONPatch");
        let other =
            Verdict::read(&value!({"kind": "A", "apiVersion": "b/c", "response": {"uid": "u"}}), "v1", "u", true);
        let expected = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got b/c, Kind=A";
        assert_eq!(other.unwrap_err(), expected);
    }

    #[test]
    fn refusals_pass_on_what_the_webhook_states() {
        let refusal = |status: Value| Verdict { status, ..Verdict::default() }.refusal("w");
        let error = refusal(Value::Null);
        assert_eq!(
            (error.code, &*error.message),
            (400, "admission webhook \"w\" denied the request without explanation")
        );
        let error = refusal(value!({"code": 418, "reason": "Teapot", "details": {"kind": "x"}}));
        let stated = value!({
            "code": 418, "reason": "Teapot", "details": {"kind": "x"},
            "message": "admission webhook \"w\" denied the request: Teapot", "status": "Failure"
        });
        assert_eq!((error.code, error.stated()), (418, Some(&stated)));
        assert_eq!(refusal(value!({"code": 200})).code, 400);
    }
}
