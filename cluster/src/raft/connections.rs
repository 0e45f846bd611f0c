//! The connections of a group to its other replicas.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flotilla_proto::replication::Method;
use futures_util::future::BoxFuture;

use crate::peer::{Callee, Contacts, Hello, Lane, PeerError, Peers};

/// The connections to other replicas; none on a store that has no others. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections(Option<Arc<dyn Peers>>);

impl Connections {
    pub(super) fn new(peers: Option<Arc<dyn Peers>>) -> Connections {
        Connections(peers)
    }

    /// Returns whether another replica is connected to this one.
    pub(crate) fn is_reachable(&self, member: u64) -> bool {
        self.0.as_ref().is_some_and(|peers| peers.is_reachable(member))
    }

    /// Returns whether this replica has a connection over which it calls another one.
    pub(crate) fn is_connected_to(&self, member: u64) -> bool {
        self.contacts(member).outgoing.is_some()
    }

    /// Returns how many voters another replica is connected with in both directions, as it announces.
    pub(crate) fn reached_voters(&self, member: u64) -> u32 {
        self.0.as_ref().map_or(0, |peers| peers.reached_voters(member))
    }

    /// Returns whether this replica and another one are connected in both directions.
    pub(crate) fn is_connected_both_ways(&self, member: u64) -> bool {
        let contacts = self.contacts(member);
        contacts.outgoing.is_some() && contacts.incoming.is_some()
    }

    fn contacts(&self, member: u64) -> Contacts {
        self.0.as_ref().and_then(|peers| peers.contacts().get(&member).copied()).unwrap_or_default()
    }

    /// Returns whether another replica may be given leadership: it is connected and not drained.
    pub(crate) fn may_lead(&self, member: u64) -> bool {
        self.0.as_ref().is_some_and(|peers| peers.is_reachable(member) && !peers.is_drained(member))
    }

    /// Returns whether another replica has announced that its disk lacks room.
    pub(super) fn is_full(&self, member: u64) -> bool {
        self.0.as_ref().is_some_and(|peers| peers.is_full(member))
    }

    /// Calls another replica. The call has been sent when this returns; `None` on a store that has no others.
    pub(super) fn call(
        &self,
        to: &Callee,
        lane: Lane,
        method: Method,
        payload: Bytes,
        timeout: Duration,
    ) -> Option<BoxFuture<'static, Result<Bytes, PeerError>>> {
        self.0.as_ref().map(|peers| peers.call(to, lane, method as u32, payload, timeout))
    }

    /// Asks the replica at an address for its hello. `None` on a store that has no others.
    pub(super) fn hello_of(
        &self,
        address: &str,
        timeout: Duration,
    ) -> Option<BoxFuture<'static, Result<Hello, PeerError>>> {
        self.0.as_ref().map(|peers| peers.hello_of(address, timeout))
    }
}
