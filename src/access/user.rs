//! Users as requests act for them.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::tokens::USER_PREFIX;
use crate::rules::names;

/// Group of everybody who authenticated.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of those who did not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of those who did not.
pub const ANONYMOUS: &str = "system:anonymous";

/// Fact about a service account by which its token tells the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Namespace and name of the service account of a user's name.
pub fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USER_PREFIX)?.split_once(':')?;
    let fit = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    fit.then_some((namespace, name))
}

/// Further facts of a user, by key.
pub type Extra = BTreeMap<String, Vec<String>>;

/// A user, as `UserInfo` of `authentication.k8s.io/v1` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Name, unique among users.
    pub name: CompactString,
    /// Tells users of one name apart over time; may be empty.
    pub uid: CompactString,
    /// Groups in order.
    pub groups: Vec<CompactString>,
    /// Further facts.
    pub extra: Extra,
}

impl User {
    /// Who asks without credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// The user as one that showed who it is: a member of [`AUTHENTICATED`].
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_member(AUTHENTICATED) && !self.is_member(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }

    /// The node on which the pod of a service account runs, as its token tells.
    pub fn node(&self) -> Option<&str> {
        self.account()?;
        match self.extra.get(NODE_NAME).map(Vec::as_slice) {
            Some([node]) => Some(node),
            _ => None,
        }
    }

    /// Namespace and name of the service account that the user is.
    pub fn account(&self) -> Option<(&str, &str)> {
        account(&self.name)
    }

    /// Whether the user belongs to a group.
    pub fn is_member(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
