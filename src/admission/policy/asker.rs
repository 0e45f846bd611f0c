//! The variable `authorizer` of expressions: answers what the user of a request, or a service account, may do.

use std::collections::HashMap;
use std::sync::Arc;

use flotilla_cel::library::authorizer::{Asked, Authorizer as Asks, Decision, ServiceAccount};
use parking_lot::Mutex;

use crate::access::tokens::USER_PREFIX;
use crate::access::{Attributes, Authorizer, Decision as Decided, ResourceAttributes, User};
use crate::limits;

/// Group of all service accounts. With `:` and a namespace appended, the group of the accounts of that namespace.
const ACCOUNTS: &str = "system:serviceaccounts";

/// Answers questions about a user and caches the answers, so that all policies of a write get the same ones.
#[derive(Debug)]
pub struct Asker {
    authorizer: Authorizer,
    user: Arc<User>,
    /// The cached decisions, about the user (`None`) or about a service account.
    answered: Mutex<HashMap<(Option<ServiceAccount>, Asked), Decision>>,
}

impl Asker {
    /// Creates an asker about a user.
    pub fn new(authorizer: Authorizer, user: Arc<User>) -> Self {
        Self { authorizer, user, answered: Mutex::default() }
    }

    fn decide(&self, account: Option<&ServiceAccount>, asked: &Asked) -> Decision {
        let account = account.map(|ServiceAccount { namespace, name }| User {
            name: format!("{USER_PREFIX}{namespace}:{name}").into(),
            groups: vec![ACCOUNTS.into(), format!("{ACCOUNTS}:{namespace}").into()],
            ..User::default()
        });
        let user = account.as_ref().unwrap_or(&self.user);
        let attributes = match asked {
            Asked::Path { path, verb } => Attributes::Path { verb, path },
            Asked::Resource { resource, verb } => Attributes::Resource(ResourceAttributes {
                verb,
                group: &resource.group,
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
                fields: &resource.field_selector,
            }),
        };
        match self.authorizer.decide(user, &attributes) {
            Decided::Allow(reason) => Decision { is_allowed: true, reason, error: None },
            Decided::NoOpinion(reason) => Decision { is_allowed: false, reason, error: None },
        }
    }
}

impl Asks for Asker {
    fn authorize(&self, account: Option<&ServiceAccount>, asked: &Asked) -> Decision {
        let question = (account.cloned(), asked.clone());
        if let Some(known) = self.answered.lock().get(&question) {
            return known.clone();
        }
        let decision = self.decide(account, asked);
        let mut answered = self.answered.lock();
        if answered.len() < limits::DECISIONS_KEPT {
            answered.insert(question, decision.clone());
        }
        decision
    }
}
