//! Follows the clock of a peer by the frames that it sends.

use tokio::sync::watch;

use super::frame::{Frame, FrameKind};
use super::{Hello, frame};
use crate::clock::{HybridClock, MemberProcess};

/// Follows the clock of the other end of a connection, if that is another member of the same cluster. Any other replica
/// leads nothing here, so its clock does not matter.
pub(super) struct Timing {
    clock: HybridClock,
    own: watch::Receiver<Hello>,
    peer: MemberProcess,
    cluster: String,
    is_followed: bool,
}

impl Timing {
    /// Starts to follow the clock of `peer`. `own` is the hello of this replica, which may join a cluster later.
    pub(super) fn new(clock: HybridClock, own: watch::Receiver<Hello>, peer: &Hello) -> Timing {
        let (process, cluster) = (MemberProcess { member: peer.member, life: peer.life }, peer.cluster.clone());
        let mut timing = Timing { clock, own, peer: process, cluster, is_followed: false };
        timing.follow();
        timing
    }

    /// Handles a new hello of the other end, which may have another id or belong to a cluster now.
    pub(super) fn changed(&mut self, peer: &Hello) {
        let (process, cluster) = (MemberProcess { member: peer.member, life: peer.life }, &peer.cluster);
        // With the same identity nothing changes: the clock may know a later process of the member by now, which must
        // be kept.
        if (self.peer, &self.cluster) != (process, cluster) {
            (self.peer, self.cluster, self.is_followed) = (process, cluster.clone(), false);
            self.follow();
        }
    }

    /// Handles a frame that was received.
    pub(super) fn receive(&mut self, frame: &Frame) {
        if self.is_followed || self.follow() {
            let is_answer = matches!(frame.kind(), FrameKind::Answer | FrameKind::Refusal);
            self.clock.receive(self.peer, frame::clock_reading(frame), is_answer);
        }
    }

    /// Follows the peer's clock from now on, if it must be followed. Returns whether it is.
    fn follow(&mut self) -> bool {
        let own = self.own.borrow();
        self.is_followed = !self.cluster.is_empty() && own.cluster == self.cluster && own.member != self.peer.member;
        if self.is_followed {
            self.clock.note_connection(self.peer);
        }
        self.is_followed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Revision;
    use crate::clock::ClockReading;
    use crate::peer::frame::{plain, stamped};

    #[tokio::test]
    async fn only_clocks_of_the_same_cluster_are_followed() {
        let hello = |cluster: &str, member| Hello { cluster: cluster.into(), member, life: 1, ..Hello::default() };
        let (own, said) = watch::channel(hello("", 1));
        let clock = HybridClock::default();
        let ahead = Revision::new(clock.now().get() + Revision::span(std::time::Duration::from_secs(3_600)));
        let frame = || stamped(plain(FrameKind::Beat), ClockReading { now: ahead.get(), latest: 0 });
        let follows = |timing: &mut Timing| {
            timing.receive(&frame());
            clock.now() >= ahead
        };
        let timing = |peer: &Hello| Timing::new(clock.clone(), said.clone(), peer);
        assert!(!follows(&mut timing(&hello("", 2))), "neither belongs to any");
        let mut early = timing(&hello("c", 2));
        assert!(!follows(&mut early), "this one belongs to none yet");
        own.send_replace(hello("c", 1));
        assert!(!follows(&mut timing(&hello("d", 2))), "it belongs elsewhere");
        assert!(!follows(&mut timing(&hello("c", 1))), "that is this one itself");
        let mut late = timing(&hello("", 2));
        assert!(!follows(&mut late), "it belongs to none yet");
        assert!(follows(&mut early));
        late.changed(&hello("c", 2));
        assert!(late.is_followed);
    }
}
