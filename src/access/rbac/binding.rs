//! Bindings, which give users and groups the rules of a role.

use std::fmt;

use compact_str::{CompactString, format_compact};
use flotilla_proto::value::Value;

use crate::access::tokens::USER_PREFIX;
use crate::access::user::User;
use crate::field::quote;

/// A RoleBinding or a ClusterRoleBinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Namespace; empty for a ClusterRoleBinding.
    pub namespace: CompactString,
    /// Name.
    pub name: CompactString,
    /// The role whose rules it grants.
    pub role: RoleRef,
    subjects: Vec<Subject>,
}

/// The role that a binding names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleRef {
    /// A Role of the binding's namespace.
    Role(CompactString),
    /// A ClusterRole.
    ClusterRole(CompactString),
    /// Another kind, which grants nothing.
    Other(CompactString),
}

/// A subject of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    grantee: Grantee,
    /// The kind that refusals and reviews show.
    kind: &'static str,
    shown: CompactString,
}

/// The user or group that a subject matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Grantee {
    /// The user of this name. Service accounts are users.
    User(CompactString),
    /// Members of this group.
    Group(CompactString),
}

impl Binding {
    /// Reads a binding from its tree.
    pub fn read(binding: &Value) -> Self {
        let namespace: CompactString = binding.str_at(&["metadata", "namespace"]).into();
        let subjects = binding.list_at(&["subjects"]).iter();
        Self {
            subjects: subjects.filter_map(|subject| Subject::read(subject, &namespace)).collect(),
            name: binding.str_at(&["metadata", "name"]).into(),
            role: RoleRef::read(binding.at(&["roleRef"])),
            namespace,
        }
    }

    /// Returns the users and groups that it names.
    pub(super) fn grantees(&self) -> impl Iterator<Item = &Grantee> {
        self.subjects.iter().map(|subject| &subject.grantee)
    }

    /// Returns the reason why a user has the rules of the role, in the form of the audit log and reviews.
    pub fn reason_for(&self, user: &User) -> String {
        let matching = |subject: &&Subject| match &subject.grantee {
            Grantee::User(name) => *name == user.name,
            Grantee::Group(group) => user.is_member(group),
        };
        let subject = self.subjects.iter().find(matching).map(ToString::to_string).unwrap_or_default();
        let own = match &*self.namespace {
            "" => format!("ClusterRoleBinding {}", quote(&self.name)),
            namespace => format!("RoleBinding {}", quote(&format!("{}/{namespace}", self.name))),
        };
        format!("RBAC: allowed by {own} of {} to {subject}", self.role)
    }
}

impl RoleRef {
    /// Reads the tree of a `roleRef`.
    pub fn read(role: &Value) -> Self {
        let name = role.str_at(&["name"]).into();
        match role.str_at(&["kind"]) {
            "Role" => Self::Role(name),
            "ClusterRole" => Self::ClusterRole(name),
            kind => Self::Other(kind.into()),
        }
    }
}

impl fmt::Display for RoleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(name) => write!(f, "Role {}", quote(name)),
            Self::ClusterRole(name) => write!(f, "ClusterRole {}", quote(name)),
            Self::Other(kind) => f.write_str(kind),
        }
    }
}

impl Subject {
    /// Reads a subject. `None` if it matches nobody. A service account without a namespace is in the namespace of the
    /// binding.
    fn read(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let name = subject.str_at(&["name"]);
        match subject.str_at(&["kind"]) {
            "User" => Some(Self { grantee: Grantee::User(name.into()), kind: "User", shown: name.into() }),
            "Group" => Some(Self { grantee: Grantee::Group(name.into()), kind: "Group", shown: name.into() }),
            "ServiceAccount" => {
                let namespace = match subject.str_at(&["namespace"]) {
                    "" => binding_namespace,
                    own => own,
                };
                (!namespace.is_empty()).then(|| Self {
                    grantee: Grantee::User(format_compact!("{USER_PREFIX}{namespace}:{name}")),
                    kind: "ServiceAccount",
                    shown: format_compact!("{name}/{namespace}"),
                })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, quote(&self.shown))
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn the_reason_names_binding_role_and_subject() {
        let subjects = value!([
            {"kind": "Robot", "name": "r"}, {"kind": "ServiceAccount", "name": "a"}, {"kind": "Group", "name": "g"},
        ]);
        let binding = Binding::read(&value!({
            "metadata": {"name": "b", "namespace": "ns"},
            "roleRef": {"kind": "Role", "name": "r"}, "subjects": (subjects.clone()),
        }));
        let account = User { name: "system:serviceaccount:ns:a".into(), ..User::default() };
        assert_eq!(
            binding.reason_for(&account),
            "RBAC: allowed by RoleBinding \"b/ns\" of Role \"r\" to ServiceAccount \"a/ns\""
        );
        let cluster = Binding::read(&value!({
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects,
        }));
        let member = User { groups: vec!["g".into()], ..User::default() };
        assert_eq!(
            cluster.reason_for(&member),
            "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to Group \"g\""
        );
        assert_eq!(cluster.grantees().count(), 1, "an account without a namespace is nobody at the cluster scope");
    }
}
