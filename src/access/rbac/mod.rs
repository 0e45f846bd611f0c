//! Role-based access control ("Using RBAC Authorization"): roles and bindings grant permissions to users.
//!
//! [`Rbac`] indexes bindings by the users and groups that they name. [`following`] updates it from the change logs of
//! the four tables. A decision reads it without locks and without copies.

mod binding;
mod coverage;
mod following;
mod index;
mod rule;
mod scope;

pub use binding::{Binding, RoleRef};
pub use coverage::{aggregated, uncovered};
pub use following::{RESOURCES, RoleTables, follow};
pub use index::{Editor, Rbac};
pub use rule::Rule;
pub use scope::RbacScope;

/// API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// A missing role that a binding names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unresolved {
    /// No object has the name.
    #[error("{singular}.{GROUP} {} not found", crate::field::quote(.name))]
    NotFound {
        /// `role` or `clusterrole`.
        singular: &'static str,
        /// The name.
        name: String,
    },
    /// The binding names another kind than Role or ClusterRole.
    #[error("unsupported role reference kind: {}", crate::field::quote(.0))]
    Unsupported(String),
}

impl Unresolved {
    /// Returns the error in the wording of the reference's storage, with the plural.
    pub fn in_store(&self) -> String {
        match self {
            Self::NotFound { singular, name } => format!("{singular}s.{GROUP} {} not found", crate::field::quote(name)),
            Self::Unsupported(_) => self.to_string(),
        }
    }
}
