//! The roles and bindings of a namespace, or of the cluster.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;

use super::binding::{Binding, Grantee};
use super::rule::Rule;
use crate::access::user::User;

/// Roles of one scope by name, and its bindings by name and by the users and groups that they name.
#[derive(Debug, Clone, Default)]
pub struct RbacScope {
    roles: HashMap<CompactString, Arc<[Rule]>>,
    bindings: HashMap<CompactString, Arc<Binding>>,
    users: BindingsByName,
    groups: BindingsByName,
}

/// Bindings by the name of a user or group, each list in the order of the bindings' names.
type BindingsByName = HashMap<CompactString, Vec<Arc<Binding>>>;

impl RbacScope {
    /// Returns the rules of a role. `None` if the role does not exist.
    pub fn role(&self, name: &str) -> Option<&Arc<[Rule]>> {
        self.roles.get(name)
    }

    /// Returns bindings that name a user or one of its groups. A binding that names several of them occurs several
    /// times.
    pub fn bindings_of(&self, user: &User) -> impl Iterator<Item = &Arc<Binding>> {
        let by_group = user.groups.iter().filter_map(|group| self.groups.get(group)).flatten();
        self.users.get(&user.name).into_iter().flatten().chain(by_group)
    }

    pub(super) fn has_no_roles(&self) -> bool {
        self.roles.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// Sets the rules of a role, or removes it.
    pub(super) fn set_role(&mut self, name: &str, rules: Option<Vec<Rule>>) {
        match rules {
            Some(rules) => self.roles.insert(name.into(), rules.into()),
            None => self.roles.remove(name),
        };
    }

    /// Sets or removes a binding.
    pub(super) fn set_binding(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.bindings.remove(name) {
            for grantee in old.grantees() {
                let (list, key) = self.list(grantee);
                if let Some(bindings) = list.get_mut(key) {
                    bindings.retain(|other| other.name != name);
                    if bindings.is_empty() {
                        list.remove(key);
                    }
                }
            }
        }
        let Some(binding) = binding.map(Arc::new) else { return };
        for grantee in binding.grantees() {
            let (list, key) = self.list(grantee);
            let bindings = list.entry(key.clone()).or_default();
            if let Err(at) = bindings.binary_search_by(|other| other.name.cmp(&binding.name)) {
                bindings.insert(at, Arc::clone(&binding));
            }
        }
        self.bindings.insert(binding.name.clone(), binding);
    }

    pub(super) fn role_names(&self) -> impl Iterator<Item = &CompactString> {
        self.roles.keys()
    }

    pub(super) fn binding_names(&self) -> impl Iterator<Item = &CompactString> {
        self.bindings.keys()
    }

    fn list<'w>(&mut self, grantee: &'w Grantee) -> (&mut BindingsByName, &'w CompactString) {
        match grantee {
            Grantee::User(name) => (&mut self.users, name),
            Grantee::Group(name) => (&mut self.groups, name),
        }
    }
}
