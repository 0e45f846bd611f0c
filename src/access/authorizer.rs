//! Decides whether users may make their requests.

use std::sync::Arc;

use arc_swap::ArcSwap;
use flotilla_proto::value;
use flotilla_proto::value::Value;
use metrics::Counter;

use super::abac::Policies;
use super::attributes::{Attributes, forbidden};
use super::decision::{Decision, Verdict};
use super::impersonation::Impersonators;
use super::inquiry::Inquiry;
use super::nodes::{Nodes, node_of};
use super::rbac::{Rbac, Rule, Unresolved};
use super::user::User;
use super::webhook::AccessWebhook;
use crate::field::joined;
use crate::prometheus::{Meter, families};
use crate::rules::names::MASTERS;
use crate::status::ApiError;

/// Paths of the server's health checks.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// The permissions of a user in a namespace, as far as they can be listed.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Whether the user may have further permissions.
    pub incomplete: bool,
    /// The errors of authorizers whose permissions could not be listed; may be empty.
    pub error: String,
}

/// An authorizer of the chain, with the counters of its decisions.
#[derive(Debug, Clone)]
pub struct ConfiguredAuthorizer {
    mode: Mode,
    allowed: Counter,
    denied: Counter,
}

/// An authorizer.
#[derive(Debug, Clone)]
pub enum Mode {
    /// Everybody may do everything (`AlwaysAllow`).
    AlwaysAllow,
    /// Nobody may do anything (`AlwaysDeny`).
    AlwaysDeny,
    /// Nodes may access objects that concern them (`Node`).
    Node,
    /// Roles and bindings decide (`RBAC`).
    Rbac,
    /// The policies of a file decide (`ABAC`).
    Abac(Arc<Policies>),
    /// The webhook of this name decides (`Webhook`).
    Webhook(String, Arc<AccessWebhook>),
}

impl Mode {
    /// Returns the type of the authorizer, as Kubernetes calls it.
    const fn kind(&self) -> &'static str {
        match self {
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Node => "Node",
            Self::Rbac => "RBAC",
            Self::Abac(_) => "ABAC",
            Self::Webhook(..) => "Webhook",
        }
    }

    /// Returns the authorizer with counters of `meter`.
    pub fn counted(self, meter: &Meter) -> ConfiguredAuthorizer {
        let kind = self.kind();
        let name = if let Self::Webhook(name, _) = &self { name.clone() } else { kind.to_lowercase() };
        let count = |decision| {
            meter.counter(families::ACCESS_DECISIONS, &[("type", kind), ("name", &name), ("decision", decision)])
        };
        let (allowed, denied) = (count("allowed"), count("denied"));
        ConfiguredAuthorizer { mode: self, allowed, denied }
    }

    fn uncounted(self) -> ConfiguredAuthorizer {
        ConfiguredAuthorizer { mode: self, allowed: Counter::noop(), denied: Counter::noop() }
    }
}

/// Authorizers in the order in which they are asked. The first one with an opinion decides.
#[derive(Debug, Clone)]
pub struct Chain(Arc<[ConfiguredAuthorizer]>);

impl Default for Chain {
    fn default() -> Self {
        Self::of([Mode::Node.uncounted(), Mode::Rbac.uncounted()])
    }
}

impl Chain {
    /// Returns the chain of these authorizers.
    pub fn of(authorizers: impl IntoIterator<Item = ConfiguredAuthorizer>) -> Self {
        Self(authorizers.into_iter().collect())
    }
}

/// Authorizes requests. With the default [`Chain`] it decides as the reference does with
/// `--authorization-mode=Node,RBAC`: members of `system:masters` may do everything, nodes may access the objects that
/// concern them, and roles and bindings decide about all other requests.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    /// Roles and bindings.
    pub rbac: Arc<Rbac>,
    nodes: Option<Arc<Nodes>>,
    chain: Arc<ArcSwap<Chain>>,
    pub(super) impersonators: Arc<Impersonators>,
}

impl Authorizer {
    /// Creates an authorizer with this chain. `nodes` decides for [`Mode::Node`].
    pub fn new(nodes: Nodes, chain: Chain) -> Self {
        Self { nodes: Some(Arc::new(nodes)), chain: Arc::new(ArcSwap::from_pointee(chain)), ..Self::default() }
    }

    /// Replaces the chain.
    pub fn replace(&self, chain: Chain) {
        self.chain.store(Arc::new(chain));
    }

