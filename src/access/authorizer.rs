//! Decides whether users may do what they ask for.

use std::sync::Arc;

use super::attributes::{Attributes, forbidden};
use super::impersonation::Impersonators;
use super::nodes::{Nodes, node_of};
use super::rbac::{Rbac, Rule, Unresolved, aggregate};
use super::user::User;
use crate::config::AuthorizationMode;
use crate::rules::names::MASTERS;
use crate::status::ApiError;

/// Paths of the server's health checks.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// A decision of authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The user may. The reason is for reviews and the audit log, and may be empty.
    Allow(String),
    /// No rule says that the user may; the reason ends the message of the refusal, and may be empty.
    NoOpinion(String),
}

/// The permissions of a user in a namespace, as far as they can be listed.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Whether the user may have further permissions.
    pub incomplete: bool,
    /// What could not be determined; may be empty.
    pub error: String,
}

/// The authorization modes in use. A request is allowed if any mode allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// Everybody may do everything (`AlwaysAllow`).
    pub everything: bool,
    /// Nodes may access objects that concern them (`Node`).
    pub nodes: bool,
    /// Roles and bindings decide (`RBAC`).
    pub roles: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self { everything: false, nodes: true, roles: true }
    }
}

impl Modes {
    /// Reads the configured modes.
    pub fn of(modes: &[AuthorizationMode]) -> Self {
        let has = |mode| modes.contains(&mode);
        Self {
            everything: has(AuthorizationMode::AlwaysAllow),
            nodes: has(AuthorizationMode::Node),
            roles: has(AuthorizationMode::Rbac),
        }
    }
}

/// Decides which users may do what. With the default [`Modes`] it decides as the reference with
/// `--authorization-mode=Node,RBAC`: members of `system:masters` may do everything, nodes may access what concerns
/// them, and roles and bindings decide about everybody.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    /// Roles and bindings.
    pub rbac: Arc<Rbac>,
    nodes: Option<Arc<Nodes>>,
    modes: Modes,
    pub(super) impersonators: Arc<Impersonators>,
}

impl Authorizer {
    /// Creates an authorizer with these modes.
    pub fn new(nodes: Nodes, modes: Modes) -> Self {
        Self { nodes: modes.nodes.then(|| Arc::new(nodes)), modes, ..Self::default() }
    }

    /// Returns whether the user may do it.
    pub fn allows(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        user.is_member(MASTERS)
            || self.as_node(user, attributes).is_some_and(|verdict| verdict.is_ok())
            || self.modes.roles && self.rbac.find(user, attributes).is_some()
            || self.modes.everything
            || self.is_about_beginning(attributes)
    }

    /// Returns whether the request is a health check on a server that has no roles yet. A member may have to wait for
    /// them, and is monitored meanwhile.
    fn is_about_beginning(&self, attributes: &Attributes<'_>) -> bool {
        matches!(attributes, Attributes::Path { verb: "get", path } if HEALTH.contains(path)) && self.rbac.is_empty()
    }

    /// Decides whether the user may do it, and gives the reason.
    pub fn decide(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_member(MASTERS) || self.modes.everything {
            return Decision::Allow(String::new());
        }
        let mut reasons = match self.as_node(user, attributes) {
            Some(Ok(())) => return Decision::Allow(String::new()),
            Some(Err(reason)) if !reason.is_empty() => vec![reason],
            _ => Vec::new(),
        };
        if !self.modes.roles {
            return Decision::NoOpinion(reasons.join("\n"));
        }
        if let Some(binding) = self.rbac.find(user, attributes) {
            return Decision::Allow(binding.grounds(user));
        }
        let missing = self.rbac.unresolved(user, attributes.namespace());
        if !missing.is_empty() {
            reasons.push(format!("RBAC: {}", together(missing)));
        }
        Decision::NoOpinion(reasons.join("\n"))
    }

