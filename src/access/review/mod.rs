//! Answers reviews about users and their permissions: `TokenReview`, `SelfSubjectReview`, and access reviews.
//!
//! Each function takes a decoded object and fills in its status; nothing is stored.

mod selectors;

use std::time::Instant;

use flotilla_proto::value::{Map, Value};
use flotilla_proto::{json, value};

use super::attributes::{Attributes, ResourceAttributes};
use super::authenticator::Authenticator;
use super::authorizer::{Authorizer, Permissions};
use super::decision::Verdict;
use super::inquiry::Inquiry;
use super::refused::Refused;
use super::token_owner::TokenOwner;
use super::user::{Extra, User};
use crate::field::{ErrorKind, Errors, Path};
use crate::status::{ApiError, ApiResult};

const GROUP: &str = "authorization.k8s.io";

/// Returns the audiences that a `TokenReview` asks for.
pub fn audiences(review: &Value) -> Vec<String> {
    texts(review.list_at(&["spec", "audiences"]))
}

/// Returns the owner of the token of a `TokenReview`. The inner error says why the token is not valid; the answer may
/// change once this replica has caught up, or has asked a webhook.
///
/// # Errors
/// 400 without a token.
pub fn token_owner(authenticator: &Authenticator, review: &Value) -> ApiResult<Result<TokenOwner, Refused>> {
    let token = review.str_at(&["spec", "token"]);
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(authenticator.review(token.as_bytes(), &audiences(review)))
}

/// Answers a `TokenReview` with the owner of the token.
pub fn token_review(owner: &Result<TokenOwner, Refused>, review: &mut Value) {
    // Fields of the status that the client has set stay, unless the answer sets them.
    let mut status = review.map_at(&["status"]).cloned().unwrap_or_default();
    match owner {
        Ok(owner) => {
            status.insert("authenticated", true);
            status.insert("user", user_info(&owner.user));
            status.insert("audiences", owner.audiences.iter().map(|text| text.as_str().into()).collect::<Vec<Value>>());
        }
        Err(refused) => {
            status.remove("authenticated");
            if !status.contains_key("user") {
                status.insert("user", Value::object());
            }
            status.insert("error", refused.text());
        }
    }
    review.set_at(&["status"], status);
}

/// Answers a `SelfSubjectReview` with the user who made it. `now` is the time in RFC 3339. Drops everything else in the
/// body.
pub fn self_subject_review(user: &User, now: &str, review: &mut Value) {
    review.set_at(&["metadata"], Value::object());
    review.set_at(&["metadata", "creationTimestamp"], now);
    review.set_at(&["status"], Value::object());
    review.set_at(&["status", "userInfo"], user_info(user));
}

