//! Answers reviews: questions about users and what they may do. They come by POST, and nothing is stored.

use flotilla_proto::value::Value;

use super::{Acted, Call, Pending};
use crate::access::review::{self, AccessReview};
use crate::access::{Refused, Retry};
use crate::registry::now;
use crate::status::ApiError;

/// Answers a `SelfSubjectReview`.
pub(super) fn own_user(mut call: Call<'_>) -> Pending<'_, Acted> {
    review::self_subject_review(&call.caller.user, &now().to_string(), &mut call.body);
    answered(Ok(()), call)
}

/// Answers a `TokenReview`.
pub(super) fn token(mut call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let mut reviewed = review::token_review(call.tokens.authenticator, &mut call.body)?;
        if let Err(Refused { retry: Some(retry), .. }) = reviewed {
            match (retry, call.tokens.authenticator.openid()) {
                (Retry::WithNewKeys, Some(openid)) => openid.fetch_keys().await,
                // This replica may be behind in the groups that have the objects to which the token is bound.
                _ => call.registry.catch_up().await?,
            }
            reviewed = review::token_review(call.tokens.authenticator, &mut call.body)?;
        }
        call.caller.warnings.extend(reviewed.ok().and_then(|owner| owner.warning).map(str::to_owned));
        Ok(Acted::Document(call.body))
    })
}

/// Answers a `SubjectAccessReview`.
pub(super) fn access(mut call: Call<'_>) -> Pending<'_, Acted> {
    let reviewed = review::access_review(&call.registry.authorizer, AccessReview::Anybody, &mut call.body);
    answered(reviewed, call)
}

/// Answers a `SelfSubjectAccessReview`.
pub(super) fn own_access(mut call: Call<'_>) -> Pending<'_, Acted> {
    let reviewed =
        review::access_review(&call.registry.authorizer, AccessReview::Own(&call.caller.user), &mut call.body);
    answered(reviewed, call)
}

/// Answers a `LocalSubjectAccessReview`.
pub(super) fn local_access(mut call: Call<'_>) -> Pending<'_, Acted> {
    let local = AccessReview::Local(call.target.namespace);
    let reviewed = review::access_review(&call.registry.authorizer, local, &mut call.body);
    answered(reviewed, call)
}

/// Answers a `SelfSubjectRulesReview`: what the user may do in a namespace, as far as the rules can be listed.
pub(super) fn own_rules(mut call: Call<'_>) -> Pending<'_, Acted> {
    if call.body.str_at(&["spec", "namespace"]).is_empty() {
        return answered(Err(ApiError::bad_request("no namespace on request")), call);
    }
    let namespace = call.body.str_at(&["spec", "namespace"]).to_owned();
    let status = review::permissions(&call.registry.authorizer.permissions(&call.caller.user, &namespace));
    call.body.set_at(&["metadata"], Value::object());
    call.body.set_at(&["spec"], Value::object());
    call.body.set_at(&["status"], status);
    answered(Ok(()), call)
}

fn answered(reviewed: Result<(), ApiError>, call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(std::future::ready(reviewed.map(|()| Acted::Document(call.body))))
}
