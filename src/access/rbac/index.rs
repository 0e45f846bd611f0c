//! Indexes the roles and bindings of all namespaces and of the cluster, for reads without locks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use arc_swap::ArcSwap;
use compact_str::CompactString;
use flotilla_cluster::Revision;
use tokio::sync::watch;

use super::Unresolved;
use super::binding::{Binding, RoleRef};
use super::rule::Rule;
use super::scope::RbacScope;
use crate::access::attributes::Attributes;
use crate::access::user::User;

/// The number of parts into which namespaces are divided: a change copies the map of one part.
const PARTS: usize = 128;

/// A revision of each table of [`super::RESOURCES`].
pub type Revisions = [Revision; 4];

type NamespacePart = HashMap<CompactString, Arc<RbacScope>>;

/// The index of roles and bindings at some moment. An [`Editor`] replaces it part by part.
pub struct Rbac {
    cluster: ArcSwap<RbacScope>,
    namespaces: Box<[ArcSwap<NamespacePart>]>,
    complete: watch::Sender<bool>,
    /// The revision up to which the index contains each table.
    applied: watch::Sender<Revisions>,
}

impl Default for Rbac {
    fn default() -> Self {
        Self {
            cluster: ArcSwap::default(),
            namespaces: (0..PARTS).map(|_| ArcSwap::default()).collect(),
            complete: watch::Sender::new(false),
            applied: watch::Sender::default(),
        }
    }
}

impl std::fmt::Debug for Rbac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rbac").finish_non_exhaustive()
    }
}

impl Rbac {
    /// Returns a binding that allows a request of a user. `None` if there is none.
    pub fn find(&self, user: &User, attributes: &Attributes<'_>) -> Option<Arc<Binding>> {
        self.visit(user, attributes.namespace(), |binding, rules| {
            let allows = rules.is_some_and(|rules| rules.iter().any(|rule| rule.allows(attributes)));
            if allows { ControlFlow::Break(Arc::clone(binding)) } else { ControlFlow::Continue(()) }
        })
    }

    /// Returns whether no ClusterRole is known: then the bootstrap objects do not exist yet.
    pub fn is_empty(&self) -> bool {
        self.cluster.load().has_no_roles()
    }

    /// Returns the missing roles that a user's bindings name. An empty namespace means ClusterRoleBindings alone.
    pub fn unresolved(&self, user: &User, namespace: &str) -> Vec<Unresolved> {
        self.resolved(user, namespace).1
    }

    /// Returns the rules that a user has in a namespace, and the missing roles, both in the order of the bindings'
    /// names, ClusterRoleBindings first.
    pub fn resolved(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<Unresolved>) {
        let mut found = BTreeMap::new();
        self.visit(user, namespace, |binding, rules| {
            let place = (binding.namespace.clone(), binding.name.clone());
            found.insert(place, (binding.role.clone(), rules.cloned()));
            ControlFlow::<()>::Continue(())
        });
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        for (role, rules) in found.into_values() {
            match rules {
                Some(rules) => all.extend(rules.iter().cloned()),
                None => missing.push(unresolved(&role)),
            }
        }
        (all, missing)
    }

    /// Returns the rules of a role that a binding in a namespace names. An empty namespace means a ClusterRoleBinding.
    ///
    /// # Errors
    /// There is no such role.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Arc<[Rule]>, Unresolved> {
        let rules = match role {
            RoleRef::ClusterRole(name) => self.cluster.load().role(name).cloned(),
            RoleRef::Role(name) => {
                let part = self.part(namespace).load();
                part.get(namespace).and_then(|scope| scope.role(name)).cloned()
            }
            RoleRef::Other(_) => None,
        };
        rules.ok_or_else(|| unresolved(role))
    }

    /// Waits until all tables were read once.
    pub async fn is_complete(&self) {
        // The sender lives as long as `self`.
        let _ = self.complete.subscribe().wait_for(|complete| *complete).await;
    }

    /// Waits until the index contains each table up to a revision.
    pub async fn reach(&self, revisions: Revisions) {
        let is_applied =
            |applied: &Revisions| applied.iter().zip(&revisions).all(|(applied, wanted)| applied >= wanted);
        // The sender lives as long as `self`.
        let _ = self.applied.subscribe().wait_for(is_applied).await;
    }

    /// Calls `see` with each binding of a user, and the rules of its role if that exists, until `see` breaks.
    fn visit<B>(
        &self,
        user: &User,
        namespace: &str,
        mut see: impl FnMut(&Arc<Binding>, Option<&Arc<[Rule]>>) -> ControlFlow<B>,
    ) -> Option<B> {
        let cluster = self.cluster.load();
        let by_cluster = |binding: &Binding| match &binding.role {
            RoleRef::ClusterRole(name) => cluster.role(name),
            _ => None,
        };
        for binding in cluster.bindings_of(user) {
            if let ControlFlow::Break(found) = see(binding, by_cluster(binding)) {
                return Some(found);
            }
        }
        if namespace.is_empty() {
            return None;
        }
        let part = self.part(namespace).load();
        let scope = part.get(namespace)?;
        for binding in scope.bindings_of(user) {
            let rules = match &binding.role {
                RoleRef::Role(name) => scope.role(name),
                _ => by_cluster(binding),
            };
            if let ControlFlow::Break(found) = see(binding, rules) {
                return Some(found);
            }
        }
        None
    }

    fn part(&self, namespace: &str) -> &ArcSwap<NamespacePart> {
        &self.namespaces[part_of(namespace)]
    }
}

