//! What the clock of a peer shows, by the frames that come from it.

use tokio::sync::watch;

use super::frame::{Frame, FrameKind};
use super::{Hello, frame};
use crate::clock::{HybridClock, Teller};

/// Follows the clock of whoever is at the other end of a connection, if that is another member of the same cluster.
/// Whoever is none leads nothing, and its clock is no business of this cluster.
pub(super) struct Timing {
    clock: HybridClock,
    own: watch::Receiver<Hello>,
    peer: Teller,
    cluster: String,
    is_followed: bool,
}

impl Timing {
    /// `own` is who this replica says it is, which may come to belong to a cluster meanwhile.
    pub(super) fn new(clock: HybridClock, own: watch::Receiver<Hello>, peer: &Hello) -> Timing {
        let (teller, cluster) = (Teller { member: peer.member, life: peer.life }, peer.cluster.clone());
        let mut timing = Timing { clock, own, peer: teller, cluster, is_followed: false };
        timing.follow();
        timing
    }

    /// The other end says something else of itself, perhaps that it has another id or belongs to a cluster now.
    pub(super) fn changed(&mut self, peer: &Hello) {
        let (teller, cluster) = (Teller { member: peer.member, life: peer.life }, &peer.cluster);
        // Of the same one there may be a later process by now, which is not to be forgotten.
        if (self.peer, &self.cluster) != (teller, cluster) {
            (self.peer, self.cluster, self.is_followed) = (teller, cluster.clone(), false);
            self.follow();
        }
    }

    /// A frame came.
    pub(super) fn hear(&mut self, frame: &Frame) {
        if self.is_followed || self.follow() {
            let is_answer = matches!(frame.kind(), FrameKind::Answer | FrameKind::Refusal);
            self.clock.hear(self.peer, frame::told(frame), is_answer);
        }
    }

    /// Follows it from now on, if it is to be followed.
    fn follow(&mut self) -> bool {
        let own = self.own.borrow();
        self.is_followed = !self.cluster.is_empty() && own.cluster == self.cluster && own.member != self.peer.member;
        if self.is_followed {
            self.clock.meet(self.peer);
        }
        self.is_followed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Revision;
    use crate::clock::Told;
    use crate::peer::frame::{plain, stamped};

    #[tokio::test]
    async fn only_the_clocks_of_the_same_cluster_are_followed() {
        let hello = |cluster: &str, member| Hello { cluster: cluster.into(), member, life: 1, ..Hello::default() };
        let (own, said) = watch::channel(hello("", 1));
        let clock = HybridClock::default();
        let ahead = Revision::new(clock.now().get() + Revision::span(std::time::Duration::from_secs(3_600)));
        let frame = || stamped(plain(FrameKind::Beat), Told { now: ahead.get(), latest: 0 });
        let follows = |timing: &mut Timing| {
            timing.hear(&frame());
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
