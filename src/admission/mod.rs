//! Admission decides whether a write is allowed, and which changes it must get (Kubernetes documentation, "Admission
//! Control").
//!
//! Admission is one [chain](chain::CHAIN) of [plugins](plugin::Plugin) in the order of the reference. A plugin has a
//! step that changes objects, a step that refuses finished objects, or both. Each step states the operations and
//! resources that concern it, and the [basis of its decision](plugin::DecidesBy). The registry's shortcuts follow from
//! these.
//!
//! The registry passes each write twice: [unfinished](Admission::mutate_new) and [finished](Admission::validate_new).
//! If an object must exist before the write, a step returns a [`Prerequisite`], which the registry creates.
//!
//! [Plugins within the server](plugins) see a write as [`BuiltInAttributes`]. Each served resource records the plugins
//! that concern it, and a write looks up no plugin. Policies and webhooks come after them, and only quotas after these.
//!
//! # Policies and webhooks
//!
//! A write that no policy or webhook may match costs one lookup: [`Admission::concerns`] (Kubernetes documentation,
//! "Dynamic Admission Control"). Any other write becomes [`DynamicAttributes`]. [`Admission::mutate`] runs after the
//! server's own mutating steps, and [`Admission::validate`] on the finished object, before quotas are charged and the
//! object is stored. No lock is held during a wait.
//!
//! Each plugin that asks outside keeps an [`Index`] of its policies or webhooks, and builds it from the tables that it
//! [follows](following::follow). After a change it publishes the resources that may match ([`Admission::publish`]).
//!
//! - A mutating step calls [`Criteria::find`], reads the object in the matched version by
//!   [`DynamicAttributes::seen_as`], and replaces it by [`DynamicAttributes::replace`].
//!   [`DynamicAttributes::reinvocation`] records the plugins that must run again if the object changes afterwards.
//! - Warnings go to [`DynamicAttributes::warn`] and audit annotations to [`DynamicAttributes::annotate`], also for
//!   writes that are refused afterwards.

mod attributes;
pub mod chain;
pub mod conditions;
mod configuration;
mod effort;
mod event_rates;
pub mod following;
mod image_policy;
mod index;
mod match_attributes;
mod matching;
pub mod mutating;
mod outside;
pub mod plugin;
pub mod plugins;
mod points;
pub mod policy;
mod reinvocation;
mod running;
pub mod tolerations;
pub mod validating;
mod webhooks;
mod write;

pub use attributes::{DynamicAttributes, Seen};
pub use chain::Switches;
pub use configuration::{Configuration, ConfigurationError};
pub use effort::Effort;
pub use index::{Concerns, Index, Indexed};
pub use match_attributes::MatchAttributes;
pub use matching::{Criteria, MatchedVersion, RuleVersion};
pub use outside::Question;
pub use plugin::{Prerequisite, Presence, Provide};
pub use reinvocation::{Invoked, Reinvocation};
pub use write::{BuiltInAttributes, Results};

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::chain::CHAIN;
use self::mutating::MutatingPolicy;
use self::plugin::{Mutating, Plugin, Validating};
use self::policy::{MUTATING_POLICIES, Policies, VALIDATING_POLICIES};
use self::validating::ValidatingPolicy;
use self::webhooks::Webhooks;
pub use crate::metrics::admission::Operation;
use crate::metrics::admission::Phase;
use crate::status::ApiResult;
use crate::tables::Tables;

/// The plugins that ask policies and webhooks. Clients may add these while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicPlugin {
    /// Policies that change objects.
    MutatingPolicy,
    /// Webhooks that change objects.
    MutatingWebhook,
    /// Policies that refuse writes.
    ValidatingPolicy,
    /// Webhooks that refuse writes.
    ValidatingWebhook,
}

impl DynamicPlugin {
    /// The number of plugins.
    pub const COUNT: usize = 4;

    /// The plugins that follow tables if they are on. Once they have read these tables, they publish the resources that
    /// may match.
    pub const FOLLOWED: [Self; Self::COUNT] =
        [Self::MutatingPolicy, Self::MutatingWebhook, Self::ValidatingPolicy, Self::ValidatingWebhook];

    /// Returns the plugin as the chain has it.
    pub const fn plugin(self) -> &'static Plugin {
        match self {
            Self::MutatingPolicy => &mutating::PLUGIN,
            Self::MutatingWebhook => &webhooks::MUTATING,
            Self::ValidatingPolicy => &validating::PLUGIN,
            Self::ValidatingWebhook => &webhooks::VALIDATING,
        }
    }
}

