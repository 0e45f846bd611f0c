//! Where the members of a group are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::peer::Target;
use crate::roster::Replica;

/// Where members are reached now. Openraft keeps the links that it has when an address changes.
#[derive(Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<BTreeMap<u64, String>>>);

impl Addresses {
    /// These are the members.
    pub(super) fn learn<'a>(&self, members: impl Iterator<Item = (&'a u64, &'a Replica)>) {
        *self.0.lock() = members.map(|(id, replica)| (*id, replica.address.clone())).collect();
    }

    /// Where to call whom a link was made to.
    pub(super) fn of<'a>(&self, target: &'a Target) -> Cow<'a, Target> {
        let all = self.0.lock();
        match target.member.and_then(|member| all.get(&member)).filter(|address| **address != target.address) {
            Some(address) => Cow::Owned(Target { address: address.clone(), ..*target }),
            None => Cow::Borrowed(target),
        }
    }
}
