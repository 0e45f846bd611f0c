//! A policy with its bindings.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::super::{Criteria, Indexed, Subject};
use super::{Binding, Spec};

/// A compiled policy of one kind.
pub trait Policy: std::fmt::Debug + Send + Sync + 'static {
    /// Reads and compiles a policy.
    fn read(policy: &Value) -> Self;

    /// Returns what all kinds of policies have.
    fn spec(&self) -> &Spec;
}

/// A policy that has bindings.
#[derive(Debug)]
pub struct Hook<P> {
    /// The policy.
    pub policy: Arc<P>,
    /// Its bindings, sorted by name; never empty.
    pub bindings: Vec<Arc<Binding>>,
}

impl<P: Policy> Hook<P> {
    /// Returns whether the policy may match a write through one of its bindings.
    pub fn may_want(&self, subject: &Subject<'_>) -> bool {
        let through = |binding: &Binding| binding.criteria.as_ref().is_none_or(|criteria| criteria.may_find(subject));
        self.criteria().may_find(subject) && self.bindings.iter().any(|binding| through(binding))
    }
}

impl<P: Policy> Indexed for Hook<P> {
    fn criteria(&self) -> &Criteria {
        &self.policy.spec().criteria
    }
}
