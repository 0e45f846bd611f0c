//! The webhooks of all configurations, each with the writes that it matches.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::Webhook;
use crate::admission::conditions::Conditions;
use crate::admission::following::Read;
use crate::admission::{Criteria, Index, Indexed};

/// A webhook with the writes that it matches.
#[derive(Debug)]
pub struct RegisteredWebhook {
    /// Its position in the configuration.
    at: usize,
    /// The webhook to call.
    pub webhook: Webhook,
    /// The writes that it matches.
    pub criteria: Criteria,
    /// Its match conditions.
    pub conditions: Conditions,
}

impl RegisteredWebhook {
    /// Returns the webhooks of a configuration, in order.
    pub fn of(mutating: bool, configuration: &Value) -> Vec<Arc<Self>> {
        let name = configuration.str_at(&["metadata", "name"]);
        let registered = |(at, webhook)| Self {
            at,
            webhook: Webhook::of(name, mutating, webhook),
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::of_webhook(webhook),
        };
        configuration.list_at(&["webhooks"]).iter().enumerate().map(registered).map(Arc::new).collect()
    }

    /// Returns an index of all webhooks, ordered by the names of their configurations.
    pub fn index(configurations: &Read<Vec<Arc<Self>>>) -> Index<Self> {
        Index::of(configurations.values().flat_map(|webhooks| webhooks.iter().cloned()).collect())
    }

    /// Returns a key that identifies the webhook among all.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.webhook.configuration, self.webhook.name, self.at)
    }
}

impl Indexed for RegisteredWebhook {
    fn criteria(&self) -> &Criteria {
        &self.criteria
    }
}
