//! The webhooks of all configurations, and when each is asked.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::Webhook;
use crate::admission::conditions::Conditions;
use crate::admission::following::Read;
use crate::admission::{Criteria, Index, Indexed};

/// A webhook of a configuration.
#[derive(Debug)]
pub struct Listed {
    /// Its place in the configuration.
    at: usize,
    /// What is asked.
    pub webhook: Webhook,
    /// What it wants to see.
    pub criteria: Criteria,
    /// What has to hold besides.
    pub conditions: Conditions,
}

impl Listed {
    /// The webhooks of a configuration, in their order.
    pub fn of(mutating: bool, configuration: &Value) -> Vec<Arc<Self>> {
        let name = configuration.str_at(&["metadata", "name"]);
        let listed = |(at, webhook)| Self {
            at,
            webhook: Webhook::of(name, mutating, webhook),
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::of_webhook(webhook),
        };
        configuration.list_at(&["webhooks"]).iter().enumerate().map(listed).map(Arc::new).collect()
    }

    /// An index of all webhooks, by the names of their configurations.
    pub fn index(configurations: &Read<Vec<Arc<Self>>>) -> Index<Self> {
        Index::of(configurations.values().flat_map(|webhooks| webhooks.iter().cloned()).collect())
    }

    /// What tells it from all others.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.webhook.configuration, self.webhook.name, self.at)
    }
}

impl Indexed for Listed {
    fn criteria(&self) -> &Criteria {
        &self.criteria
    }
}
