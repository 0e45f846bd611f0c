//! Reads the answer of a webhook and checks that it is valid.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use flotilla_proto::value::{Map, Value};

use crate::field::quote;
use crate::status::{ApiError, Details};
use crate::webhooks::typed::{self, TypedMember};

/// The reasons why an answer is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// It does not have the form of a review.
    Malformed(String),
    /// It is a review without a valid response.
    Invalid(String),
}

impl Unread {
    /// Returns the message of the error.
    pub fn message(self) -> String {
        match self {
            Self::Malformed(why) => format!("failed to call webhook: {why}"),
            Self::Invalid(why) => format!("received invalid webhook response: {why}"),
        }
    }
}

/// The types that members of a review must have.
const MEMBERS: &[TypedMember] = &[
    of_response(&["response"], "AdmissionReview", "v1.AdmissionResponse", is_object),
    of_response(&["response", "uid"], "AdmissionResponse", "types.UID", is_text),
    of_response(&["response", "allowed"], "AdmissionResponse", "bool", is_switch),
    of_response(&["response", "status"], "AdmissionResponse", "v1.Status", is_object),
    of_response(&["response", "status", "status"], "Status", "string", is_text),
    of_response(&["response", "status", "message"], "Status", "string", is_text),
    of_response(&["response", "status", "reason"], "Status", "v1.StatusReason", is_text),
    of_response(&["response", "status", "code"], "Status", "int32", is_number),
    of_response(&["response", "patch"], "AdmissionResponse", "[]uint8", is_text),
    of_response(&["response", "patchType"], "AdmissionResponse", "v1.PatchType", is_text),
    of_response(&["response", "auditAnnotations"], "AdmissionResponse", "map[string]string", is_object),
    of_response(&["response", "auditAnnotations", "{}"], "AdmissionResponse", "string", is_text),
    of_response(&["response", "warnings"], "AdmissionResponse", "[]string", is_list),
    of_response(&["response", "warnings", "[]"], "AdmissionResponse", "string", is_text),
];

const fn of_response(
    path: &'static [&'static str],
    of: &'static str,
    called: &'static str,
    takes: fn(&Value) -> bool,
) -> TypedMember {
    TypedMember { path, of, called, takes }
}

fn is_object(value: &Value) -> bool {
    value.as_object().is_some()
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some()
}

fn is_switch(value: &Value) -> bool {
    value.as_bool().is_some()
}

fn is_list(value: &Value) -> bool {
    value.as_array().is_some()
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(number) if i32::try_from(*number).is_ok())
}

/// The decision of a webhook about a write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReviewResponse {
    /// Whether the write may go on.
    pub allowed: bool,
    /// A JSON patch of the object; empty for none.
    pub patch: Vec<u8>,
    /// Type of the patch; empty for none.
    pub patch_type: String,
    /// The `Status` that explains a refusal.
    pub status: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Audit annotations: keys and values.
    pub annotations: Vec<(String, String)>,
}

impl ReviewResponse {
    /// Reads the answer to the review with this version and UID.
    ///
    /// # Errors
    /// The answer is invalid. The error has the reference's wording.
    pub fn read(answer: &Value, version: &str, uid: &str, mutating: bool) -> Result<Self, Unread> {
        typed::check(answer, MEMBERS).map_err(Unread::Malformed)?;
        let patch = answer.str_at(&["response", "patch"]);
        let patch = STANDARD.decode(patch).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
                DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => patch.len(),
            };
            Unread::Malformed(format!("illegal base64 data at input byte {at}"))
        })?;
        Self::judge(answer, patch, version, uid, mutating).map_err(Unread::Invalid)
    }

    fn judge(answer: &Value, patch: Vec<u8>, version: &str, uid: &str, mutating: bool) -> Result<Self, String> {
        let Some(response) = answer.map_at(&["response"]) else { return Err("webhook response was absent".into()) };
        let text = |field: &str| response.get(field).and_then(Value::as_str).unwrap_or("");
        if version == "v1" {
            if text("uid") != uid {
                return Err(format!("expected response.uid={}, got {}", quote(uid), quote(text("uid"))));
            }
            let (api_version, kind) = (answer.str_at(&["apiVersion"]), answer.str_at(&["kind"]));
            if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
                let expected = "admission.k8s.io/v1, Kind=AdmissionReview";
                let api_version = if api_version.is_empty() { "/" } else { api_version };
                return Err(format!("expected webhook response of {expected}, got {api_version}, Kind={kind}"));
            }
        }
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

    /// Returns the error of a write that the webhook of this name refuses.
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

    fn read(response: Value, version: &str, mutating: bool) -> Result<ReviewResponse, String> {
        let api_version = format!("admission.k8s.io/{version}");
        let answer = value!({"kind": "AdmissionReview", "apiVersion": api_version, "response": response});
        ReviewResponse::read(&answer, version, "u", mutating).map_err(Unread::message)
    }

    #[test]
    fn answers_are_checked() {
        let refused = |response: Value, mutating: bool| {
            let why = read(response, "v1", mutating).unwrap_err();
            why.trim_start_matches("received invalid webhook response: ").to_owned()
        };
        assert_eq!(refused(Value::Null, true), "webhook response was absent");
        assert_eq!(refused(value!({"uid": "x"}), true), "expected response.uid=\"u\", got \"x\"");
        let alone = value!({"uid": "u", "patch": "W10="});
        assert_eq!(refused(alone.clone(), true), "webhook returned response.patch but not response.patchType");
        assert_eq!(refused(alone.clone(), false), "validating webhook may not return response.patch");
        assert_eq!(read(alone, "v1beta1", true).unwrap().patch_type, "JSONPatch");
        let other = ReviewResponse::read(
            &value!({"kind": "A", "apiVersion": "b/c", "response": {"uid": "u"}}),
            "v1",
            "u",
            true,
        );
        let expected = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got b/c, Kind=A";
        assert_eq!(other.unwrap_err(), Unread::Invalid(expected.into()));
    }

    #[test]
    fn answers_with_members_of_other_types_are_malformed() {
        let refused = |response: Value| read(response, "v1", true).unwrap_err();
        let of = |what: &str| format!("failed to call webhook: json: cannot unmarshal {what}");
        let allowed = of("string into Go struct field AdmissionResponse.response.allowed of type bool");
        assert_eq!(refused(value!({"uid": "u", "allowed": "yes"})), allowed);
        let warning = of("number into Go struct field AdmissionResponse.response.warnings of type string");
        assert_eq!(refused(value!({"uid": "u", "allowed": true, "warnings": [1]})), warning);
        let annotation = of("number into Go struct field AdmissionResponse.response.auditAnnotations of type string");
        assert_eq!(refused(value!({"uid": "u", "allowed": true, "auditAnnotations": {"a": 1}})), annotation);
        let code = of("string into Go struct field Status.response.status.code of type int32");
        assert_eq!(refused(value!({"uid": "u", "status": {"code": "x"}})), code);
        let patch = "failed to call webhook: illegal base64 data at input byte 0";
        assert_eq!(refused(value!({"uid": "u", "allowed": true, "patch": "%%%"})), patch);
    }

    #[test]
    fn refusals_have_the_status_of_the_webhook() {
        let refusal = |status: Value| ReviewResponse { status, ..ReviewResponse::default() }.refusal("w");
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
