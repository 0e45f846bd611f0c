//! The mutating or the validating webhooks: calls those that match a write, and combines their answers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};
use futures_util::{StreamExt, stream};

use super::{RegisteredWebhook, WebhookOutcome};
use crate::admission::plugin::Plugin;
use crate::admission::{
    Admission, DynamicAttributes, DynamicPlugin, Effort, Index, MatchAttributes, Presence, following,
};
use crate::limits;
use crate::request::Notices;
use crate::status::ApiResult;

/// The plugin of mutating webhooks.
pub const MUTATING: Plugin = Plugin::new("MutatingAdmissionWebhook", Presence::On).mutating_outside(|attributes| {
    let admission = attributes.admission;
    Box::pin(admission.mutating_webhooks.mutate(attributes))
});
/// The plugin of validating webhooks.
pub const VALIDATING: Plugin = Plugin::new("ValidatingAdmissionWebhook", Presence::On)
    .validating_outside(|attributes| Box::pin(attributes.admission.validating_webhooks.validate(attributes)));

/// The API group of the configurations.
const GROUP: &str = "admissionregistration.k8s.io";
/// Kinds for which no webhook is called, so that a wrong webhook can always be repaired.
const EXEMPT: [&str; 6] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// The webhooks of all configurations of one kind.
#[derive(Debug, Default)]
pub struct Webhooks {
    ready: ArcSwap<Index<RegisteredWebhook>>,
}

impl Webhooks {
    /// Follows the table of configurations of mutating or of validating webhooks, for ever.
    pub async fn follow(&self, admission: &Admission, plugin: DynamicPlugin) {
        let mutating = plugin == DynamicPlugin::MutatingWebhook;
        let resource = if mutating { "mutatingwebhookconfigurations" } else { "validatingwebhookconfigurations" };
        let Some(served) = admission.tables.resources.of_resource(GROUP, resource) else { return };
        let read = |configuration: &_| Some(RegisteredWebhook::of(mutating, configuration));
        following::follow(&admission.tables.table(&served), read, |configurations| {
            let index = RegisteredWebhook::index(configurations);
            let concerns = index.concerns().clone();
            self.ready.store(Arc::new(index));
            admission.publish(plugin, concerns);
        })
        .await;
    }

    /// Returns whether any webhook may match a write.
    pub fn may_want(&self, write: &MatchAttributes<'_>) -> bool {
        let (index, (.., resource)) = (self.ready.load(), write.resource());
        index.concerns().has(resource, write.operation)
            && !is_exempt(write)
            && index.concerned(resource).any(|registered| registered.criteria.may_find(write))
    }

    /// Lets webhooks change the object, one after the other.
    ///
    /// # Errors
    /// The error for the client.
    pub async fn mutate(&self, attributes: &mut DynamicAttributes<'_>) -> ApiResult<()> {
        if is_exempt(&attributes.for_matching()) {
            return Ok(());
        }
        let (index, is_second) = (self.ready.load_full(), attributes.reinvocation.is_second);
        let DynamicAttributes { reinvocation, object, .. } = attributes;
        reinvocation.webhooks.begin(is_second, object.as_ref());
        let (resource, mut effort) = (attributes.resource.resource.clone(), Effort::default());
        for (at, registered) in index.concerned_of_all(&resource) {
            if !is_second || attributes.reinvocation.webhooks.is_due(&registered.key()) {
                mutate_by(registered, at, attributes, &mut effort).await?;
            }
        }
        let DynamicAttributes { reinvocation, object, .. } = attributes;
        reinvocation.webhooks.end(object.as_ref());
        Ok(())
    }

