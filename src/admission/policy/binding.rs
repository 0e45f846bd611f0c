//! Bindings: where a policy counts, with which parameters, and what is done when it is not met.

use flotilla_proto::value::Value;

use super::super::Criteria;

/// What is done with a write that does not meet a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is refused.
    Deny,
    /// The client is told.
    Warn,
    /// The audit log is told.
    Audit,
}

impl Action {
    /// As bindings write it.
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
    /// What it matches of what the policy matches; `None` for all of it.
    pub criteria: Option<Criteria>,
    /// Where its parameters are.
    pub param_ref: Option<ParamRef>,
    /// What is done with a write that does not meet the policy, in order.
    pub actions: Vec<Action>,
}

/// Where parameters are.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamRef {
    /// Their name; empty where they are selected.
    pub name: String,
    /// Their namespace; empty for that of the write.
    pub namespace: String,
    /// Which labels they have.
    pub selector: Value,
    /// Whether a write is refused where there are none.
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
