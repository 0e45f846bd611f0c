//! What is to be asked, found by the resource of a write.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;

use super::{Criteria, Operation};

/// Which operations on which resources may concern somebody. Resources go by their plural names: those of one name in
/// several groups or versions may be equivalent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concerns {
    /// Operations on any resource, a bit each.
    all: u8,
    /// Operations on the resources that are named.
    named: HashMap<CompactString, u8>,
}

impl Concerns {
    /// Whether an operation on a resource may concern somebody.
    pub fn has(&self, resource: &str, operation: Operation) -> bool {
        let bit = bit(operation);
        self.all & bit != 0
            || (!self.named.is_empty() && self.named.get(resource).is_some_and(|operations| operations & bit != 0))
    }

    /// Adds operations on a resource, or on all of them where it is `None`.
    pub fn add(&mut self, resource: Option<&str>, operations: &[Operation]) {
        let bits = operations.iter().fold(0, |bits, operation| bits | bit(*operation));
        match resource {
            Some(resource) => *self.named.entry(resource.into()).or_default() |= bits,
            None => self.all |= bits,
        }
    }

    /// What concerns the one or the other.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.all |= other.all;
        for (resource, operations) in other.named {
            *self.named.entry(resource).or_default() |= operations;
        }
        self
    }
}

const fn bit(operation: Operation) -> u8 {
    1 << operation as u8
}

/// What has criteria, so that it can be found by a write.
pub trait Indexed {
    /// When it is to be asked.
    fn criteria(&self) -> &Criteria;
}

/// Everything that one plugin may ask, in the order in which it asks.
#[derive(Debug)]
pub struct Index<T> {
    all: Vec<Arc<T>>,
    concerns: Concerns,
    /// Of each resource that is named, what may concern it.
    named: HashMap<CompactString, Vec<Arc<T>>>,
    /// What may concern any other.
    others: Vec<Arc<T>>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { all: Vec::new(), concerns: Concerns::default(), named: HashMap::new(), others: Vec::new() }
    }
}

impl<T: Indexed> Index<T> {
    /// An index of these, which are asked in this order.
    pub fn of(all: Vec<Arc<T>>) -> Self {
        let mut concerns = Concerns::default();
        all.iter().for_each(|one| one.criteria().concern(&mut concerns));
        let may_concern = |resource: &str| {
            let mut own = Vec::new();
            for one in &all {
                let mut concerns = Concerns::default();
                one.criteria().concern(&mut concerns);
                if concerns.all != 0 || concerns.named.contains_key(resource) {
                    own.push(Arc::clone(one));
                }
            }
            own
        };
        let named = concerns.named.keys().map(|resource| (resource.clone(), may_concern(resource))).collect();
        let others = may_concern("");
        Self { all, concerns, named, others }
    }

    /// What may concern writes of a resource, by its plural name; [`Criteria::find`] says whether it does.
    pub fn concerned(&self, resource: &str) -> &[Arc<T>] {
        self.named.get(resource).unwrap_or(&self.others)
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<T>] {
        &self.all
    }

    /// What concerns any of them.
    pub const fn concerns(&self) -> &Concerns {
        &self.concerns
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;
    use flotilla_proto::value::Value;

    use super::*;

    struct One(Criteria);

    impl Indexed for One {
        fn criteria(&self) -> &Criteria {
            &self.0
        }
    }

    fn one(resources: Value, operations: Value) -> Arc<One> {
        let rule = value!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "operations": operations});
        Arc::new(One(Criteria::of_webhook(&value!({"rules": [rule]}))))
    }

    #[test]
    fn what_concerns_a_resource() {
        let pods = one(value!(["pods", "pods/exec"]), value!(["CREATE"]));
        let all = one(value!(["*/*"]), value!(["DELETE"]));
        let index = Index::of(vec![pods, all]);
        assert_eq!((index.concerned("pods").len(), index.concerned("nodes").len()), (2, 1));
        let concerns = index.concerns();
        assert!(concerns.has("pods", Operation::Create) && !concerns.has("nodes", Operation::Create));
        assert!(concerns.has("nodes", Operation::Delete) && !concerns.has("pods", Operation::Update));
        assert!(!Concerns::default().has("pods", Operation::Create));
    }
}