    /// Calls all webhooks that match the write, concurrently. Once all have answered, returns the refusal that arrived
    /// first.
    ///
    /// # Errors
    /// The error for the client.
    pub async fn validate(&self, attributes: &DynamicAttributes<'_>) -> ApiResult<()> {
        if is_exempt(&attributes.for_matching()) {
            return Ok(());
        }
        let (index, mut asked, mut effort) = (self.ready.load_full(), Vec::new(), Effort::default());
        for registered in index.concerned(&attributes.resource.resource) {
            if let Some(wanted) = registered.wanted(attributes, &mut effort).await? {
                asked.push((registered, wanted));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        attributes.in_time()?;
        let answers = stream::iter(asked.iter().enumerate()).map(|(at, (registered, wanted))| async move {
            let mut notices = Notices::default();
            let answer = registered.ask(attributes, wanted, &mut notices).await;
            if matches!(answer, Ok(WebhookOutcome::Ignored)) {
                let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{at}");
                notices.annotate(key, registered.webhook.name.clone());
            }
            (at, answer, notices)
        });
        let mut answers: Vec<_> = answers.buffer_unordered(limits::WEBHOOKS_AT_ONCE).collect().await;
        let first = answers.iter().find_map(|(_, answer, _)| answer.as_ref().err().cloned());
        answers.sort_by_key(|(at, ..)| *at); // warnings come in the order of the webhooks
        let is_ignored = answers.iter().any(|(_, answer, _)| matches!(answer, Ok(WebhookOutcome::Ignored)));
        answers.into_iter().for_each(|(_, _, notices)| add_notices(attributes, notices));
        match first {
            Some(refused) => Err(refused),
            None if is_ignored => attributes.in_time(),
            None => Ok(()),
        }
    }
}

/// Lets one webhook change the object, if it matches the write.
async fn mutate_by(
    registered: &RegisteredWebhook,
    at: usize,
    attributes: &mut DynamicAttributes<'_>,
    effort: &mut Effort,
) -> ApiResult<()> {
    let Some(wanted) = registered.wanted(attributes, effort).await? else { return Ok(()) };
    let mut notices = Notices::default();
    let answer = registered.ask(attributes, &wanted, &mut notices).await;
    add_notices(attributes, notices);
    let round = u8::from(attributes.reinvocation.is_second);
    let annotation = format!("mutation.webhook.admission.k8s.io/round_{round}_index_{at}");
    let (configuration, name) = (&*registered.webhook.configuration, &*registered.webhook.name);
    let followed = match answer {
        Ok(WebhookOutcome::Allowed) => Ok(false),
        Ok(WebhookOutcome::Ignored) => {
            attributes.annotate(format!("failed-open.{annotation}"), registered.webhook.name.clone());
            attributes.in_time().map(|()| false) // a timeout of the request itself is never ignored
        }
        Ok(WebhookOutcome::Patched(object, patch)) => {
            let replaced = attributes.replace(&wanted.matched, object).await;
            if replaced.is_ok() && attributes.records_objects {
                let value = patch_annotation(configuration, name, &patch);
                attributes.annotate(format!("patch.webhook.admission.k8s.io/round_{round}_index_{at}"), value);
            }
            replaced
        }
        Err(refused) => Err(refused),
    };
    let notices = value!({"configuration": configuration, "webhook": name, "mutated": (matches!(followed, Ok(true)))});
    attributes.annotate(annotation, String::from_utf8_lossy(&json::to_vec(&notices)).into_owned());
    let is_changed = followed?;
    let reinvocation = &mut attributes.reinvocation;
    if is_changed {
        reinvocation.is_wanted = true;
        reinvocation.webhooks.changed();
    }
    if registered.webhook.is_reinvoked {
        reinvocation.webhooks.is_willing(&registered.key());
    }
    Ok(())
}

/// Returns the value of the audit annotation about a patch. As in the reference, members of operations are ordered by
/// name.
fn patch_annotation(configuration: &str, webhook: &str, patch: &[u8]) -> String {
    let operations = json::parse(patch).unwrap_or_default();
    let sorted = |operation: &Value| {
        let mut members: Vec<_> = operation.as_object().into_iter().flat_map(Map::iter).collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        let mut sorted = Value::object();
        members.into_iter().for_each(|(name, value)| sorted.set_at(&[name], value.clone()));
        sorted
    };
    let operations: Vec<Value> = operations.as_array().into_iter().flatten().map(sorted).collect();
    let value = value!({
        "configuration": configuration, "webhook": webhook, "patch": operations, "patchType": "JSONPatch"
    });
    String::from_utf8_lossy(&json::to_vec(&value)).into_owned()
}

fn add_notices(attributes: &DynamicAttributes<'_>, notices: Notices) {
    attributes.notices.lock().take_in(notices);
}

fn is_exempt(write: &MatchAttributes<'_>) -> bool {
    let (group, _, kind) = write.kind();
    group == GROUP && EXEMPT.contains(&kind)
}

#[cfg(test)]
#[path = "plugin_tests.rs"]
mod tests;
