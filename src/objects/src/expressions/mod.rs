//! CEL expressions that decide about requests: match conditions of webhooks, and admission policies.
//!
//! A [`Compiler`] compiles the expressions of a policy in the environment that Kubernetes defines. It compiles them
//! when the policy is written, to report errors, and once for each generation, to evaluate them. An [`Activation`]
//! holds the variables of one request. This module knows neither storage nor the use that callers make of results.

mod activation;
mod compile;
mod environment;
mod objects;
mod typed;

pub use activation::{Activation, BUDGET, Inputs, MATCH_BUDGET, OUT_OF_BUDGET, Stopped};
pub use compile::{Compiled, Compiler, Fault, Variable, Wanted};
pub use environment::{Declared, NEW, OptionalNames, STORED, VariableTypes};
pub use objects::{PatchOperation, misnamed, operations, tree};
pub use typed::Typed;