/// Returns the part of a namespace, by FNV-1a. Collisions only cost time, so the hash need not resist attacks.
fn part_of(namespace: &str) -> usize {
    let hash = namespace.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash as usize % PARTS
}

fn unresolved(role: &RoleRef) -> Unresolved {
    match role {
        RoleRef::Role(name) => Unresolved::NotFound { singular: "role", name: name.to_string() },
        RoleRef::ClusterRole(name) => Unresolved::NotFound { singular: "clusterrole", name: name.to_string() },
        RoleRef::Other(kind) => Unresolved::Unsupported(kind.to_string()),
    }
}

/// Changes an [`Rbac`]. Changes become visible when they are published.
#[derive(Debug)]
pub struct Editor {
    cluster: Arc<RbacScope>,
    namespaces: Vec<NamespacePart>,
    cluster_changed: bool,
    changed: BTreeSet<usize>,
    read_to: Revisions,
}

impl Default for Editor {
    fn default() -> Self {
        Self {
            cluster: Arc::default(),
            namespaces: vec![NamespacePart::default(); PARTS],
            cluster_changed: false,
            changed: BTreeSet::new(),
            read_to: Revisions::default(),
        }
    }
}

impl Editor {
    /// Sets the rules of a role, or removes it. An empty namespace means a ClusterRole.
    pub fn set_role(&mut self, namespace: &str, name: &str, rules: Option<Vec<Rule>>) {
        self.edit(namespace, |scope| scope.set_role(name, rules));
    }

    /// Sets or removes a binding. An empty namespace means a ClusterRoleBinding.
    pub fn set_binding(&mut self, namespace: &str, name: &str, binding: Option<Binding>) {
        self.edit(namespace, |scope| scope.set_binding(name, binding));
    }

    /// Returns namespace and name of all Roles, or of all ClusterRoles.
    pub(super) fn roles(&self, namespaced: bool) -> Vec<(CompactString, CompactString)> {
        self.names(namespaced, |scope| scope.role_names().cloned().collect())
    }

    /// Returns namespace and name of all RoleBindings, or of all ClusterRoleBindings.
    pub(super) fn bindings(&self, namespaced: bool) -> Vec<(CompactString, CompactString)> {
        self.names(namespaced, |scope| scope.binding_names().cloned().collect())
    }

    /// Makes all changes visible.
    pub fn publish(&mut self, rbac: &Rbac) {
        for part in std::mem::take(&mut self.changed) {
            rbac.namespaces[part].store(Arc::new(self.namespaces[part].clone()));
        }
        if std::mem::take(&mut self.cluster_changed) {
            rbac.cluster.store(Arc::clone(&self.cluster));
        }
        rbac.applied.send_replace(self.read_to);
    }

    /// Records that a table was read up to a revision.
    pub(super) fn note_read(&mut self, table: usize, revision: Revision) {
        self.read_to[table] = revision;
    }

    /// Publishes, and records that all tables were read once.
    pub(super) fn complete(&mut self, rbac: &Rbac) {
        self.publish(rbac);
        rbac.complete.send_replace(true);
    }

