//! Finds the policies or webhooks that may match a write, by its resource.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;

use super::{Criteria, Operation};

/// The operations on resources that some policy or webhook may match. Resources are identified by plural name only,
/// because resources with the same name in several groups or versions may be equivalent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concerns {
    /// Operations on all resources, one bit each.
    all: u8,
    /// Operations on named resources.
    named: HashMap<CompactString, u8>,
}

impl Concerns {
    /// Returns whether any policy or webhook may match an operation on a resource.
    pub fn has(&self, resource: &str, operation: Operation) -> bool {
        let bit = bit(operation);
        self.all & bit != 0
            || (!self.named.is_empty() && self.named.get(resource).is_some_and(|operations| operations & bit != 0))
    }

    /// Adds operations on a resource. `None` stands for all resources.
    pub fn add(&mut self, resource: Option<&str>, operations: &[Operation]) {
        let bits = operations.iter().fold(0, |bits, operation| bits | bit(*operation));
        match resource {
            Some(resource) => *self.named.entry(resource.into()).or_default() |= bits,
            None => self.all |= bits,
        }
    }

    /// Adds all operations of another set.
    pub fn take_in(&mut self, other: Self) {
        self.all |= other.all;
        for (resource, operations) in other.named {
            *self.named.entry(resource).or_default() |= operations;
        }
    }
}

const fn bit(operation: Operation) -> u8 {
    1 << operation as u8
}

/// A policy or webhook that an [`Index`] can hold.
pub trait Indexed {
    /// Returns the writes that it matches.
    fn criteria(&self) -> &Criteria;
}

/// All policies or webhooks of one plugin, in the order in which they run. A policy or webhook that matches all
/// resources is stored once. Building the index therefore takes as many steps as the rules have names.
#[derive(Debug)]
pub struct Index<T> {
    all: Vec<Arc<T>>,
    concerns: Concerns,
    /// For each named resource, the positions in `all` of those that name it, ascending.
    named: HashMap<CompactString, Vec<u32>>,
    /// The positions of those that may match any resource, ascending.
    any: Vec<u32>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { all: Vec::new(), concerns: Concerns::default(), named: HashMap::new(), any: Vec::new() }
    }
}

impl<T: Indexed> Index<T> {
    /// Builds an index. The items run in this order.
    pub fn of(all: Vec<Arc<T>>) -> Self {
        let mut index = Self::default();
        for (place, one) in (0..).zip(&all) {
            let mut own = Concerns::default();
            one.criteria().concern(&mut own);
            if own.all != 0 {
                index.any.push(place);
            } else {
                for resource in own.named.keys() {
                    index.named.entry(resource.clone()).or_default().push(place);
                }
            }
            index.concerns.take_in(own);
        }
        Self { all, ..index }
    }

    /// Returns the items that may match writes of a resource, by its plural name, in order. [`Criteria::find`] decides
    /// about each of them.
    pub fn concerned(&self, resource: &str) -> impl Iterator<Item = &Arc<T>> {
        self.concerned_of_all(resource).map(|(_, item)| item)
    }

    /// Returns the same items, each with its position among all.
    pub fn concerned_of_all(&self, resource: &str) -> impl Iterator<Item = (usize, &Arc<T>)> {
        let (mut any, mut named) = (&self.any[..], self.named.get(resource).map_or(&[][..], Vec::as_slice));
        let next = move || {
            let first = match (any.first(), named.first()) {
                (Some(one), Some(other)) if one < other => &mut any,
                (_, Some(_)) => &mut named,
                _ => &mut any,
            };
            let (place, rest) = first.split_first()?;
            *first = rest;
            Some(*place)
        };
        std::iter::from_fn(next).filter_map(|place| Some((place as usize, self.all.get(place as usize)?)))
    }

    /// Returns all items.
    pub fn all(&self) -> &[Arc<T>] {
        &self.all
    }

    /// Returns the operations that any item may match.
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
    fn operations_concern_named_and_all_resources() {
        let pods = one(value!(["pods", "pods/exec"]), value!(["CREATE"]));
        let all = one(value!(["*/*"]), value!(["DELETE"]));
        let index = Index::of(vec![pods, all]);
        let asked = |resource: &str| index.concerned(resource).count();
        assert_eq!((asked("pods"), asked("nodes")), (2, 1));
        let concerns = index.concerns();
        assert!(concerns.has("pods", Operation::Create) && !concerns.has("nodes", Operation::Create));
        assert!(concerns.has("nodes", Operation::Delete) && !concerns.has("pods", Operation::Update));
        assert!(!Concerns::default().has("pods", Operation::Create));
    }

    #[test]
    fn concerned_items_come_in_order() {
        let resources = |at: usize| match at % 3 {
            0 => value!(["pods"]),
            1 => value!(["*", "pods"]),
            _ => value!(["nodes", "nodes/status", "pods/exec"]),
        };
        let all: Vec<Arc<One>> = (0..9).map(|at| one(resources(at), value!(["CREATE"]))).collect();
        let index = Index::of(all.clone());
        let place = |found: &Arc<One>| all.iter().position(|one| Arc::ptr_eq(one, found)).unwrap();
        let asked = |resource: &str| index.concerned(resource).map(place).collect::<Vec<_>>();
        assert_eq!(asked("pods"), (0..9).collect::<Vec<_>>());
        assert_eq!(asked("nodes"), [1, 2, 4, 5, 7, 8]);
        assert_eq!(asked("secrets"), [1, 4, 7]);
        // The index has as many positions as names: a thousand items with a wildcard are not stored for each name.
        let many = (0..1000).map(|at| one(value!(["*", (format!("r{at}"))]), value!(["CREATE"])));
        let index = Index::of(many.collect());
        assert_eq!((index.any.len(), index.named.values().map(Vec::len).sum::<usize>()), (1000, 0));
    }
}