/// The kind of an access review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessReview<'a> {
    /// `SubjectAccessReview`: about any user, in any namespace.
    Anybody,
    /// `SelfSubjectAccessReview`: about the user who made it.
    Own(&'a User),
    /// `LocalSubjectAccessReview`: about any user, in the namespace of the request.
    Local(&'a str),
}

/// Answers an access review: whether a user may make a request. Asks webhooks where needed, until `ends` at most.
///
/// # Errors
/// 422 when the review names no user or no request.
pub async fn access_review(
    authorizer: &Authorizer,
    kind: AccessReview<'_>,
    review: &mut Value,
    ends: Option<Instant>,
) -> ApiResult<()> {
    let errors = check(kind, review);
    if !errors.is_empty() {
        return Err(ApiError::invalid(GROUP, "", "", &errors.0));
    }
    let subject = match kind {
        AccessReview::Own(user) => user.clone(),
        AccessReview::Anybody | AccessReview::Local(_) => subject(review),
    };
    let selected = selectors::read(review.at(&["spec", "resourceAttributes"]));
    let inquiry = Inquiry::default();
    let decide = |inquiry: &Inquiry| authorizer.decide(&subject, &attributes(review, &selected), inquiry);
    let decision = inquiry.settled(ends, decide).await;
    let mut status = Map::new();
    status.insert("allowed", decision.is_allowed());
    if decision.verdict == Verdict::Deny {
        status.insert("denied", true);
    }
    if !decision.reason.is_empty() {
        status.insert("reason", decision.reason.as_str());
    }
    let errors: Vec<String> = Some(decision.error).filter(|error| !error.is_empty()).into_iter().collect();
    let errors = [errors, selected.errors].concat();
    if !errors.is_empty() {
        status.insert("evaluationError", errors.join("; "));
    }
    review.set_at(&["status"], status);
    Ok(())
}

fn check(kind: AccessReview<'_>, review: &Value) -> Errors {
    let mut errors = Errors::default();
    let spec = Path::root("spec");
    let (resource, other) = (spec.child("resourceAttributes"), spec.child("nonResourceAttributes"));
    let (has_resource, has_other) =
        (present(review, "resourceAttributes").is_some(), present(review, "nonResourceAttributes"));
    match (has_resource, has_other) {
        (true, Some(value)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(ErrorKind::Invalid, &other, as_go(value), detail);
        }
        (false, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(ErrorKind::Invalid, &resource, "null", detail);
        }
        _ => {}
    }
    if !matches!(kind, AccessReview::Own(_))
        && review.str_at(&["spec", "user"]).is_empty()
        && review.list_at(&["spec", "groups"]).is_empty()
    {
        errors.invalid_str(&spec.child("user"), "", "at least one of user or group must be specified");
    }
    selectors::validate(review.at(&["spec", "resourceAttributes"]), &mut errors);
    check_metadata(kind, review, &mut errors);
    if let AccessReview::Local(namespace) = kind {
        let own = review.str_at(&["spec", "resourceAttributes", "namespace"]);
        if has_resource && own != namespace {
            errors.invalid_str(&resource.child("namespace"), own, "must match metadata.namespace");
        }
        if let Some(value) = has_other {
            errors.push(ErrorKind::Invalid, &other, as_go(value), "disallowed on this kind of request");
        }
    }
    errors
}

/// Checks that metadata is empty, apart from `managedFields` and the namespace of a local review.
fn check_metadata(kind: AccessReview<'_>, review: &Value, errors: &mut Errors) {
    let local = matches!(kind, AccessReview::Local(_));
    let Some(metadata) = review.map_at(&["metadata"]) else { return };
    let says = |key: &str| key != "managedFields" && !(local && key == "namespace");
    if metadata.keys().any(says) {
        let detail = if local { "must be empty except for namespace" } else { "must be empty" };
        let shown = String::from_utf8_lossy(&json::to_vec(review.at(&["metadata"]))).into_owned();
        errors.push(ErrorKind::Invalid, &Path::root("metadata"), shown, detail);
    }
}

fn present<'a>(review: &'a Value, member: &str) -> Option<&'a Value> {
    Some(review.at(&["spec", member])).filter(|value| !value.is_null())
}

/// Formats attributes of a path as the reference's messages do, with Go's field names.
fn as_go(attributes: &Value) -> String {
    let text = |member: &str| serde_json::Value::from(attributes.str_at(&[member])).to_string();
    format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb"))
}

fn attributes<'a>(review: &'a Value, selected: &'a selectors::Selected) -> Attributes<'a> {
    if let Some(other) = present(review, "nonResourceAttributes") {
        return Attributes::Path { verb: other.str_at(&["verb"]), path: other.str_at(&["path"]) };
    }
    let text = |member: &str| review.str_at(&["spec", "resourceAttributes", member]);
    Attributes::Resource(ResourceAttributes {
        verb: text("verb"),
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        fields: &selected.fields,
        labels: &selected.labels,
    })
}

