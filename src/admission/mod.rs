//! Admission from outside: what policies and webhooks decide about writes (Kubernetes documentation, "Dynamic Admission
//! Control").
//!
//! A write that none of them concerns pays for one look: [`Admission::concerns`]. For any other the registry describes
//! what is asked for in [`Attributes`], has [`Admission::mutate`] change the object after the server's own plugins did,
//! and [`Admission::validate`] look at the finished one before it is charged to quotas and stored. Nothing here holds a
//! lock while it waits.
//!
//! The order is that of the reference: MutatingAdmissionPolicy, MutatingAdmissionWebhook; ValidatingAdmissionPolicy,
//! ValidatingAdmissionWebhook. Each plugin keeps an [`Index`] of what it has to ask, made of the tables that it
//! [follows](following::follow), and tells [`Admission`] after a change which resources that concerns
//! ([`Admission::publish`]).
//!
//! - A mutating plugin is `async fn mutate(&self, &mut Attributes) -> ApiResult<()>`: it asks [`Criteria::find`], reads
//!   the object by [`Attributes::seen_as`] in the version that was matched, and hands in what it made of it by
//!   [`Attributes::replace`]. What is to be asked again when others change the object afterwards it keeps in
//!   [`Attributes::reinvocation`].
//! - A validating plugin is `async fn validate(&self, &Attributes) -> ApiResult<()>`.
//! - What a client is to be told goes to [`Attributes::warn`], what the audit log is to have to
//!   [`Attributes::annotate`], also where the write is refused afterwards.

mod attributes;
pub mod conditions;
mod configuration;
mod effort;
pub mod following;
mod index;
mod matching;
pub mod mutating;
pub mod policy;
mod reinvocation;
mod subject;
pub mod validating;
mod webhooks;

pub use attributes::{Attributes, GroupVersionKind, GroupVersionResource, Seen, Told};
pub use configuration::{Configuration, ConfigurationError};
pub use effort::Effort;
pub use index::{Concerns, Index, Indexed};
pub use matching::{Criteria, Matched, Version};
pub use reinvocation::{Invoked, Reinvocation};
pub use subject::Subject;

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::mutating::MutatingPolicy;
use self::policy::{MUTATING_POLICIES, Policies, VALIDATING_POLICIES};
use self::validating::ValidatingPolicy;
use self::webhooks::Webhooks;
pub use crate::metrics::admission::Operation;
use crate::metrics::admission::Phase;
use crate::registry::Registry;
use crate::status::ApiResult;

/// The plugins, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// Policies that change objects.
    MutatingPolicy,
    /// Webhooks that change objects.
    MutatingWebhook,
    /// Policies that refuse writes.
    ValidatingPolicy,
    /// Webhooks that refuse writes.
    ValidatingWebhook,
}

impl Plugin {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// Those that follow tables, and publish what concerns them once these were seen.
    pub const FOLLOWED: [Self; Self::COUNT] =
        [Self::MutatingPolicy, Self::MutatingWebhook, Self::ValidatingPolicy, Self::ValidatingWebhook];
}

/// Everything outside that decides about writes.
#[derive(Debug)]
pub struct Admission {
    /// What concerns each plugin that has published it, which is merged into what concerns any.
    each: Mutex<[Option<Concerns>; Plugin::COUNT]>,
    any: ArcSwap<Concerns>,
    /// Policies that change objects.
    pub mutating: Policies<MutatingPolicy>,
    /// Policies that refuse writes.
    pub validating: Policies<ValidatingPolicy>,
    /// How many plugins have published what concerns them.
    published: watch::Sender<usize>,
    /// Webhooks that change objects.
    pub mutating_webhooks: Webhooks,
    /// Webhooks that refuse writes.
    pub validating_webhooks: Webhooks,
    /// What the plugins are told.
    pub configuration: Arc<Configuration>,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            each: Mutex::default(),
            any: ArcSwap::default(),
            mutating: Policies::default(),
            validating: Policies::default(),
            published: watch::Sender::new(0),
            mutating_webhooks: Webhooks::default(),
            validating_webhooks: Webhooks::default(),
            configuration: Arc::default(),
        }
    }
}

