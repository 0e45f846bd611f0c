//! Which members are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Hello, Liveness};
use crate::limits::PEER_MEMBERS_MAX;

/// Counts the control connections with every member.
#[derive(Default)]
pub(super) struct Attendance {
    connections: Mutex<BTreeMap<u64, usize>>,
    /// Those that are to lead nothing, as they said last.
    drained: Mutex<BTreeSet<u64>>,
    liveness: watch::Sender<Liveness>,
}

impl Attendance {
    pub(super) fn liveness(&self) -> watch::Receiver<Liveness> {
        self.liveness.subscribe()
    }

    /// Whether a member is to lead nothing.
    pub(super) fn is_drained(&self, member: u64) -> bool {
        self.drained.lock().contains(&member)
    }

    fn heard(&self, hello: &Hello) {
        let mut drained = self.drained.lock();
        if hello.drained && drained.len() < PEER_MEMBERS_MAX {
            drained.insert(hello.member);
        } else if !hello.drained {
            drained.remove(&hello.member);
        }
    }

    fn change(&self, member: u64, change: impl FnOnce(&mut usize)) {
        if member == 0 {
            return; // a replica that belongs to no cluster yet
        }
        let mut connections = self.connections.lock();
        if connections.len() >= PEER_MEMBERS_MAX && !connections.contains_key(&member) {
            connections.retain(|_, count| *count > 0);
        }
        let count = connections.entry(member).or_default();
        let before = *count > 0;
        change(count);
        let after = *count > 0;
        if before != after {
            tracing::info!(member, reachable = after, "a peer comes or goes");
            let liveness = connections.iter().map(|(member, count)| (*member, *count > 0)).collect();
            self.liveness.send_replace(Arc::new(liveness)); // under the lock, so that the last change is seen last
        }
    }
}

/// One control connection with a member.
pub(super) struct Presence {
    attendance: Arc<Attendance>,
    member: u64,
}

impl Presence {
    pub(super) fn new(attendance: Arc<Attendance>, hello: &Hello) -> Self {
        attendance.heard(hello);
        attendance.change(hello.member, |count| *count += 1);
        Self { attendance, member: hello.member }
    }

    /// The member at the other end says something else of itself now, perhaps that it has another id.
    pub(super) fn changed(&mut self, hello: &Hello) {
        self.attendance.heard(hello);
        if hello.member != self.member {
            self.attendance.change(hello.member, |count| *count += 1);
            self.attendance.change(self.member, |count| *count -= 1);
            self.member = hello.member;
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.attendance.change(self.member, |count| *count -= 1);
    }
}
