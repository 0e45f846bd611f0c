//! Rules of custom resources (`x-kubernetes-validations`): compilation for a structural schema, and evaluation on
//! objects.
//!
//! Read in this order: [`structural`] is the schema, [`declared`] gives types and sizes to the checker
//! and the estimate, [`correlation`] relates an object to the stored one, [`field_path`] locates errors,
//! [`compiled`] is a rule that can be evaluated, [`definition`] checks the rules of a definition, [`validator`]
//! evaluates rules on an object.

pub mod compiled;
pub mod correlation;
pub mod declared;
pub mod definition;
pub mod field_path;
mod findings;
pub mod limits;
pub mod structural;
pub mod validator;
mod variables;
pub mod violation;

pub use findings::Findings;
pub use validator::{ValidatedObject, Validator};
pub use violation::{Violation, ViolationKind};
