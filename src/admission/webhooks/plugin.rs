//! The mutating or the validating webhooks: calls those that match a write, and combines their answers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use flotilla_proto::json;
use flotilla_proto::value;
use futures_util::{StreamExt, stream};

use super::{Answer, Listed};
use crate::admission::plugin::Plugin;
use crate::admission::{Attributes, DynamicPlugin, Effort, Index, Presence, Subject, Told, following};
use crate::limits;
use crate::registry::Registry;
use crate::status::ApiResult;

/// The plugin of mutating webhooks.
pub const MUTATING: Plugin = Plugin::new("MutatingAdmissionWebhook", Presence::On).mutating_outside(|attributes| {
    let registry = attributes.registry;
    Box::pin(registry.admission.mutating_webhooks.mutate(attributes))
});
/// The plugin of validating webhooks.
pub const VALIDATING: Plugin = Plugin::new("ValidatingAdmissionWebhook", Presence::On)
    .validating_outside(|attributes| Box::pin(attributes.registry.admission.validating_webhooks.validate(attributes)));

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
    ready: ArcSwap<Index<Listed>>,
}

impl Webhooks {
    /// Follows the table of configurations of mutating or of validating webhooks, for ever.
    pub async fn follow(&self, registry: &Registry, plugin: DynamicPlugin) {
        let mutating = plugin == DynamicPlugin::MutatingWebhook;
        let resource = if mutating { "mutatingwebhookconfigurations" } else { "validatingwebhookconfigurations" };
        let Some(served) = registry.resources.of_resource(GROUP, resource) else { return };
        let read = |configuration: &_| Some(Listed::of(mutating, configuration));
        following::follow(&registry.table(&served), read, |configurations| {
            let index = Listed::index(configurations);
            let concerns = index.concerns().clone();
            self.ready.store(Arc::new(index));
            registry.admission.publish(plugin, concerns);
        })
        .await;
    }

    /// Returns whether any webhook may match a write.
    pub fn may_want(&self, subject: &Subject<'_>) -> bool {
        let (index, (.., resource)) = (self.ready.load(), subject.resource());
        index.concerns().has(resource, subject.operation)
            && !is_exempt(subject)
            && index.concerned(resource).any(|listed| listed.criteria.may_find(subject))
    }

    /// Lets webhooks change the object, one after the other.
    ///
    /// # Errors
    /// The error for the client.
    pub async fn mutate(&self, attributes: &mut Attributes<'_>) -> ApiResult<()> {
        if is_exempt(&attributes.subject()) {
            return Ok(());
        }
        let (index, is_second) = (self.ready.load_full(), attributes.reinvocation.is_second);
        let Attributes { reinvocation, object, .. } = attributes;
        reinvocation.webhooks.begin(is_second, object.as_ref());
        let (resource, mut effort) = (attributes.resource.resource.clone(), Effort::default());
        for (at, listed) in index.concerned(&resource).enumerate() {
            if !is_second || attributes.reinvocation.webhooks.is_due(&listed.key()) {
                mutate_by(listed, at, attributes, &mut effort).await?;
            }
        }
        let Attributes { reinvocation, object, .. } = attributes;
        reinvocation.webhooks.end(object.as_ref());
        Ok(())
    }

    /// Calls all webhooks that match the write, concurrently. Once all have answered, returns the refusal that arrived
    /// first.
    ///
    /// # Errors
    /// The error for the client.
    pub async fn validate(&self, attributes: &Attributes<'_>) -> ApiResult<()> {
        if is_exempt(&attributes.subject()) {
            return Ok(());
        }
        let (index, mut asked, mut effort) = (self.ready.load_full(), Vec::new(), Effort::default());
        for listed in index.concerned(&attributes.resource.resource) {
            if let Some(wanted) = listed.wanted(attributes, &mut effort).await? {
                asked.push((listed, wanted));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        attributes.in_time()?;
        let answers = stream::iter(asked.iter().enumerate()).map(|(at, (listed, wanted))| async move {
            let mut told = Told::default();
            let answer = listed.ask(attributes, wanted, &mut told).await;
            if matches!(answer, Ok(Answer::Ignored)) {
                let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{at}");
                told.annotate(key, listed.webhook.name.clone());
            }
            (at, answer, told)
        });
        let mut answers: Vec<_> = answers.buffer_unordered(limits::WEBHOOKS_AT_ONCE).collect().await;
        let first = answers.iter().find_map(|(_, answer, _)| answer.as_ref().err().cloned());
        answers.sort_by_key(|(at, ..)| *at); // warnings come in the order of the webhooks
        let is_ignored = answers.iter().any(|(_, answer, _)| matches!(answer, Ok(Answer::Ignored)));
        answers.into_iter().for_each(|(_, _, told)| tell(attributes, told));
        match first {
            Some(refused) => Err(refused),
            None if is_ignored => attributes.in_time(),
            None => Ok(()),
        }
    }
}

/// Lets one webhook change the object, if it matches the write.
async fn mutate_by(listed: &Listed, at: usize, attributes: &mut Attributes<'_>, effort: &mut Effort) -> ApiResult<()> {
    let Some(wanted) = listed.wanted(attributes, effort).await? else { return Ok(()) };
    let mut told = Told::default();
    let answer = listed.ask(attributes, &wanted, &mut told).await;
    tell(attributes, told);
    let round = u8::from(attributes.reinvocation.is_second);
    let annotation = format!("mutation.webhook.admission.k8s.io/round_{round}_index_{at}");
    let mut is_changed = false;
    match answer? {
        Answer::Allowed => {}
        Answer::Ignored => {
            attributes.annotate(format!("failed-open.{annotation}"), listed.webhook.name.clone());
            attributes.in_time()?; // a timeout of the request itself is never ignored
        }
        Answer::Patched(object) => is_changed = attributes.replace(&wanted.matched, object).await?,
    }
    let (configuration, name) = (&*listed.webhook.configuration, &*listed.webhook.name);
    let told = value!({"configuration": configuration, "webhook": name, "mutated": is_changed});
    attributes.annotate(annotation, String::from_utf8_lossy(&json::to_vec(&told)).into_owned());
    let reinvocation = &mut attributes.reinvocation;
    if is_changed {
        reinvocation.is_wanted = true;
        reinvocation.webhooks.changed();
    }
    if listed.webhook.is_reinvoked {
        reinvocation.webhooks.is_willing(&listed.key());
    }
    Ok(())
}

fn tell(attributes: &Attributes<'_>, told: Told) {
    attributes.told.lock().take_in(told);
}

fn is_exempt(subject: &Subject<'_>) -> bool {
    let (group, _, kind) = subject.kind();
    group == GROUP && EXEMPT.contains(&kind)
}

#[cfg(test)]
#[path = "plugin_tests.rs"]
mod tests;