/// Returns the user that a review is about.
fn subject(review: &Value) -> User {
    let extra: Extra = review.map_at(&["spec", "extra"]).map_or_else(Extra::new, |map| {
        map.iter().map(|(key, values)| (key.to_owned(), texts(values.as_array().unwrap_or(&[])))).collect()
    });
    User {
        name: review.str_at(&["spec", "user"]).into(),
        uid: review.str_at(&["spec", "uid"]).into(),
        groups: texts(review.list_at(&["spec", "groups"])).into_iter().map(Into::into).collect(),
        extra,
    }
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns permissions as the status of a `SelfSubjectRulesReview`.
pub fn permissions(of: &Permissions) -> Value {
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in &of.rules {
        let mut value = rule.to_value();
        if !rule.resources.is_empty() {
            let mut resource = value.clone();
            resource.remove_at(&["nonResourceURLs"]);
            resources.push(resource);
        }
        if !rule.urls.is_empty() {
            for field in ["apiGroups", "resources", "resourceNames"] {
                value.remove_at(&[field]);
            }
            paths.push(value);
        }
    }
    let mut status = value!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": (of.incomplete)});
    if !of.error.is_empty() {
        status.set_at(&["evaluationError"], of.error.as_str());
    }
    status
}

/// Returns a user as `UserInfo` of `authentication.k8s.io/v1`.
pub fn user_info(user: &User) -> Value {
    let list = |texts: &mut dyn Iterator<Item = &str>| texts.map(Value::from).collect::<Vec<Value>>();
    let mut info = Map::new();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info.insert(key, text.as_str());
        }
    }
    if !user.groups.is_empty() {
        info.insert("groups", list(&mut user.groups.iter().map(|group| group.as_str())));
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.as_str(), list(&mut values.iter().map(String::as_str)));
        }
        info.insert("extra", extra);
    }
    info.into()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Answers a review by a chain without webhooks, which never waits.
    fn answered(kind: AccessReview<'_>, review: &mut Value) -> Result<(), String> {
        let answered = access_review(&Authorizer::default(), kind, review, None).now_or_never().unwrap();
        answered.map_err(|error| error.message)
    }

    fn review(kind: AccessReview<'_>, spec: Value) -> Result<Value, String> {
        let mut object = value!({"metadata": {}});
        object.set_at(&["spec"], spec);
        answered(kind, &mut object)?;
        Ok(object.at(&["status"]).clone())
    }

    #[test]
    fn access_reviews_answer_whether_a_user_is_allowed() {
        let pods = value!({"resource": "pods", "verb": "get"});
        let masters = value!({"groups": ["system:masters"], "resourceAttributes": (pods.clone())});
        assert_eq!(review(AccessReview::Anybody, masters), Ok(value!({"allowed": true})));
        let ann = value!({"user": "ann", "resourceAttributes": (pods.clone())});
        assert_eq!(review(AccessReview::Anybody, ann), Ok(value!({"allowed": false})));
        let own = value!({"nonResourceAttributes": {"path": "/version", "verb": "get"}});
        assert_eq!(review(AccessReview::Own(&User::anonymous()), own), Ok(value!({"allowed": false})));
    }

    #[test]
    fn incomplete_and_contradictory_reviews_are_refused() {
        let error = |kind, spec| review(kind, spec).unwrap_err();
        assert_eq!(
            error(AccessReview::Anybody, Value::object()),
            ".authorization.k8s.io \"\" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of \
             nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: \"\": at least \
             one of user or group must be specified]"
        );
        let both =
            value!({"user": "x", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/x"}});
        assert_eq!(
            error(AccessReview::Anybody, both),
            ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: \
             {\"Path\":\"/x\",\"Verb\":\"\"}: cannot be specified in combination with resourceAttributes"
        );
        let elsewhere = value!({"user": "x", "resourceAttributes": {"namespace": "default"}});
        assert_eq!(
            error(AccessReview::Local("ns"), elsewhere),
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"default\": \
             must match metadata.namespace"
        );
        let mut named =
            value!({"metadata": {"name": "n"}, "spec": {"user": "x", "resourceAttributes": {"verb": "get"}}});
        let message = answered(AccessReview::Anybody, &mut named).unwrap_err();
        assert!(message.ends_with("metadata: Invalid value: {\"name\":\"n\"}: must be empty"), "{message}");
    }

    #[test]
    fn a_self_review_shows_the_caller() {
        let mut object = value!({"metadata": {"name": "me"}, "status": {"userInfo": {"username": "lie"}}});
        self_subject_review(&User::anonymous(), "2026-01-01T00:00:00Z", &mut object);
        let expected = value!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"userInfo": {"username": "system:anonymous", "groups": ["system:unauthenticated"]}},
        });
        assert_eq!(object, expected);
    }
}
