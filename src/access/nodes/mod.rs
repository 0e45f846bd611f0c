//! Authorizes nodes ("Using Node Authorization"): for their own objects, and for objects that their pods refer to.

mod references;
mod relations;

use std::fmt;

pub use references::names_secret;
pub use relations::{Related, Relations, StoreRelations};

use super::attributes::{Attributes, ResourceAttributes};
use super::rbac::Rule;
use super::user::User;
use crate::field::quote;
use crate::selector::{FieldOperator, FieldSelector};

/// Prefix of the user names of nodes.
pub const USER_PREFIX: &str = "system:node:";
/// Group of all nodes.
pub const GROUP: &str = "system:nodes";
/// Namespace of the leases that nodes renew.
const LEASES: &str = "kube-node-lease";

/// Decides about the requests of nodes.
pub struct Nodes {
    relations: Box<dyn Relations>,
    /// Rules that are the same for all nodes.
    rules: Vec<Rule>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").finish_non_exhaustive()
    }
}

/// `Ok` if the request is allowed. `Err` has the reason of the refusal, which may be empty.
type NodeAccessCheck = Result<(), String>;

/// Returns the name of the node that acts as this user. `None` if the user is not a node.
pub fn node_of(user: &User) -> Option<&str> {
    user.name.strip_prefix(USER_PREFIX).filter(|_| user.is_member(GROUP))
}

impl Nodes {
    /// Creates an authorizer from the relations of objects to nodes, and from the rules for all other objects.
    pub fn new(relations: Box<dyn Relations>, rules: Vec<Rule>) -> Self {
        Self { relations, rules }
    }

    /// Returns `Ok` if a user may make the request as a node. Users that are not nodes are refused without a reason.
    ///
    /// # Errors
    /// The reason of the refusal, which may be empty.
    pub fn decide(&self, user: &User, attributes: &Attributes<'_>) -> NodeAccessCheck {
        match node_of(user) {
            None => refuse(""),
            Some("") => Err(format!("unknown node for user {}", quote(&user.name))),
            Some(node) => match attributes {
                Attributes::Resource(of) => self.resource(node, of, attributes),
                Attributes::Path { .. } => self.by_rules(attributes),
            },
        }
    }

    fn by_rules(&self, attributes: &Attributes<'_>) -> NodeAccessCheck {
        if self.rules.iter().any(|rule| rule.allows(attributes)) { Ok(()) } else { refuse("") }
    }

    fn resource(&self, node: &str, of: &ResourceAttributes<'_>, attributes: &Attributes<'_>) -> NodeAccessCheck {
        match (of.group, of.resource) {
            ("", "secrets") => self.readable(node, Related::Secret, of),
            ("", "configmaps") => self.readable(node, Related::ConfigMap, of),
            ("", "persistentvolumeclaims") if of.subresource == "status" => match of.verb {
                "update" | "patch" => self.related(node, Related::Claim, of),
                _ => refuse("can only get/update/patch this type"),
            },
            ("", "persistentvolumeclaims") => self.gettable(node, Related::Claim, of),
            ("", "persistentvolumes") => self.gettable(node, Related::Volume, of),
            ("resource.k8s.io", "resourceclaims") => self.gettable(node, Related::ResourceClaim, of),
            ("storage.k8s.io", "volumeattachments") => self.gettable(node, Related::Attachment, of),
            ("", "serviceaccounts") => self.account(node, of),
            ("coordination.k8s.io", "leases") => lease(node, of),
            ("storage.k8s.io", "csinodes") => csi_node(node, of),
            ("resource.k8s.io", "resourceslices") => self.slice(node, of),
            ("", "nodes") => own_node(node, of),
            ("", "pods") => self.pod(node, of),
            // The feature is off by default in the reference.
            ("certificates.k8s.io", "podcertificaterequests") => refuse(""),
            _ => self.by_rules(attributes),
        }
    }

    fn related(&self, node: &str, what: Related, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
        if of.name.is_empty() {
            return refuse("No Object name found");
        }
        if self.relations.has(node, what, of.namespace, of.name) {
            return Ok(());
        }
        Err(format!("no relationship found between node '{node}' and this object"))
    }

    fn gettable(&self, node: &str, what: Related, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
        match (of.verb, of.subresource) {
            ("get", "") => self.related(node, what, of),
            ("get", _) => refuse("cannot get subresource"),
            _ => refuse("can only get individual resources of this type"),
        }
    }

    fn readable(&self, node: &str, what: Related, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
        match (of.verb, of.subresource) {
            ("get" | "list" | "watch", "") if of.namespace.is_empty() => {
                refuse("can only read namespaced object of this type")
            }
            ("get" | "list" | "watch", "") => self.related(node, what, of),
            ("get" | "list" | "watch", _) => refuse("cannot read subresource"),
            _ => refuse("can only read resources of this type"),
        }
    }

