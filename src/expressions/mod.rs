//! Expressions in CEL that decide about requests: conditions of webhooks, and what admission policies say.
//!
//! A [`Compiler`] compiles the expressions of one policy in the environment that Kubernetes gives them: once when they
//! are written, to say what is wrong with them, and once for each generation, to evaluate them. An [`Activation`] is
//! what they see of one request. Nothing here knows of storage or of what is done with results.

mod activation;
mod compile;
mod environment;
mod objects;
mod typed;

pub use activation::{Activation, BUDGET, Inputs, MATCH_BUDGET, OUT_OF_BUDGET, Stopped};
pub use compile::{Compiled, Compiler, Fault, Variable, Wanted};
pub use environment::{Declared, NEW, STORED, Sees, VariableTypes};
pub use objects::{Operation, misnamed, operations, tree};
pub use typed::Typed;
