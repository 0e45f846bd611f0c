//! The variable `authorizer` of expressions: decides about permissions of the user of a request, or of a service
//! account.

use std::collections::HashMap;
use std::sync::Arc;

use flotilla_cel::library::authorizer::{Authorizer as CelAuthorizer, CheckedAction, Decision, ServiceAccount};
use parking_lot::Mutex;

use crate::access::tokens::USER_PREFIX;
use crate::access::{Attributes, Authorizer, Inquiry, ResourceAttributes, User};
use crate::limits;

/// Group of all service accounts. With `:` and a namespace appended, the group of the accounts of that namespace.
const ACCOUNTS: &str = "system:serviceaccounts";

/// Decides about actions of a user and caches the decisions. All policies of a write thus get the same ones.
#[derive(Debug)]
pub struct CachedAuthorizer {
    authorizer: Authorizer,
    user: Arc<User>,
    /// The cached decisions, about the user (`None`) or about a service account.
    decisions: Mutex<HashMap<(Option<ServiceAccount>, CheckedAction), Decision>>,
    /// The question to a webhook that must be answered first. While it is open, decisions mean nothing.
    inquiry: Inquiry,
}

impl CachedAuthorizer {
    /// Creates an authorizer for a user.
    pub fn new(authorizer: Authorizer, user: Arc<User>) -> Self {
        Self { authorizer, user, decisions: Mutex::default(), inquiry: Inquiry::default() }
    }

    /// Returns the inquiry. While it has an open question for a webhook, expressions cannot be evaluated.
    pub const fn inquiry(&self) -> &Inquiry {
        &self.inquiry
    }

    fn decide(&self, account: Option<&ServiceAccount>, action: &CheckedAction) -> Decision {
        let account = account.map(|ServiceAccount { namespace, name }| User {
            name: format!("{USER_PREFIX}{namespace}:{name}").into(),
            groups: vec![ACCOUNTS.into(), format!("{ACCOUNTS}:{namespace}").into()],
            ..User::default()
        });
        let user = account.as_ref().unwrap_or(&self.user);
        let attributes = match action {
            CheckedAction::Path { path, verb } => Attributes::Path { verb, path },
            CheckedAction::Resource { resource, verb } => Attributes::Resource(ResourceAttributes {
                verb,
                group: &resource.group,
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
                fields: &resource.field_selector,
                labels: &resource.label_selector,
                version: "*",
            }),
        };
        let decided = self.authorizer.decide(user, &attributes, &self.inquiry);
        let is_allowed = decided.is_allowed();
        Decision { is_allowed, reason: decided.reason, error: Some(decided.error).filter(|error| !error.is_empty()) }
    }
}

impl CelAuthorizer for CachedAuthorizer {
    fn authorize(&self, account: Option<&ServiceAccount>, action: &CheckedAction) -> Decision {
        let question = (account.cloned(), action.clone());
        if let Some(known) = self.decisions.lock().get(&question) {
            return known.clone();
        }
        let decision = self.decide(account, action);
        let mut decisions = self.decisions.lock();
        if !self.inquiry.is_open() && decisions.len() < limits::DECISIONS_KEPT {
            decisions.insert(question, decision.clone());
        }
        decision
    }
}