/// The plugins and their settings, all policies and webhooks, and the resources that these may match.
#[derive(Debug)]
pub struct Admission {
    /// The stored objects by which plugins decide.
    pub tables: Arc<Tables>,
    /// The plugins that are on. Must be set before the first write.
    pub plugins: Switches,
    /// Whether a controller creates the account `default` in each namespace. If so, pods are refused until it exists.
    pub accounts_are_made: bool,
    /// The operations that each plugin has published. `None` until the plugin publishes for the first time. `any` is
    /// the union.
    each: Mutex<[Option<Concerns>; DynamicPlugin::COUNT]>,
    any: ArcSwap<Concerns>,
    /// Policies that change objects.
    pub mutating: Policies<MutatingPolicy>,
    /// Policies that refuse writes.
    pub validating: Policies<ValidatingPolicy>,
    /// The number of plugins that have published.
    published: watch::Sender<usize>,
    /// Webhooks that change objects.
    pub mutating_webhooks: Webhooks,
    /// Webhooks that refuse writes.
    pub validating_webhooks: Webhooks,
    /// The configuration of the plugins.
    pub configuration: Arc<Configuration>,
}

impl Admission {
    /// Returns admission by these tables, with the default plugins and no policies and webhooks yet.
    pub fn new(tables: Arc<Tables>) -> Self {
        Self {
            tables,
            plugins: Switches::default(),
            accounts_are_made: false,
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

    /// Returns whether any plugin may match an operation on a resource, by its plural name. If not, the write needs
    /// nothing else from this module.
    pub fn concerns(&self, resource: &str, operation: Operation) -> bool {
        self.any.load().has(resource, operation)
    }

    /// Returns whether any mutating policy or webhook may match a write.
    pub fn may_change(&self, write: &MatchAttributes<'_>) -> bool {
        self.mutating.may_want(write) || self.mutating_webhooks.may_want(write)
    }

    /// Returns whether any validating policy or webhook may match a write.
    pub fn may_refuse(&self, write: &MatchAttributes<'_>) -> bool {
        self.validating.may_want(write) || self.validating_webhooks.may_want(write)
    }

    /// Keeps a plugin's index current, for ever.
    pub async fn follow(&self, plugin: DynamicPlugin) {
        match plugin {
            DynamicPlugin::MutatingPolicy => self.mutating.follow(self, plugin, MUTATING_POLICIES).await,
            DynamicPlugin::MutatingWebhook => self.mutating_webhooks.follow(self, plugin).await,
            DynamicPlugin::ValidatingPolicy => self.validating.follow(self, plugin, VALIDATING_POLICIES).await,
            DynamicPlugin::ValidatingWebhook => self.validating_webhooks.follow(self, plugin).await,
        }
    }

    /// Sets the operations that a plugin may match from now on. The plugin must have changed its own index before.
    pub fn publish(&self, plugin: DynamicPlugin, concerns: Concerns) {
        let mut each = self.each.lock();
        each[plugin as usize] = Some(concerns);
        let mut any = Concerns::default();
        each.iter().flatten().cloned().for_each(|concerns| any.take_in(concerns));
        self.any.store(Arc::new(any));
        let published = each.iter().flatten().count();
        drop(each);
        self.published.send_replace(published);
    }

    /// Waits until this many plugins have published. No write may pass before that: the policies and webhooks are not
    /// known.
    pub async fn is_complete(&self, plugins: usize) {
        let _ = self.published.subscribe().wait_for(|published| *published >= plugins).await;
    }

    /// Lets mutating policies and webhooks change the object, in the order of the chain. Returns whether they and the
    /// server's own plugins must run once more: see [`Reinvocation`].
    ///
    /// # Errors
    /// The error for the client when the write is refused.
    pub async fn mutate(attributes: &mut DynamicAttributes<'_>) -> ApiResult<bool> {
        for plugin in CHAIN.iter().filter(|plugin| attributes.admission.plugins.is_on(plugin)) {
            let Some(Mutating::Outside(run)) = plugin.mutating.map(|step| step.run) else { continue };
            let began = Instant::now();
            let mutated = run(attributes).await;
            measure(attributes, plugin.name, Phase::Admit, began, mutated.is_err());
            mutated?;
        }
        Ok(attributes.reinvocation.is_wanted && !attributes.reinvocation.is_second)
    }

    /// Lets validating policies and webhooks check the finished object, in the order of the chain.
    ///
    /// # Errors
    /// The error for the client when the write is refused.
    pub async fn validate(attributes: &DynamicAttributes<'_>) -> ApiResult<()> {
        for plugin in CHAIN.iter().filter(|plugin| attributes.admission.plugins.is_on(plugin)) {
            let Some(Validating::Outside(run)) = plugin.validating.map(|step| step.run) else { continue };
            let began = Instant::now();
            let validated = run(attributes).await;
            measure(attributes, plugin.name, Phase::Validate, began, validated.is_err());
            validated?;
        }
        Ok(())
    }
}

fn measure(attributes: &DynamicAttributes<'_>, plugin: &'static str, phase: Phase, began: Instant, is_refused: bool) {
    let metrics = &attributes.admission.tables.metrics;
    metrics.took_plugin(plugin, attributes.operation, phase, began.elapsed(), is_refused);
}
