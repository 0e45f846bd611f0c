//! Answers reviews: questions about users and their permissions. Clients send reviews by POST, and nothing is stored.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::{Acted, Call, Pending};
use crate::access::review::{self, AccessReview};
use crate::access::{Refused, Retry};
use crate::registry::now;
use crate::status::ApiError;

/// Answers a `SelfSubjectReview`.
pub(super) fn own_user(mut call: Call<'_>) -> Pending<'_, Acted> {
    review::self_subject_review(call.caller.identity.user(), &now().to_string(), &mut call.body);
    answered(Ok(()), call)
}

/// Answers a `TokenReview`.
pub(super) fn token(mut call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let authenticator = call.tokens.authenticator;
        let mut owner = review::token_owner(authenticator, &call.body)?;
        if let Err(Refused { retry: Some(retry), .. }) = owner {
            match retry {
                Retry::WithNewKeys(issuer) => issuer.fetch_keys().await,
                // This replica may be behind in the groups that have the objects to which the token is bound.
                Retry::AfterCatchingUp => call.registry.tables.catch_up().await?,
            }
            owner = review::token_owner(authenticator, &call.body)?;
        }
        if let Err(refused) = owner {
            let (token, audiences) = (call.body.str_at(&["spec", "token"]), review::audiences(&call.body));
            owner = authenticator.ask_for(token.as_bytes(), &audiences, refused).await;
        }
        review::token_review(&owner, &mut call.body);
        call.caller.notices.warnings.extend(owner.ok().and_then(|owner| owner.warning).map(str::to_owned));
        Ok(Acted::Document(call.body))
    })
}

/// Answers a `SubjectAccessReview`.
pub(super) fn access(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(reviewed(AccessReview::Anybody, call))
}

/// Answers a `SelfSubjectAccessReview`.
pub(super) fn own_access(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let user = Arc::clone(call.caller.identity.user());
        reviewed(AccessReview::Own(&user), call).await
    })
}

/// Answers a `LocalSubjectAccessReview`.
pub(super) fn local_access(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(reviewed(AccessReview::Local(call.target.namespace), call))
}

async fn reviewed(kind: AccessReview<'_>, mut call: Call<'_>) -> Result<Acted, ApiError> {
    review::access_review(&call.registry.tables.authorizer, kind, &mut call.body, call.caller.ends).await?;
    Ok(Acted::Document(call.body))
}

/// Answers a `SelfSubjectRulesReview`: the permissions of the user in a namespace, as far as the rules can be listed.
pub(super) fn own_rules(mut call: Call<'_>) -> Pending<'_, Acted> {
    if call.body.str_at(&["spec", "namespace"]).is_empty() {
        return answered(Err(ApiError::bad_request("no namespace on request")), call);
    }
    let namespace = call.body.str_at(&["spec", "namespace"]).to_owned();
    let status =
        review::permissions(&call.registry.tables.authorizer.permissions(call.caller.identity.user(), &namespace));
    call.body.set_at(&["metadata"], Value::object());
    call.body.set_at(&["spec"], Value::object());
    call.body.set_at(&["status"], status);
    answered(Ok(()), call)
}

fn answered(reviewed: Result<(), ApiError>, call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(std::future::ready(reviewed.map(|()| Acted::Document(call.body))))
}
