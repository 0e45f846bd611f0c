//! Environments: the functions, variables, object types and syntax that expressions may use.

mod base;
mod provider;

use std::collections::HashMap;
use std::sync::Arc;

pub use base::Base;
pub use provider::{NoObjects, Provider};

use crate::functions::{Library, Overload};
use crate::types::{Parameters, Signature, Type};
use crate::value::Value;

/// The environment of expressions. A clone shares the functions.
#[derive(Clone, Debug)]
pub struct Environment {
    pub(crate) base: Arc<Base>,
    /// Names are resolved in this namespace first, then in the enclosing ones.
    pub container: String,
    /// The source of object types with declared fields.
    pub provider: Arc<dyn Provider>,
    /// Whether all items of a list literal, and all keys and values of a map literal, must have one type.
    pub homogeneous: bool,
    variables: Vec<Variable>,
    by_name: HashMap<Arc<str>, usize>,
}

/// A declared variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name, perhaps with dots.
    pub name: Arc<str>,
    /// Its type.
    pub of: Type,
    /// Its value, if it is a constant.
    pub constant: Option<Value<'static>>,
}

/// A function as the checker knows it.
#[derive(Clone, Debug)]
pub struct FunctionDecl {
    /// Its name.
    pub name: Arc<str>,
    /// Its overloads.
    pub overloads: Vec<Arc<OverloadDecl>>,
}

/// An overload as the checker knows it.
#[derive(Clone, Debug)]
pub struct OverloadDecl {
    /// Its name.
    pub id: Arc<str>,
    /// The types of its arguments and its result.
    pub signature: Signature,
    /// Its type parameters.
    pub parameters: Parameters,
    /// Its cost and implementation. `None` if it is only declared.
    pub native: Option<&'static Overload>,
}

impl OverloadDecl {
    /// Returns an overload of which the planner knows only the name.
    pub fn unbound(id: &str) -> Self {
        let signature = Signature { is_member: false, arguments: Vec::new(), result: Type::Dyn };
        Self { id: id.into(), signature, parameters: Parameters::new(), native: None }
    }

    /// Returns an overload without an implementation.
    pub fn declared(id: &str, signature: Signature) -> Self {
        Self { id: id.into(), parameters: signature.parameters(), signature, native: None }
    }
}

impl Environment {
    /// Returns an environment of these functions, without variables.
    pub fn new(base: Arc<Base>) -> Self {
        let homogeneous = base.homogeneous;
        Self {
            base,
            container: String::new(),
            provider: Arc::new(NoObjects),
            homogeneous,
            variables: Vec::new(),
            by_name: HashMap::new(),
        }
    }

    /// Returns Kubernetes' environment as of 1.`minor`, without variables.
    pub fn kubernetes(minor: u16) -> Self {
        Self::new(Base::kubernetes(minor))
    }

    /// Returns the environment with object types whose fields are declared.
    #[must_use]
    pub fn with_provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.provider = provider;
        self
    }

    /// Returns the environment with a variable. Its slot is the number of variables before it.
    #[must_use]
    pub fn with_variable(self, name: &str, of: Type) -> Self {
        self.with(Variable { name: name.into(), of, constant: None })
    }

    /// Returns the environment with a constant.
    #[must_use]
    pub fn with_constant(self, name: &str, of: Type, value: Value<'static>) -> Self {
        self.with(Variable { name: name.into(), of, constant: Some(value) })
    }

    fn with(mut self, variable: Variable) -> Self {
        self.by_name.insert(variable.name.clone(), self.variables.len());
        self.variables.push(variable);
        self
    }

    /// Returns the environment with a function of which only the types are known.
    #[must_use]
    pub fn with_function(mut self, name: &str, overloads: Vec<OverloadDecl>) -> Self {
        let base = Arc::make_mut(&mut self.base);
        overloads.into_iter().for_each(|overload| base.add(name, overload));
        self
    }

    /// Returns the environment with the functions of a library that only some environments of Kubernetes have.
    #[must_use]
    pub fn with_library(mut self, library: &'static Library) -> Self {
        Arc::make_mut(&mut self.base).add_library(library);
        self
    }

    /// Returns the supported syntax.
    pub fn dialect(&self) -> &crate::syntax::Dialect {
        &self.base.dialect
    }

    /// Returns the variables, by their slots.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns the slot of a variable. `None` if there is no such variable.
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(self.slot(name)?)
    }

    pub(crate) fn function(&self, name: &str) -> Option<Arc<FunctionDecl>> {
        self.base.functions.get(name).cloned()
    }

    /// Returns the type that a name stands for.
    pub(crate) fn type_named(&self, name: &str) -> Option<Type> {
        self.base.types.get(name).cloned().or_else(|| self.provider.has_object(name).then(|| Type::object(name)))
    }

    pub(crate) fn has_object(&self, name: &str) -> bool {
        self.provider.has_object(name)
    }

    /// Returns the qualified names that a name may mean: in the container, in the enclosing ones, or by itself.
    pub(crate) fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.to_owned()];
        }
        let mut candidates = Vec::new();
        let mut container = self.container.as_str();
        while !container.is_empty() {
            candidates.push(format!("{container}.{name}"));
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        candidates.push(name.to_owned());
        candidates
    }
}
