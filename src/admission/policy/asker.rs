//! The variable `authorizer` of expressions: what the user of a request, or a service account, may do.

use std::sync::Arc;

use flotilla_cel::library::authorizer::{Asked, Authorizer as Asks, Decision, ServiceAccount};

use crate::access::tokens::USER_PREFIX;
use crate::access::{Attributes, Authorizer, Decision as Decided, ResourceAttributes, User};

/// Group of all service accounts; with the name of a namespace behind it, of those of the namespace.
const ACCOUNTS: &str = "system:serviceaccounts";

/// Answers questions about a user.
#[derive(Debug)]
pub struct Asker {
    /// Who decides.
    pub authorizer: Authorizer,
    /// Who asks.
    pub user: Arc<User>,
}

impl Asks for Asker {
    fn authorize(&self, account: Option<&ServiceAccount>, asked: &Asked) -> Decision {
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
