//! What the clock of a peer shows, by the frames that come from it.

use super::frame::{Frame, FrameKind};
use super::{Hello, frame};
use crate::clock::{HybridClock, Teller};

/// Follows the clock of whoever is at the other end of a connection.
pub(super) struct Timing {
    clock: HybridClock,
    peer: Teller,
}

impl Timing {
    pub(super) fn new(clock: HybridClock, peer: &Hello) -> Timing {
        let mut timing = Timing { clock, peer: Teller::default() };
        timing.meet(peer);
        timing
    }

    /// The other end says who it is, perhaps that it has another id now.
    pub(super) fn meet(&mut self, peer: &Hello) {
        self.peer = Teller { member: peer.member, life: peer.life };
        // One that is no member yet leads nothing, and may belong elsewhere.
        if self.peer.member != 0 {
            self.clock.meet(self.peer);
        }
    }

    /// A frame came.
    pub(super) fn hear(&self, frame: &Frame) {
        if self.peer.member != 0 {
            let is_answer = matches!(frame.kind(), FrameKind::Answer | FrameKind::Refusal);
            self.clock.hear(self.peer, frame::told(frame), is_answer);
        }
    }
}