    /// Returns whether the chain has a webhook. Decisions then depend on more than the stored objects.
    pub fn asks_outside(&self) -> bool {
        self.chain.load().0.iter().any(|authorizer| matches!(authorizer.mode, Mode::Webhook(..)))
    }

    /// Returns whether the request is allowed without a webhook: to a member of `system:masters`, by an authorizer
    /// before the first webhook, or as an early health check. This is the fast path of [`Authorizer::decide`]: it
    /// allocates nothing.
    pub fn allows_at_once(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        if user.is_member(MASTERS) {
            return true;
        }
        for authorizer in &*self.chain.load().0 {
            let allows = match &authorizer.mode {
                Mode::AlwaysAllow => true,
                Mode::AlwaysDeny => false,
                Mode::Node => self.as_node(user, attributes).is_some_and(|verdict| verdict.is_ok()),
                Mode::Rbac => self.rbac.find(user, attributes).is_some(),
                Mode::Abac(policies) => policies.allow(user, attributes),
                Mode::Webhook(..) => break,
            };
            if allows {
                authorizer.allowed.increment(1);
                return true;
            }
        }
        self.is_early_health_check(attributes)
    }

    /// Returns whether the user may make the request; see [`Authorizer::decide`].
    pub fn allows(&self, user: &User, attributes: &Attributes<'_>, inquiry: &Inquiry) -> bool {
        self.allows_at_once(user, attributes)
            || self.asks_outside() && self.decide(user, attributes, inquiry).is_allowed()
    }

    /// Returns whether the request is a health check of a server that has no roles yet. A member may have to wait for
    /// its roles, and must answer health checks meanwhile.
    fn is_early_health_check(&self, attributes: &Attributes<'_>) -> bool {
        matches!(attributes, Attributes::Path { verb: "get", path } if HEALTH.contains(path)) && self.rbac.is_empty()
    }

    /// Decides whether the user may make the request, and states the reason. If a webhook must be asked first, leaves
    /// the question in the inquiry and decides nothing: the caller asks the question and calls again.
    pub fn decide(&self, user: &User, attributes: &Attributes<'_>, inquiry: &Inquiry) -> Decision {
        if user.is_member(MASTERS) {
            return Decision::allow(String::new());
        }
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        for authorizer in &*self.chain.load().0 {
            let decision = self.ask(authorizer, user, attributes, inquiry);
            match decision.verdict {
                Verdict::NoOpinion if inquiry.is_open() => return decision,
                Verdict::NoOpinion => {}
                Verdict::Allow => {
                    authorizer.allowed.increment(1);
                    return decision;
                }
                Verdict::Deny => {
                    authorizer.denied.increment(1);
                    return decision;
                }
            }
            reasons.extend(Some(decision.reason).filter(|reason| !reason.is_empty()));
            errors.extend(Some(decision.error).filter(|error| !error.is_empty()));
        }
        if self.is_early_health_check(attributes) {
            return Decision::allow(String::new());
        }
        Decision { error: joined(errors), ..Decision::no_opinion(reasons.join("\n")) }
    }

    fn ask(
        &self,
        authorizer: &ConfiguredAuthorizer,
        user: &User,
        attributes: &Attributes<'_>,
        inquiry: &Inquiry,
    ) -> Decision {
        match &authorizer.mode {
            Mode::AlwaysAllow => Decision::allow(String::new()),
            Mode::AlwaysDeny => Decision::no_opinion("Everything is forbidden.".to_owned()),
            Mode::Node => match self.as_node(user, attributes) {
                Some(Ok(())) => Decision::allow(String::new()),
                Some(Err(reason)) => Decision::no_opinion(reason),
                None => Decision::no_opinion(String::new()),
            },
            Mode::Rbac => match self.rbac.find(user, attributes) {
                Some(binding) => Decision::allow(binding.reason_for(user)),
                None => {
                    let missing = self.rbac.unresolved(user, attributes.namespace());
                    let is_clear = missing.is_empty();
                    Decision::no_opinion(if is_clear { String::new() } else { format!("RBAC: {}", together(missing)) })
                }
            },
            Mode::Abac(policies) => match policies.allow(user, attributes) {
                true => Decision::allow(String::new()),
                false => Decision::no_opinion("No policy matched.".to_owned()),
            },
            Mode::Webhook(_, webhook) => webhook.decide(user, attributes, inquiry),
        }
    }

