//! Users of requests.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::tokens::USER_PREFIX;
use crate::rules::names;

/// Group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of all unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of the unauthenticated user.
pub const ANONYMOUS: &str = "system:anonymous";

/// Key of the extra value in which a service account's token names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Returns namespace and name of the service account with this user name. Returns `None` if it is not the name of a
/// service account.
pub fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USER_PREFIX)?.split_once(':')?;
    let fit = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    fit.then_some((namespace, name))
}

/// Extra values of a user, by key.
pub type Extra = BTreeMap<String, Vec<String>>;

/// A user, as `UserInfo` of `authentication.k8s.io/v1` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Name, unique among users.
    pub name: CompactString,
    /// Distinguishes users that have the same name at different times; may be empty.
    pub uid: CompactString,
    /// Groups in order.
    pub groups: Vec<CompactString>,
    /// Extra values.
    pub extra: Extra,
}

impl User {
    /// Returns the user of requests without credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Adds the group [`AUTHENTICATED`], unless the user is anonymous.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_member(AUTHENTICATED) && !self.is_member(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }

    /// Returns the node of a service account's pod, which the token names. Returns `None` if the user is not a service
    /// account, or its token names no node.
    pub fn node(&self) -> Option<&str> {
        self.account()?;
        match self.extra.get(NODE_NAME).map(Vec::as_slice) {
            Some([node]) => Some(node),
            _ => None,
        }
    }

    /// Returns namespace and name of the service account. Returns `None` if the user is not a service account.
    pub fn account(&self) -> Option<(&str, &str)> {
        account(&self.name)
    }

    /// Returns whether the user belongs to a group.
    pub fn is_member(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
