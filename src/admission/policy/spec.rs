//! Reads and compiles the part that all kinds of policies have.

use flotilla_objects::api_version;
use flotilla_proto::value::Value;

use super::super::Criteria;
use super::super::conditions::Conditions;
use crate::expressions::{Compiler, OptionalNames, STORED, Variable};

/// The kind of a policy's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamKind {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
}

/// The part that all kinds of policies have, with compiled expressions.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// The writes that it matches.
    pub criteria: Criteria,
    /// Whether a write goes on if the policy cannot be evaluated.
    pub ignores_failure: bool,
    /// The kind of its parameters. `None` if it has none.
    pub param_kind: Option<ParamKind>,
    /// Conditions that a matched write must also meet.
    pub conditions: Conditions,
    /// Its variables.
    pub variables: Vec<Variable>,
}

impl Spec {
    /// Reads a policy. Also returns the compiler for its other expressions, which knows the policy's variables.
    pub fn read(policy: &Value) -> (Self, Compiler) {
        let spec = policy.at(&["spec"]);
        let mut compiler = Compiler::with_variables(STORED);
        let sees = sees(spec);
        let variables = spec
            .list_at(&["variables"])
            .iter()
            .map(|variable| compiler.variable(variable.str_at(&["name"]), variable.str_at(&["expression"]), sees));
        let variables = variables.collect();
        let read = Self {
            name: policy.str_at(&["metadata", "name"]).to_owned(),
            criteria: Criteria::of_resources(spec.at(&["matchConstraints"])),
            ignores_failure: spec.str_at(&["failurePolicy"]) == "Ignore",
            param_kind: param_kind(spec.at(&["paramKind"])),
            conditions: Conditions::compile(&compiler, spec, sees),
            variables,
        };
        (read, compiler)
    }
}

/// Returns the optional variables that most expressions of a policy see.
pub fn sees(spec: &Value) -> OptionalNames {
    OptionalNames { params: !spec.at(&["paramKind"]).is_null(), authorizer: true, patches: false }
}

fn param_kind(kind: &Value) -> Option<ParamKind> {
    if kind.is_null() {
        return None;
    }
    let version = kind.str_at(&["apiVersion"]);
    let (group, version) = api_version::split(version);
    let kind = kind.str_at(&["kind"]).to_owned();
    Some(ParamKind { group: group.to_owned(), version: version.to_owned(), kind })
}

/// Formats a kind as the reference's messages do.
impl std::fmt::Display for ParamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
