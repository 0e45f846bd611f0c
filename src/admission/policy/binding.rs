//! Bindings of policies: the writes to which a policy applies, its parameters, and the actions after a violation.

use flotilla_proto::value::Value;

use super::super::Criteria;

/// The action after a write has violated a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The write is refused.
    Deny,
    /// The client gets a warning.
    Warn,
    /// The audit log gets an annotation.
    Audit,
}

impl Action {
    /// Returns the name that bindings use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// A binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The name of its policy.
    pub policy: String,
    /// The writes to which the binding restricts its policy. `None` if it does not restrict the policy.
    pub criteria: Option<Criteria>,
    /// The reference to the parameters. `None` if the policy is evaluated without parameters.
    pub param_ref: Option<ParamRef>,
    /// The actions after a violation, in order.
    pub actions: Vec<Action>,
}

/// A reference to parameters, by name or by labels.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamRef {
    /// Their name; empty if they are selected by labels.
    pub name: String,
    /// Their namespace; empty for the namespace of the write.
    pub namespace: String,
    /// The label selector.
    pub selector: Value,
    /// Whether a write is refused if there are no parameters.
    pub denies_without: bool,
}

impl Binding {
    /// Reads a binding.
    pub fn read(binding: &Value) -> Self {
        let spec = binding.at(&["spec"]);
        let (resources, reference) = (spec.at(&["matchResources"]), spec.at(&["paramRef"]));
        let actions = spec.list_at(&["validationActions"]).iter().filter_map(Value::as_str);
        let known = |name| [Action::Deny, Action::Warn, Action::Audit].into_iter().find(|one| one.name() == name);
        Self {
            name: binding.str_at(&["metadata", "name"]).to_owned(),
            policy: spec.str_at(&["policyName"]).to_owned(),
            criteria: (!resources.is_null()).then(|| Criteria::of_resources(resources)),
            param_ref: (!reference.is_null()).then(|| ParamRef::read(reference)),
            actions: actions.filter_map(known).collect(),
        }
    }
}

impl ParamRef {
    fn read(reference: &Value) -> Self {
        Self {
            name: reference.str_at(&["name"]).to_owned(),
            namespace: reference.str_at(&["namespace"]).to_owned(),
            selector: reference.at(&["selector"]).clone(),
            denies_without: reference.str_at(&["parameterNotFoundAction"]) == "Deny",
        }
    }
}
