//! Rules of custom resources (`x-kubernetes-validations`): what a structural schema makes of them, and of the objects
//! that they ask about.
//!
//! Read in this order: [`structural`] is the schema, [`escape()`] its names in expressions, [`declared`] what the
//! checker and the estimate know of it, [`shape`] how objects read, [`formats`] what formats make of strings,
//! [`correlation`] what an object has in common with the one before it, [`field_path`] where errors point, [`compiled`]
//! a rule that can be evaluated, [`definition`] what is wrong with rules, [`validator`] the walk through an object.

pub mod compiled;
pub mod correlation;
pub mod declared;
pub mod definition;
mod escape;
pub mod field_path;
pub mod formats;
pub mod limits;
mod shape;
pub mod structural;
pub mod validator;
pub mod violation;

pub use escape::escape;
pub use shape::shape;
pub use validator::{Found, Subject, Validator};
pub use violation::{Kind, Violation};
