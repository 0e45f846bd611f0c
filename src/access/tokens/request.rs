//! `TokenRequest`: the subresource `token` of service accounts.

use std::time::{Duration, SystemTime};

use flotilla_proto::value::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::bound::{BoundKind, BoundObjects, BoundProperties};
use super::issue::{Account, IssueRequest, Issuer};
use crate::field::{Errors, Path};
use crate::limits;
use crate::rules::names;
use crate::status::{ApiError, ApiResult};

/// The results of a fulfilled request besides the token, for the client and the audit log.
#[derive(Debug)]
pub struct Fulfilled {
    /// The id of the token, for the audit log.
    pub credential_id: String,
    /// The warning that the token is valid for a shorter time than requested. `None` if it is valid for the requested
    /// time.
    pub warning: Option<String>,
}

/// Fills in the defaults of a decoded `TokenRequest`, and a token. `audiences` are those of the API.
///
/// # Errors
/// 422 when the request breaks a rule; 404, 409 or 400 when the object to bind to is missing or differs.
pub fn fulfil(
    issuer: &Issuer,
    objects: &dyn BoundObjects,
    audiences: &[String],
    account: &Account,
    request: &mut Value,
    now: SystemTime,
) -> ApiResult<Fulfilled> {
    check_target(account, request)?;
    set_defaults(request, audiences);
    let asked = request.int_at(&["spec", "expirationSeconds"]).unwrap_or(limits::TOKEN_DEFAULT_SECONDS);
    check_duration(asked)?;
    let seconds = issuer.seconds_max.map_or(asked, |most| asked.min(most));
    let wanted = request.list_at(&["spec", "audiences"]).iter().filter_map(Value::as_str).map(str::to_owned);
    let mut issue = IssueRequest { audiences: wanted.collect(), seconds, ..IssueRequest::default() };
    bind(objects, account, request, &mut issue)?;
    let for_api = issue.audiences.iter().all(|audience| audiences.contains(audience));
    if issuer.extends && issue.pod.is_some() && seconds == limits::TOKEN_KUBELET_SECONDS && for_api {
        issue.warn_after_seconds = Some(seconds);
        issue.seconds = limits::TOKEN_EXTENDED_SECONDS;
    }
    let issued = issuer.issue(account, &issue, now).map_err(ApiError::internal)?;
    let text = |at: SystemTime| OffsetDateTime::from(at).replace_nanosecond(0).ok()?.format(&Rfc3339).ok();
    let warning =
        (seconds < asked).then(|| format!("requested expiration of {asked} seconds shortened to {seconds} seconds"));
    request.set_at(&["spec", "expirationSeconds"], seconds);
    // The answer contains the requested expiry, even if the token is valid for longer.
    let expires = now + Duration::from_secs(seconds.unsigned_abs());
    let expires = text(expires).ok_or_else(|| ApiError::internal("the time of expiry cannot be written"))?;
    for (member, value) in [("name", &account.name), ("namespace", &account.namespace), ("uid", &account.uid)] {
        request.set_at(&["metadata", member], value.as_str());
    }
    request.set_at(&["metadata", "creationTimestamp"], text(now).unwrap_or_default().as_str());
    request.set_at(&["status"], Value::object());
    request.set_at(&["status", "token"], issued.token.as_str());
    request.set_at(&["status", "expirationTimestamp"], expires.as_str());
    Ok(Fulfilled { credential_id: issued.credential_id, warning })
}

/// Checks that metadata names no other account.
fn check_target(account: &Account, request: &Value) -> ApiResult<()> {
    let namespace = request.str_at(&["metadata", "namespace"]);
    if !namespace.is_empty() && namespace != account.namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    let uid = request.str_at(&["metadata", "uid"]);
    if !uid.is_empty() && uid != account.uid {
        let own = &account.uid;
        let why = format!("the UID in the token request ({uid}) does not match the UID of the service account ({own})");
        return Err(ApiError::conflict("authentication.k8s.io", "TokenRequest", &account.name, &why));
    }
    check_account(&account.name, request)
}

