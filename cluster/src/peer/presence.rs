//! Which members are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Liveness;
use crate::limits::PEER_MEMBERS_MAX;

/// Counts the control connections with every member.
#[derive(Default)]
pub(super) struct Attendance {
    connections: Mutex<BTreeMap<u64, usize>>,
    liveness: watch::Sender<Liveness>,
}

impl Attendance {
    pub(super) fn liveness(&self) -> watch::Receiver<Liveness> {
        self.liveness.subscribe()
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
    pub(super) fn new(attendance: Arc<Attendance>, member: u64) -> Self {
        attendance.change(member, |count| *count += 1);
        Self { attendance, member }
    }

    /// The member at the other end has another id now.
    pub(super) fn moved_to(&mut self, member: u64) {
        if member != self.member {
            self.attendance.change(member, |count| *count += 1);
            self.attendance.change(self.member, |count| *count -= 1);
            self.member = member;
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.attendance.change(self.member, |count| *count -= 1);
    }
}
