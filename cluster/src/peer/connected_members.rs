//! Tracks which members are connected.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Contact, Contacts, Hello, Liveness, Side};
use crate::clock::HybridClock;
use crate::limits::PEER_MEMBERS_MAX;

/// Counts the control connections with every member, and records when something was received over them.
pub(super) struct ConnectedMembers {
    members: Mutex<Members>,
    liveness: watch::Sender<Liveness>,
    /// The clock in which promises of members that are gone are given up.
    clock: HybridClock,
}

#[derive(Default)]
struct Members {
    members: BTreeMap<u64, ConnectedMember>,
    /// The number of connections that have come up or ended, which numbers new ones.
    connections: u64,
}

#[derive(Default)]
struct ConnectedMember {
    connections: usize,
    /// The process of the member at the other end of the last connection.
    life: u64,
    state: MemberState,
    contacts: Contacts,
}

/// The last announcement of a member.
#[derive(Default)]
struct MemberState {
    /// Whether it should lead nothing.
    drained: bool,
    /// Whether its disk has no room for the log to grow.
    full: bool,
    /// The number of voting members that it is connected with in both directions.
    reached_voters: u32,
    /// The address at which clients reach it; may be empty.
    serves: String,
}

impl MemberState {
    fn of(hello: &Hello) -> MemberState {
        MemberState {
            drained: hello.drained,
            full: hello.full,
            reached_voters: hello.reached_voters,
            serves: hello.serves.clone(),
        }
    }
}

impl ConnectedMembers {
    pub(super) fn new(clock: HybridClock) -> ConnectedMembers {
        ConnectedMembers { members: Mutex::default(), liveness: watch::Sender::default(), clock }
    }

    pub(super) fn liveness(&self) -> watch::Receiver<Liveness> {
        self.liveness.subscribe()
    }

    /// Returns whether a member should lead nothing.
    pub(super) fn is_drained(&self, member: u64) -> bool {
        self.members.lock().members.get(&member).is_some_and(|known| known.state.drained)
    }

    /// Returns whether the disk of a member has no room for the log to grow.
    pub(super) fn is_full(&self, member: u64) -> bool {
        self.members.lock().members.get(&member).is_some_and(|known| known.state.full)
    }

    /// Returns how many voting members a member is connected with in both directions.
    pub(super) fn reached_voters(&self, member: u64) -> u32 {
        self.members.lock().members.get(&member).map_or(0, |known| known.state.reached_voters)
    }

    fn update(&self, hello: &Hello) {
        // The last hello of a process may arrive after a later process has started.
        if let Some(known) = self.members.lock().members.get_mut(&hello.member).filter(|known| known.life == hello.life)
        {
            known.state = MemberState::of(hello);
        }
    }

    /// Returns when something was last received from each reachable member.
    pub(super) fn contacts(&self) -> BTreeMap<u64, Contacts> {
        let members = self.members.lock();
        let reachable = members.members.iter().filter(|(_, member)| member.connections > 0);
        reachable.map(|(id, member)| (*id, member.contacts)).collect()
    }

    /// Returns the client addresses of the reachable members.
    pub(super) fn servers(&self) -> BTreeMap<u64, String> {
        let members = self.members.lock();
        let reachable = members.members.iter().filter(|(_, known)| known.connections > 0);
        reachable
            .map(|(id, known)| (*id, known.state.serves.clone()))
            .filter(|(_, serves)| !serves.is_empty())
            .collect()
    }

    /// Records a connection that came up. Returns its number.
    fn connect(&self, hello: &Hello, caller: Side) -> u64 {
        self.change(hello.member, |known, connection| {
            known.connections += 1;
            known.life = hello.life;
            known.state = MemberState::of(hello);
            *known.contacts.of(caller) = Some(Contact { connection, last_received: Instant::now() });
        })
    }

    fn disconnect(&self, member: u64, caller: Side, connection: u64) {
        self.change(member, |known, _| {
            known.connections -= 1;
            known.contacts.of(caller).take_if(|contact| contact.connection == connection);
        });
    }

    fn note_received(&self, member: u64, caller: Side) {
        if let Some(known) = self.members.lock().members.get_mut(&member)
            && let Some(contact) = known.contacts.of(caller)
        {
            contact.last_received = Instant::now();
        }
    }

    fn change(&self, member: u64, change: impl FnOnce(&mut ConnectedMember, u64)) -> u64 {
        if member == 0 {
            return 0; // a replica that has no id yet
        }
        let mut connected = self.members.lock();
        let Members { members, connections } = &mut *connected;
        if members.len() >= PEER_MEMBERS_MAX && !members.contains_key(&member) {
            members.retain(|_, known| known.connections > 0);
        }
        *connections += 1;
        let number = *connections;
        let known = members.entry(member).or_default();
        let before = known.connections > 0;
        change(known, number);
        let after = known.connections > 0;
        if before != after {
            tracing::info!(member = %format_args!("{member:x}"), reachable = after, "a peer came or went");
            if before {
                self.clock.give_up(member);
            }
            let liveness = members.iter().map(|(member, known)| (*member, known.connections > 0)).collect();
            self.liveness.send_replace(Arc::new(liveness)); // under the lock, so that changes are published in order
        }
        number
    }
}

/// One control connection with a member.
pub(super) struct ControlConnection {
    connected: Arc<ConnectedMembers>,
    member: u64,
    caller: Side,
    connection: u64,
}

impl ControlConnection {
    pub(super) fn new(connected: Arc<ConnectedMembers>, hello: &Hello, caller: Side) -> Self {
        let connection = connected.connect(hello, caller);
        Self { connected, member: hello.member, caller, connection }
    }

    /// Records that something was received over the connection.
    pub(super) fn note_received(&self) {
        self.connected.note_received(self.member, self.caller);
    }

    /// Records a new hello of the member at the other end, which may even have another id.
    pub(super) fn changed(&mut self, hello: &Hello) {
        self.connected.update(hello);
        if hello.member != self.member {
            let connection = self.connected.connect(hello, self.caller);
            self.connected.disconnect(self.member, self.caller, self.connection);
            (self.member, self.connection) = (hello.member, connection);
        }
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        self.connected.disconnect(self.member, self.caller, self.connection);
    }
}
