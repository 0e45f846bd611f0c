//! Rules of custom resources (`x-kubernetes-validations`): compilation for a structural schema, and evaluation on
//! objects.
//!
//! Read in this order: [`structural`] is the schema, [`escape()`] converts its names to those of expressions,
//! [`declared`] gives types and sizes to the checker and the estimate, [`shape`] says how objects read as values,
//! [`formats`] converts strings, [`correlation`] relates an object to the stored one, [`field_path`] locates errors,
//! [`compiled`] is a rule that can be evaluated, [`definition`] checks the rules of a definition, [`validator`]
//! evaluates rules on an object.

pub mod compiled;
pub mod correlation;
pub mod declared;
pub mod definition;
pub(crate) mod escape;
pub mod field_path;
pub mod formats;
mod found;
pub mod limits;
mod shape;
pub mod structural;
pub mod validator;
mod variables;
pub mod violation;

pub use escape::escape;
pub use found::Found;
pub use shape::shape;
pub use validator::{ValidatedObject, Validator};
pub use violation::{Kind, Violation};