    fn account(&self, node: &str, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
        match (of.verb, of.subresource) {
            ("get", "") => self.readable(node, Related::Account, of),
            ("create", _) if of.name.is_empty() => refuse("can only create tokens for individual service accounts"),
            ("create", "token") => self.related(node, Related::Account, of),
            ("create", _) => refuse("can only create token subresource of serviceaccount"),
            _ => refuse("can only create tokens for individual service accounts"),
        }
    }

    fn slice(&self, node: &str, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
        if !of.subresource.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match of.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(node, Related::Slice, of),
            "watch" | "list" | "deletecollection" if selects(of, "spec.nodeName", node) => Ok(()),
            "watch" | "list" | "deletecollection" => {
                refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    fn pod(&self, node: &str, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
        match (of.subresource, of.verb) {
            ("", "get") => self.gettable(node, Related::Pod, of),
            ("", "list" | "watch") if selects(of, "spec.nodeName", node) => Ok(()),
            ("", "list" | "watch") if of.name.is_empty() => {
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "list" | "watch") => self.related(node, Related::Pod, of),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
            _ => refuse(""),
        }
    }
}

fn refuse(reason: &str) -> NodeAccessCheck {
    Err(reason.to_owned())
}

/// Returns whether a request's field selector demands that a field equals a value.
fn selects(of: &ResourceAttributes<'_>, field: &str, value: &str) -> bool {
    FieldSelector::parse(of.fields).is_ok_and(|selector| {
        let equal = |operator| operator == FieldOperator::Equals;
        selector.0.iter().any(|one| one.field == field && equal(one.operator) && one.value == value)
    })
}

fn own_node(node: &str, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
    match (of.subresource, of.verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") => match of.name {
            own if own == node => Ok(()),
            "" => Err(format!("node '{node}' cannot read all nodes, only its own Node object")),
            other => Err(format!("node '{node}' cannot read '{other}', only its own Node object")),
        },
        _ => refuse(""),
    }
}

fn lease(node: &str, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
    if !matches!(of.verb, "get" | "create" | "update" | "patch" | "delete") {
        return refuse("can only get, create, update, patch, or delete a node lease");
    }
    if of.namespace != LEASES {
        return Err(format!("can only access leases in the {} system namespace", quote(LEASES)));
    }
    if of.verb != "create" && of.name != node {
        return refuse("can only access node lease with the same name as the requesting node");
    }
    Ok(())
}

fn csi_node(node: &str, of: &ResourceAttributes<'_>) -> NodeAccessCheck {
    if !matches!(of.verb, "get" | "create" | "update" | "patch" | "delete") {
        return refuse("can only get, create, update, patch, or delete a CSINode");
    }
    if !of.subresource.is_empty() {
        return refuse("cannot authorize CSINode subresources");
    }
    if of.verb != "create" && of.name != node {
        return refuse("can only access CSINode with the same name as the requesting node");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    /// Node `n` runs a pod that uses all objects named `own` in namespace `ns`.
    struct Fixed;

    impl Relations for Fixed {
        fn has(&self, node: &str, _: Related, namespace: &str, name: &str) -> bool {
            node == "n" && name == "own" && matches!(namespace, "ns" | "")
        }
    }

    fn decide(user: &str, of: ResourceAttributes<'_>) -> Result<(), String> {
        let rules = value!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["services"]}]});
        let nodes = Nodes::new(Box::new(Fixed), Rule::list(&rules));
        let user = User { name: user.into(), groups: vec![GROUP.into()], ..User::default() };
        nodes.decide(&user, &Attributes::Resource(of))
    }

    #[test]
    fn nodes_may_read_what_their_pods_use() {
        let secret = |verb, name| ResourceAttributes {
            verb,
            resource: "secrets",
            namespace: "ns",
            name,
            ..ResourceAttributes::default()
        };
        let node = "system:node:n";
        assert_eq!(decide(node, secret("get", "own")), Ok(()));
        assert_eq!(
            decide(node, secret("get", "other")).unwrap_err(),
            "no relationship found between node 'n' and this object"
        );
        assert_eq!(decide(node, secret("list", "")).unwrap_err(), "No Object name found");
        assert_eq!(decide(node, secret("update", "own")).unwrap_err(), "can only read resources of this type");
        assert!(decide("system:node:m", secret("get", "own")).is_err());
        assert_eq!(decide("ann", secret("get", "own")).unwrap_err(), "");
        let services = ResourceAttributes { verb: "get", resource: "services", ..ResourceAttributes::default() };
        assert_eq!(decide(node, services), Ok(()));
    }

    #[test]
    fn a_node_may_list_only_its_own_pods() {
        let pods =
            |fields| ResourceAttributes { verb: "list", resource: "pods", fields, ..ResourceAttributes::default() };
        assert_eq!(decide("system:node:n", pods("status.phase=Running,spec.nodeName=n")), Ok(()));
        for fields in ["", "spec.nodeName=m", "spec.nodeName!=n", "spec.nodeName"] {
            let reason = decide("system:node:n", pods(fields)).unwrap_err();
            assert_eq!(reason, "can only list/watch pods with spec.nodeName field selector", "{fields}");
        }
    }
}