impl Admission {
    /// Whether any plugin may have something to say of an operation on a resource, by its plural name. Where it may
    /// not, the write is nothing that admission from outside has to see.
    pub fn concerns(&self, resource: &str, operation: Operation) -> bool {
        self.any.load().has(resource, operation)
    }

    /// Whether anybody who changes objects may want to see a write.
    pub fn may_change(&self, subject: &Subject<'_>) -> bool {
        self.mutating.may_want(subject) || self.mutating_webhooks.may_want(subject)
    }

    /// Whether anybody who refuses writes may want to see a write.
    pub fn may_refuse(&self, subject: &Subject<'_>) -> bool {
        self.validating.may_want(subject) || self.validating_webhooks.may_want(subject)
    }

    /// Keeps a plugin ready, for ever.
    pub async fn follow(&self, registry: &Registry, plugin: Plugin) {
        match plugin {
            Plugin::MutatingPolicy => self.mutating.follow(registry, plugin, MUTATING_POLICIES).await,
            Plugin::MutatingWebhook => self.mutating_webhooks.follow(registry, plugin).await,
            Plugin::ValidatingPolicy => self.validating.follow(registry, plugin, VALIDATING_POLICIES).await,
            Plugin::ValidatingWebhook => self.validating_webhooks.follow(registry, plugin).await,
        }
    }

    /// Takes in what concerns a plugin from now on. Its own index must have changed before.
    pub fn publish(&self, plugin: Plugin, concerns: Concerns) {
        let mut each = self.each.lock();
        each[plugin as usize] = Some(concerns);
        let mut any = Concerns::default();
        each.iter().flatten().cloned().for_each(|concerns| any.take_in(concerns));
        self.any.store(Arc::new(any));
        let published = each.iter().flatten().count();
        drop(each);
        self.published.send_replace(published);
    }

    /// Waits until so many plugins have published what concerns them, so that no write passes before they are asked.
    pub async fn is_complete(&self, plugins: usize) {
        let _ = self.published.subscribe().wait_for(|published| *published >= plugins).await;
    }

    /// Has the object changed by all that change objects, in order. Whether the server's own plugins and these are to
    /// be asked once more: see [`Reinvocation`].
    ///
    /// # Errors
    /// What the client is answered of a write that is refused.
    pub async fn mutate(&self, attributes: &mut Attributes<'_>) -> ApiResult<bool> {
        let began = Instant::now();
        let mutated = mutating::mutate(&self.mutating, attributes).await;
        measure(attributes, "MutatingAdmissionPolicy", Phase::Admit, began, mutated.is_err());
        mutated?;
        let began = Instant::now();
        let mutated = self.mutating_webhooks.mutate(attributes).await;
        measure(attributes, "MutatingAdmissionWebhook", Phase::Admit, began, mutated.is_err());
        mutated.map(|()| attributes.reinvocation.is_wanted && !attributes.reinvocation.is_second)
    }

    /// Has the finished object looked at by all that refuse writes.
    ///
    /// # Errors
    /// What the client is answered of a write that is refused.
    pub async fn validate(&self, attributes: &Attributes<'_>) -> ApiResult<()> {
        let began = Instant::now();
        let validated = validating::validate(&self.validating, attributes).await;
        measure(attributes, "ValidatingAdmissionPolicy", Phase::Validate, began, validated.is_err());
        validated?;
        let began = Instant::now();
        let validated = self.validating_webhooks.validate(attributes).await;
        measure(attributes, "ValidatingAdmissionWebhook", Phase::Validate, began, validated.is_err());
        validated
    }
}

fn measure(attributes: &Attributes<'_>, plugin: &'static str, phase: Phase, began: Instant, is_refused: bool) {
    let metrics = &attributes.registry.metrics;
    metrics.took_plugin(plugin, attributes.operation, phase, began.elapsed(), is_refused);
}
