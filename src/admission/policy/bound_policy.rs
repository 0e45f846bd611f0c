//! A policy with its bindings.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::super::{Criteria, Indexed, MatchAttributes};
use super::{Binding, Spec};

/// A compiled policy of one kind.
pub trait Policy: std::fmt::Debug + Send + Sync + 'static {
    /// Reads and compiles a policy.
    fn read(policy: &Value) -> Self;

    /// Returns the part that all kinds of policies have.
    fn spec(&self) -> &Spec;
}

/// A policy that has bindings.
#[derive(Debug)]
pub struct BoundPolicy<P> {
    /// The policy.
    pub policy: Arc<P>,
    /// Its bindings, sorted by name; never empty.
    pub bindings: Vec<Arc<Binding>>,
}

impl<P: Policy> BoundPolicy<P> {
    /// Returns whether the policy may match a write through one of its bindings.
    pub fn may_want(&self, write: &MatchAttributes<'_>) -> bool {
        let through = |binding: &Binding| binding.criteria.as_ref().is_none_or(|criteria| criteria.may_find(write));
        self.criteria().may_find(write) && self.bindings.iter().any(|binding| through(binding))
    }
}

impl<P: Policy> Indexed for BoundPolicy<P> {
    fn criteria(&self) -> &Criteria {
        &self.policy.spec().criteria
    }
}