    /// Returns `Ok` if the user may do it.
    ///
    /// # Errors
    /// 403 when the user may not.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if self.allows(user, attributes) {
            return Ok(());
        }
        match self.decide(user, attributes) {
            Decision::Allow(_) => Ok(()),
            Decision::NoOpinion(reason) => Err(forbidden(user, attributes, &reason)),
        }
    }

    /// Returns the permissions of a user in a namespace.
    pub fn permissions(&self, user: &User, namespace: &str) -> Permissions {
        let (rules, missing) = self.rbac.resolved(user, namespace);
        let mut errors = Vec::new();
        let incomplete = self.nodes.is_some() && node_of(user).is_some();
        if incomplete {
            errors.push("node authorizer does not support user rule resolution".to_owned());
        }
        if !missing.is_empty() {
            errors.push(together(missing));
        }
        Permissions { rules, incomplete, error: aggregate(errors) }
    }

    fn as_node(&self, user: &User, attributes: &Attributes<'_>) -> Option<Result<(), String>> {
        // Only users with the name of a node are looked up.
        let nodes = self.nodes.as_ref().filter(|_| node_of(user).is_some())?;
        Some(nodes.decide(user, attributes))
    }
}

fn together(missing: Vec<Unresolved>) -> String {
    aggregate(missing.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use flotilla_proto::value;
    use flotilla_proto::value::Value;

    use super::super::rbac::{Binding, Editor};
    use super::*;

    /// Creates an authorizer from ClusterRoles, each bound to the user with its name.
    pub(crate) fn with_roles(roles: &[(&str, Value)]) -> Authorizer {
        let (authorizer, mut editor) = (Authorizer::default(), Editor::default());
        for (name, rules) in roles {
            editor.set_role("", name, Some(Rule::list(&value!({"rules": (rules.clone())}))));
            let binding = value!({
                "metadata": {"name": (*name)},
                "roleRef": {"kind": "ClusterRole", "name": (*name)}, "subjects": [{"kind": "User", "name": (*name)}],
            });
            editor.set_binding("", name, Some(Binding::read(&binding)));
        }
        editor.publish(&authorizer.rbac);
        authorizer
    }

    #[test]
    fn masters_and_others() {
        let authorizer = with_roles(&[("ann", value!([{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]))]);
        let (get, post) =
            (Attributes::Path { verb: "get", path: "/metrics" }, Attributes::Path { verb: "post", path: "/metrics" });
        let ann = User { name: "ann".into(), ..User::default() };
        assert_eq!(authorizer.authorize(&ann, &get), Ok(()));
        assert_eq!(authorizer.authorize(&ann, &post).unwrap_err().code, 403);
        assert_eq!(authorizer.authorize(&User::anonymous(), &get).unwrap_err().code, 403);
        let master = User { groups: vec![MASTERS.into()], ..User::default() };
        assert_eq!(authorizer.authorize(&master, &post), Ok(()));
        assert_eq!(
            authorizer.decide(&ann, &get),
            Decision::Allow(
                "RBAC: allowed by ClusterRoleBinding \"ann\" of ClusterRole \"ann\" to User \"ann\"".into()
            )
        );
    }

    #[test]
    fn health_is_told_before_there_are_roles() {
        let get = |path| Attributes::Path { verb: "get", path };
        let authorizer = Authorizer::default();
        assert_eq!(authorizer.authorize(&User::anonymous(), &get("/livez")), Ok(()));
        assert!(authorizer.authorize(&User::anonymous(), &get("/metrics")).is_err());
        assert!(with_roles(&[("ann", value!([]))]).authorize(&User::anonymous(), &get("/livez")).is_err());
    }

    #[test]
    fn missing_roles_are_told() {
        let (authorizer, mut editor) = (Authorizer::default(), Editor::default());
        for name in ["x", "y"] {
            let binding = value!({
                "metadata": {"name": name},
                "roleRef": {"kind": "ClusterRole", "name": name}, "subjects": [{"kind": "User", "name": "ann"}],
            });
            editor.set_binding("", name, Some(Binding::read(&binding)));
        }
        editor.publish(&authorizer.rbac);
        let ann = User { name: "ann".into(), ..User::default() };
        assert_eq!(
            authorizer.authorize(&ann, &Attributes::Path { verb: "get", path: "/" }).unwrap_err().message,
            "forbidden: User \"ann\" cannot get path \"/\": RBAC: [clusterrole.rbac.authorization.k8s.io \"x\" not \
             found, clusterrole.rbac.authorization.k8s.io \"y\" not found]"
        );
    }
}
