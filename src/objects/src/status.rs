//! Errors as clients see them: the Kubernetes `Status` object.

use std::collections::HashSet;

use compact_str::CompactString;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::field::{FieldError, quote};

/// The reason of a request that was not finished in time, so that its outcome is unknown.
pub const TIMEOUT: &str = "Timeout";

/// A cause in a status's details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable, as `FieldValueInvalid`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Path of the field concerned; may be empty.
    pub field: String,
}

/// The details of a status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Name of the object; may be empty.
    pub name: String,
    /// API group; may be empty.
    pub group: String,
    /// Resource or kind, depending on the reason.
    pub kind: String,
    /// UID of the object; may be empty.
    pub uid: String,
    /// Causes in order.
    pub causes: Vec<Cause>,
    /// Seconds after which the client may try again; 0 if unstated.
    pub retry_after_seconds: u32,
    /// The whole `Status` of a webhook that refuses a write; it may have more members than this struct. Null if there
    /// is none.
    pub stated: Value,
}

/// A failure that is answered with a `Status` (API conventions, "Response Status Kind").
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, as `NotFound`; may be empty.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Details about the object. `None` if there are none.
    pub details: Option<Box<Details>>,
    /// The token with which a list may continue although its snapshot is gone.
    pub list_continue: Option<String>,
}

/// Result of operations that fail with a `Status`.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// Returns an error without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, list_continue: None }
    }

    /// Returns an error about an object or a kind.
    pub fn about(
        code: u16,
        reason: &'static str,
        group: &str,
        kind: &str,
        name: &str,
        message: impl Into<String>,
    ) -> Self {
        let details = Details { name: name.into(), group: group.into(), kind: kind.into(), ..Details::default() };
        Self { details: Some(Box::new(details)), ..Self::new(code, reason, message) }
    }

    /// Returns 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Returns 404: the object does not exist.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(group, resource), quote(name));
        Self::about(404, "NotFound", group, resource, name, message)
    }

    /// Returns 404: the server has nothing at this path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: Some(Box::default()), ..Self::new(404, "NotFound", message) }
    }

    /// Returns 409: the object already exists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} already exists", qualified(group, resource), quote(name));
        Self::about(409, "AlreadyExists", group, resource, name, message)
    }

    /// Returns 409: the object cannot be changed as asked.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {}: {why}", qualified(group, resource), quote(name));
        Self::about(409, "Conflict", group, resource, name, message)
    }

    /// Returns 403: a rule of the server forbids the request.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", qualified(group, resource))
        } else {
            format!("{} {} is forbidden: {why}", qualified(group, resource), quote(name))
        };
        Self::about(403, "Forbidden", group, resource, name, message)
    }

    /// Returns 422: the object breaks rules of its kind. There is a cause for each error.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        // The message contains each text once; the causes may repeat it.
        let mut seen = HashSet::with_capacity(errors.len());
        let texts: Vec<String> =
            errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone())).collect();
        let joined = match &texts[..] {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let causes = errors
            .iter()
            .map(|e| Cause { reason: e.kind.reason().into(), message: e.body(), field: e.field.clone() })
            .collect();
        let message = format!("{} {} is invalid: {joined}", qualified(group, kind), quote(name));
        let mut error = Self::about(422, "Invalid", group, kind, name, message);
        if let Some(details) = &mut error.details {
            details.causes = causes;
        }
        error
    }

    /// Returns 405: the resource does not support the verb.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {}", quote(&qualified(group, resource)));
        Self::about(405, "MethodNotAllowed", group, resource, "", message)
    }

    /// Returns 410: the requested revision is no longer in the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Returns 500: the server failed, or Kubernetes uses this code for lack of a better one.
    pub fn internal(why: impl std::fmt::Display) -> Self {
        let details = Details {
            causes: vec![Cause { reason: String::new(), message: why.to_string(), field: String::new() }],
            ..Details::default()
        };
        let message = format!("Internal error occurred: {why}");
        Self { details: Some(Box::new(details)), ..Self::new(500, "InternalError", message) }
    }

    /// Returns 500 without a reason, as for generic errors of the reference.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// Returns 503: nothing was done; the client may try again.
    pub fn unavailable(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self { details: Some(Box::new(details)), ..Self::new(503, "ServiceUnavailable", message) }
    }

    /// Returns 504: the server could not finish in time; the client may try again.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self { details: Some(Box::new(details)), ..Self::new(504, TIMEOUT, message) }
    }

    /// Returns whether the outcome of the request is unknown.
    pub fn is_timeout(&self) -> bool {
        self.reason == TIMEOUT
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        let cause = Cause { reason: reason.into(), message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Returns the seconds after which a client may try again; 0 if unstated.
    pub fn retry_after_seconds(&self) -> u32 {
        self.details.as_ref().map_or(0, |details| details.retry_after_seconds)
    }

    /// Returns the whole `Status` of a webhook that refuses the write. Returns `None` if there is none.
    pub fn stated(&self) -> Option<&Value> {
        self.details.as_ref().map(|details| &details.stated).filter(|stated| !stated.is_null())
    }

    /// Returns the `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"});
        let mut set = |key: &str, value: Value| {
            if let Value::Object(map) = &mut status {
                map.insert(key, value);
            }
        };
        if let Some(stated) = self.stated() {
            for field in ["metadata", "status", "message", "reason", "details", "code"] {
                stated
                    .get(field)
                    .filter(|value| !value.is_null())
                    .into_iter()
                    .for_each(|value| set(field, value.clone()));
            }
            return status;
        }
        if let Some(token) = &self.list_continue {
            set("metadata", value!({"continue": (token.as_str())}));
        }
        if !self.message.is_empty() {
            set("message", self.message.as_str().into());
        }
        if !self.reason.is_empty() {
            set("reason", self.reason.into());
        }
        if let Some(details) = &self.details {
            set("details", details.to_value());
        }
        set("code", i64::from(self.code).into());
        status
    }
}

impl Details {
    /// Returns the `details` object, without empty members.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                map.insert(key, text.as_str());
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes", self.causes.iter().map(Cause::to_value).collect::<Vec<_>>());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds", i64::from(self.retry_after_seconds));
        }
        map.into()
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        [("reason", &self.reason), ("message", &self.message), ("field", &self.field)]
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(key, text)| (CompactString::from(key), Value::from(text.as_str())))
            .collect::<Map>()
            .into()
    }
}

/// Returns `deployments.apps`, or `pods` in the core group.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
