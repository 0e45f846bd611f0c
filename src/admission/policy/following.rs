//! Keeps policies and their bindings ready in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::super::{Admission, DynamicPlugin, Index, MatchAttributes, following};
use super::{Binding, BoundPolicy, Policy, is_exempt};

const GROUP: &str = "admissionregistration.k8s.io";

/// The resources of validating policies and of their bindings.
pub const VALIDATING_POLICIES: [&str; 2] = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
/// The resources of mutating policies and of their bindings.
pub const MUTATING_POLICIES: [&str; 2] = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];

/// The policies of one kind that have bindings, indexed by the resources that they match.
#[derive(Debug)]
pub struct Policies<P> {
    index: ArcSwap<Index<BoundPolicy<P>>>,
    stored: Mutex<Stored<P>>,
}

/// The policies and the bindings of the tables. `None` until the table was read.
#[derive(Debug)]
struct Stored<P> {
    policies: Option<Vec<Arc<P>>>,
    bindings: Option<Vec<Arc<Binding>>>,
}

impl<P: Policy> Default for Policies<P> {
    fn default() -> Self {
        Self {
            index: ArcSwap::from_pointee(Index::of(Vec::new())),
            stored: Mutex::new(Stored { policies: None, bindings: None }),
        }
    }
}

impl<P: Policy> Policies<P> {
    /// Returns the current policies.
    pub fn index(&self) -> Arc<Index<BoundPolicy<P>>> {
        self.index.load_full()
    }

    /// Returns whether any policy may match a write.
    pub fn may_want(&self, write: &MatchAttributes<'_>) -> bool {
        let (index, (.., resource)) = (self.index.load(), write.resource());
        index.concerns().has(resource, write.operation)
            && !is_exempt(write)
            && index.concerned(resource).any(|bound| bound.may_want(write))
    }

    /// Follows the tables of policies and of bindings, for ever.
    pub async fn follow(&self, admission: &Admission, plugin: DynamicPlugin, resources: [&str; 2]) {
        let table = |resource: &str| {
            let served = admission.tables.resources.of_resource(GROUP, resource);
            served.map(|served| admission.tables.table(&served))
        };
        let [Some(policies), Some(bindings)] = resources.map(table) else { return };
        let publish = |stored: &mut Stored<P>| self.publish(admission, plugin, stored);
        tokio::join!(
            following::follow(
                &policies,
                |policy| Some(P::read(policy)),
                |known| {
                    let mut stored = self.stored.lock();
                    stored.policies = Some(known.values().cloned().collect());
                    publish(&mut stored);
                }
            ),
            following::follow(
                &bindings,
                |binding| Some(Binding::read(binding)),
                |known| {
                    let mut stored = self.stored.lock();
                    stored.bindings = Some(known.values().cloned().collect());
                    publish(&mut stored);
                }
            ),
        );
    }

    /// Publishes the policies with their bindings, once both tables were read.
    fn publish(&self, admission: &Admission, plugin: DynamicPlugin, stored: &mut Stored<P>) {
        let Stored { policies: Some(policies), bindings: Some(bindings) } = stored else { return };
        let mut by_policy: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
        for binding in bindings.iter() {
            by_policy.entry(&binding.policy).or_default().push(Arc::clone(binding));
        }
        let bound = policies.iter().filter_map(|policy| {
            let bindings = by_policy.remove(policy.spec().name.as_str())?;
            Some(Arc::new(BoundPolicy { policy: Arc::clone(policy), bindings }))
        });
        let index = Index::of(bound.collect());
        let concerns = index.concerns().clone();
        self.index.store(Arc::new(index));
        admission.publish(plugin, concerns);
    }
}