/// Checks that metadata names no other account than the path does. The account need not exist.
pub fn check_account(account: &str, request: &Value) -> ApiResult<()> {
    let name = request.str_at(&["metadata", "name"]);
    if name.is_empty() || name == account {
        return Ok(());
    }
    let mut errors = Errors::default();
    let metadata = Path::root("metadata");
    errors.invalid_str(&metadata.child("name"), name, "must match the service account name if specified");
    Err(invalid(account, &errors))
}

fn set_defaults(request: &mut Value, audiences: &[String]) {
    if request.list_at(&["spec", "audiences"]).is_empty() {
        let list: Vec<Value> = audiences.iter().map(|audience| audience.as_str().into()).collect();
        request.set_at(&["spec", "audiences"], list);
    }
    if request.int_at(&["spec", "expirationSeconds"]).is_none() {
        request.set_at(&["spec", "expirationSeconds"], limits::TOKEN_DEFAULT_SECONDS);
    }
    if request.at(&["spec", "boundObjectRef"]).is_null() {
        request.set_at(&["spec", "boundObjectRef"], Value::Null);
    }
}

fn check_duration(seconds: i64) -> ApiResult<()> {
    let mut errors = Errors::default();
    let spec = Path::root("spec");
    let path = spec.child("expirationSeconds");
    if seconds < limits::TOKEN_MIN_SECONDS {
        errors.invalid(&path, &seconds.into(), "may not specify a duration less than 10 minutes");
    }
    if seconds > limits::TOKEN_MAX_SECONDS {
        errors.invalid(&path, &seconds.into(), "may not specify a duration larger than 2^32 seconds");
    }
    if errors.is_empty() { Ok(()) } else { Err(invalid("", &errors)) }
}

fn invalid(name: &str, errors: &Errors) -> ApiError {
    ApiError::invalid("authentication.k8s.io", "TokenRequest", name, &errors.0)
}

/// Finds the object to bind to, if the request names one.
fn bind(objects: &dyn BoundObjects, account: &Account, request: &Value, issue: &mut IssueRequest) -> ApiResult<()> {
    let reference = request.at(&["spec", "boundObjectRef"]);
    if reference.is_null() {
        return Ok(());
    }
    let text = |member: &str| reference.str_at(&[member]);
    let (kind, name, api_version) = (text("kind"), text("name"), text("apiVersion"));
    let (group, version) = match api_version.matches('/').count() {
        0 => ("", api_version),
        1 => api_version.split_once('/').unwrap_or_default(),
        _ => ("", ""),
    };
    // The version does not matter.
    let (bound, resource) = match (group, kind) {
        ("", "Pod") => (BoundKind::Pod, "pods"),
        ("", "Secret") => (BoundKind::Secret, "secrets"),
        ("", "Node") => (BoundKind::Node, "nodes"),
        _ => {
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(ApiError::bad_request(message));
        }
    };
    names::check_parameter(name)?;
    let namespace = if bound == BoundKind::Node { "" } else { &account.namespace };
    let found = objects.find(bound, namespace, name).ok_or_else(|| ApiError::not_found("", resource, name))?;
    let pair = Some((name.to_owned(), found.uid.to_string()));
    match bound {
        BoundKind::Secret => issue.secret = pair,
        BoundKind::Node => issue.node = pair,
        BoundKind::Pod | BoundKind::ServiceAccount => {
            check_pod(account, &found)?;
            issue.node = objects
                .find(BoundKind::Node, "", &found.node)
                .map(|node| (found.node.to_string(), node.uid.to_string()));
            issue.pod = pair;
        }
    }
    let uid = text("uid");
    if uid.is_empty() || uid == found.uid {
        return Ok(());
    }
    let why = format!(
        "the UID in the bound object reference ({uid}) does not match the UID in record. \
         The object might have been deleted and then recreated"
    );
    Err(ApiError::conflict("", kind, name, &why))
}

/// Refuses a pod that runs with another service account.
fn check_pod(account: &Account, pod: &BoundProperties) -> ApiResult<()> {
    if pod.service_account == account.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
        crate::field::quote(&account.name)
    )))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