    /// Returns `Ok` if the user may make the request; see [`Authorizer::decide`].
    ///
    /// # Errors
    /// 403 when the user may not.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>, inquiry: &Inquiry) -> Result<(), ApiError> {
        if self.allows_at_once(user, attributes) {
            return Ok(());
        }
        let decision = self.decide(user, attributes, inquiry);
        if decision.is_allowed() { Ok(()) } else { Err(forbidden(user, attributes, &decision.reason)) }
    }

    /// Returns the permissions of a user in a namespace.
    pub fn permissions(&self, user: &User, namespace: &str) -> Permissions {
        let (mut permissions, mut errors) = (Permissions::default(), Vec::new());
        for authorizer in &*self.chain.load().0 {
            match &authorizer.mode {
                Mode::AlwaysAllow => permissions.rules.extend(Rule::list(&everything())),
                Mode::AlwaysDeny => {}
                Mode::Node if self.nodes.is_some() && node_of(user).is_some() => {
                    permissions.incomplete = true;
                    errors.push("node authorizer does not support user rule resolution".to_owned());
                }
                Mode::Node => {}
                Mode::Rbac => {
                    let (rules, missing) = self.rbac.resolved(user, namespace);
                    permissions.rules.extend(rules);
                    if !missing.is_empty() {
                        errors.push(together(missing));
                    }
                }
                Mode::Abac(policies) => permissions.rules.extend(policies.rules(user, namespace)),
                Mode::Webhook(..) => {
                    permissions.incomplete = true;
                    errors.push("webhook authorizer does not support user rule resolution".to_owned());
                }
            }
        }
        permissions.error = joined(errors);
        permissions
    }

    fn as_node(&self, user: &User, attributes: &Attributes<'_>) -> Option<Result<(), String>> {
        let nodes = self.nodes.as_ref().filter(|_| node_of(user).is_some())?;
        Some(nodes.decide(user, attributes))
    }
}

/// Returns rules that allow everything.
fn everything() -> Value {
    value!({"rules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]})
}

fn together(missing: Vec<Unresolved>) -> String {
    joined(missing.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
pub(crate) mod tests {
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
    fn system_masters_may_do_everything_and_others_what_roles_allow() {
        let none = Inquiry::default();
        let authorizer = with_roles(&[("ann", value!([{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]))]);
        let (get, post) =
            (Attributes::Path { verb: "get", path: "/metrics" }, Attributes::Path { verb: "post", path: "/metrics" });
        let ann = User { name: "ann".into(), ..User::default() };
        assert_eq!(authorizer.authorize(&ann, &get, &none), Ok(()));
        assert_eq!(authorizer.authorize(&ann, &post, &none).unwrap_err().code, 403);
        assert_eq!(authorizer.authorize(&User::anonymous(), &get, &none).unwrap_err().code, 403);
        let master = User { groups: vec![MASTERS.into()], ..User::default() };
        assert_eq!(authorizer.authorize(&master, &post, &none), Ok(()));
        assert_eq!(
            authorizer.decide(&ann, &get, &none),
            Decision::allow(
                "RBAC: allowed by ClusterRoleBinding \"ann\" of ClusterRole \"ann\" to User \"ann\"".into()
            )
        );
    }

    #[test]
    fn health_checks_are_answered_before_roles_exist() {
        let none = Inquiry::default();
        let get = |path| Attributes::Path { verb: "get", path };
        let authorizer = Authorizer::default();
        assert_eq!(authorizer.authorize(&User::anonymous(), &get("/livez"), &none), Ok(()));
        assert!(authorizer.authorize(&User::anonymous(), &get("/metrics"), &none).is_err());
        let authorizer = with_roles(&[("ann", value!([]))]);
        assert!(authorizer.authorize(&User::anonymous(), &get("/livez"), &none).is_err());
    }

    #[test]
    fn a_refusal_names_missing_roles() {
        let (authorizer, mut editor) = (Authorizer::default(), Editor::default());
        for name in ["x", "y"] {
            let binding = value!({
                "metadata": {"name": name},
                "roleRef": {"kind": "ClusterRole", "name": name}, "subjects": [{"kind": "User", "name": "ann"}],
            });
            editor.set_binding("", name, Some(Binding::read(&binding)));
        }
        editor.publish(&authorizer.rbac);
        let (ann, none) = (User { name: "ann".into(), ..User::default() }, Inquiry::default());
        let root = Attributes::Path { verb: "get", path: "/" };
        assert_eq!(
            authorizer.authorize(&ann, &root, &none).unwrap_err().message,
            "forbidden: User \"ann\" cannot get path \"/\": RBAC: [clusterrole.rbac.authorization.k8s.io \"x\" not \
             found, clusterrole.rbac.authorization.k8s.io \"y\" not found]"
        );
    }
}
