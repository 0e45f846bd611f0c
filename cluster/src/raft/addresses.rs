//! The addresses of a group's members.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::peer::Callee;
use crate::roster::Replica;

/// The present addresses of members. Openraft keeps the address with which it created a link.
#[derive(Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<BTreeMap<u64, String>>>);

impl Addresses {
    /// Sets the members.
    pub(super) fn learn<'a>(&self, members: impl Iterator<Item = (&'a u64, &'a Replica)>) {
        *self.0.lock() = members.map(|(id, replica)| (*id, replica.address.clone())).collect();
    }

    /// Returns a link's callee with its present address.
    pub(super) fn of<'a>(&self, callee: &'a Callee) -> Cow<'a, Callee> {
        let all = self.0.lock();
        match callee.member.and_then(|member| all.get(&member)).filter(|address| **address != callee.address) {
            Some(address) => Cow::Owned(Callee { address: address.clone(), ..*callee }),
            None => Cow::Borrowed(callee),
        }
    }
}