    fn edit(&mut self, namespace: &str, edit: impl FnOnce(&mut RbacScope)) {
        if namespace.is_empty() {
            self.cluster_changed = true;
            edit(Arc::make_mut(&mut self.cluster));
            return;
        }
        let part = part_of(namespace);
        self.changed.insert(part);
        let scope = self.namespaces[part].entry(namespace.into()).or_default();
        edit(Arc::make_mut(scope));
        if scope.is_empty() {
            self.namespaces[part].remove(namespace);
        }
    }

    fn names(
        &self,
        namespaced: bool,
        of: impl Fn(&RbacScope) -> Vec<CompactString>,
    ) -> Vec<(CompactString, CompactString)> {
        let with = |namespace: &CompactString, scope: &RbacScope| -> Vec<_> {
            of(scope).into_iter().map(|name| (namespace.clone(), name)).collect()
        };
        if namespaced {
            self.namespaces.iter().flatten().flat_map(|(namespace, scope)| with(namespace, scope)).collect()
        } else {
            with(&CompactString::default(), &self.cluster)
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;
    use flotilla_proto::value::Value;

    use super::*;
    use crate::access::attributes::ResourceAttributes;

    fn rules(resource: &str) -> Option<Vec<Rule>> {
        Some(Rule::list(&value!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}]})))
    }

    fn binding(namespace: &str, name: &str, role: &str, subject: Value) -> Option<Binding> {
        let (kind, role) = role.split_once('/').unwrap();
        Some(Binding::read(&value!({
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"kind": kind, "name": role}, "subjects": [subject],
        })))
    }

    fn may(rbac: &Rbac, user: &User, namespace: &str, resource: &str) -> bool {
        let attributes = ResourceAttributes { verb: "get", resource, namespace, ..ResourceAttributes::default() };
        rbac.find(user, &Attributes::Resource(attributes)).is_some()
    }

    #[test]
    fn roles_allow_in_the_namespaces_of_their_bindings() {
        let (rbac, mut editor) = (Rbac::default(), Editor::default());
        let (ann, devs) = (value!({"kind": "User", "name": "ann"}), value!({"kind": "Group", "name": "devs"}));
        editor.set_role("", "pods", rules("pods"));
        editor.set_role("ns", "own", rules("secrets"));
        editor.set_binding("ns", "a", binding("ns", "a", "Role/own", ann.clone()));
        editor.set_binding("ns", "b", binding("ns", "b", "ClusterRole/pods", devs.clone()));
        let ann = User { name: "ann".into(), groups: vec!["devs".into()], ..User::default() };
        assert!(!may(&rbac, &ann, "ns", "pods"), "nothing is visible before it is published");
        editor.publish(&rbac);
        assert!(may(&rbac, &ann, "ns", "pods") && may(&rbac, &ann, "ns", "secrets"));
        assert!(!may(&rbac, &ann, "other", "pods") && !may(&rbac, &ann, "", "pods"));
        editor.set_binding("", "all", binding("", "all", "ClusterRole/pods", devs));
        editor.publish(&rbac);
        assert!(may(&rbac, &ann, "other", "pods") && may(&rbac, &ann, "", "pods"));
        assert_eq!(rbac.resolved(&ann, "ns").0.len(), 3);
        editor.set_binding("", "all", None);
        editor.set_role("ns", "own", None);
        editor.publish(&rbac);
        assert!(!may(&rbac, &ann, "", "pods") && !may(&rbac, &ann, "ns", "secrets"));
        let missing = rbac.unresolved(&ann, "ns");
        assert_eq!(missing[0].to_string(), "role.rbac.authorization.k8s.io \"own\" not found");
    }

    #[test]
    fn a_changed_binding_no_longer_serves_its_former_subjects() {
        let (rbac, mut editor) = (Rbac::default(), Editor::default());
        editor.set_role("", "pods", rules("pods"));
        for name in ["ann", "bob"] {
            let subject = value!({"kind": "User", "name": name});
            editor.set_binding("", "b", binding("", "b", "ClusterRole/pods", subject));
        }
        editor.publish(&rbac);
        let user = |name: &str| User { name: name.into(), ..User::default() };
        assert!(!may(&rbac, &user("ann"), "", "pods") && may(&rbac, &user("bob"), "", "pods"));
        assert_eq!(editor.bindings(false).len(), 1);
        editor.set_binding("", "b", None);
        editor.publish(&rbac);
        assert!(!may(&rbac, &user("bob"), "", "pods"));
    }
}
