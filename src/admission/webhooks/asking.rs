//! Decides whether a webhook is called for a write, and builds its request.

use flotilla_proto::value::Value;

use super::{RegisteredWebhook, ReviewRequest, WebhookOutcome};
use crate::admission::conditions::MatchResult;
use crate::admission::policy::{PolicyVariables, requests};
use crate::admission::{DynamicAttributes, Effort, MatchedVersion, Seen};
use crate::prometheus::families;
use crate::request::Notices;
use crate::status::{ApiError, ApiResult};

/// A write that a webhook matches, in the version that the webhook asks for.
pub(super) struct Wanted {
    pub(super) matched: MatchedVersion,
    pub(super) seen: Seen,
}

impl RegisteredWebhook {
    /// Returns the write in the version that this webhook asks for. Returns `None` if the webhook does not match.
    ///
    /// # Errors
    /// The error for the client when it cannot be decided whether the webhook matches.
    pub(super) async fn wanted(
        &self,
        attributes: &DynamicAttributes<'_>,
        effort: &mut Effort,
    ) -> ApiResult<Option<Wanted>> {
        let Some(version) = self.criteria.find(&attributes.for_matching())? else { return Ok(None) };
        let matched = attributes.through(version);
        let seen = attributes.seen_as(&matched).await?;
        let wanted = self.holds(attributes, &matched, &seen, effort).await?;
        Ok(wanted.then_some(Wanted { matched, seen }))
    }

    /// Returns whether the match conditions of the webhook hold.
    async fn holds(
        &self,
        attributes: &DynamicAttributes<'_>,
        matched: &MatchedVersion,
        seen: &Seen,
        effort: &mut Effort,
    ) -> ApiResult<bool> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let (request, _) = requests(attributes, matched);
        let variables = PolicyVariables::of(attributes)?;
        let count = |family: &'static str| {
            let kind = ("kind", "webhook");
            let (name, operation) = (("name", &*self.webhook.name), ("operation", attributes.operation.name()));
            let phase = ("type", if self.webhook.mutating { "admit" } else { "validate" });
            let metrics = &attributes.admission.tables.metrics;
            let labels = metrics.bounded([kind, name, operation, phase]);
            metrics.meter().counter(family, &labels).increment(1);
        };
        let matched = loop {
            let before = effort.left();
            let matched = self.conditions.matches(variables.inputs(seen, &request, &Value::Null), &[], effort).await;
            let Some(asking) = variables.pending() else { break matched };
            asking.await;
            effort.restore(before);
        };
        match matched {
            MatchResult::Yes => Ok(true),
            MatchResult::No(_) => {
                count(families::MATCH_CONDITION_EXCLUSIONS);
                Ok(false)
            }
            MatchResult::Failed(why) => {
                count(families::MATCH_CONDITION_ERRORS);
                let resource = &attributes.resource;
                Err(ApiError::forbidden(&resource.group, &resource.resource, &attributes.name, &why))
            }
        }
    }

    /// Calls the webhook.
    ///
    /// # Errors
    /// The error for the client.
    pub(super) async fn ask(
        &self,
        attributes: &DynamicAttributes<'_>,
        wanted: &Wanted,
        notices: &mut Notices,
    ) -> ApiResult<WebhookOutcome> {
        let request = review_request(attributes, &wanted.matched, &wanted.seen);
        self.webhook.call(attributes.admission, &request, attributes.left(), notices).await
    }
}

fn review_request<'a>(
    attributes: &'a DynamicAttributes<'_>,
    matched: &MatchedVersion,
    seen: &'a Seen,
) -> ReviewRequest<'a> {
    ReviewRequest {
        kind: matched.kind.clone(),
        resource: matched.resource.clone(),
        request_kind: attributes.kind.clone(),
        request_resource: attributes.resource.clone(),
        subresource: attributes.subresource,
        name: &attributes.name,
        namespace: &attributes.namespace,
        operation: attributes.operation.name(),
        user: &attributes.user,
        object: seen.object.as_ref(),
        old: seen.old.as_ref(),
        options: attributes.options.as_ref(),
        dry_run: attributes.dry_run,
    }
}
