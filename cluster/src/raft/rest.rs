//! Whether a group rests on this replica: nothing happens in it, and nobody counts the time.
//!
//! A leader in whose group nothing happens asks the others to rest; from then on it sends no heartbeats, and they miss
//! none. What they rely on instead is that the leader's process is there, which one connection tells for all groups.
//! Whatever happens to the group wakes it. No promise of Raft depends on it: a replica that wakes too late or without
//! need is one whose clock went wrong.

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How a group is on this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Time counts: a leader sends heartbeats, others miss them.
    Awake,
    /// This replica leads, and has asked the others to rest.
    Settling,
    /// This replica leads, and all others rest that could be asked.
    Leading,
    /// Another replica leads, which is there as long as this connection tells so.
    Following {
        /// Which one.
        leader: u64,
        /// Number of the connection that it made.
        connection: u64,
    },
}

/// Whether one group rests on this replica.
pub(crate) struct Rest {
    state: Mutex<State>,
    follows: watch::Sender<bool>,
}

struct State {
    phase: Phase,
    /// Counts what happened.
    events: u64,
    /// When something last happened.
    since: Instant,
    /// When the group was last woken.
    woke: Instant,
}

impl Default for Rest {
    fn default() -> Rest {
        let now = Instant::now();
        let state = State { phase: Phase::Awake, events: 0, since: now, woke: now };
        Rest { state: Mutex::new(state), follows: watch::Sender::new(false) }
    }
}

impl Rest {
    /// How the group is now.
    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// Since when nothing has happened.
    pub(crate) fn since(&self) -> Instant {
        self.state.lock().since
    }

    /// When the group last woke.
    pub(crate) fn woke(&self) -> Instant {
        self.state.lock().woke
    }

    /// Whether the group rests here and another replica leads it, and when that changes.
    pub(super) fn follows(&self) -> watch::Receiver<bool> {
        self.follows.subscribe()
    }

    /// Something happens in the group: it is awake, and stays so for a while.
    pub(crate) fn stir(&self) {
        let mut state = self.state.lock();
        state.events += 1;
        state.since = Instant::now();
        if state.phase != Phase::Awake {
            state.woke = state.since;
        }
        self.enter(&mut state, Phase::Awake);
    }

    /// Wakes the group if it rests.
    pub(crate) fn wake(&self) {
        if self.phase() != Phase::Awake {
            self.stir();
        }
    }

    /// The leader asks others to rest: what counts as unchanged since then.
    pub(super) fn settle(&self) -> u64 {
        let mut state = self.state.lock();
        self.enter(&mut state, Phase::Settling);
        state.events
    }

    /// All others rest: so does the leader, unless something has happened since it asked. Whether it rests.
    pub(super) fn lead(&self, events: u64) -> bool {
        let mut state = self.state.lock();
        let undisturbed = state.phase == Phase::Settling && state.events == events;
        if undisturbed {
            self.enter(&mut state, Phase::Leading);
        }
        undisturbed
    }

    /// The leader says that nothing happens any more.
    pub(super) fn follow(&self, leader: u64, connection: u64) {
        self.enter(&mut self.state.lock(), Phase::Following { leader, connection });
    }

    fn enter(&self, state: &mut State, phase: Phase) {
        if state.phase != phase {
            state.phase = phase;
            let follows = matches!(phase, Phase::Following { .. });
            self.follows.send_if_modified(|known| std::mem::replace(known, follows) != follows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_happens_while_others_are_asked_keeps_the_leader_awake() {
        let rest = Rest::default();
        let events = rest.settle();
        rest.stir();
        assert!(!rest.lead(events));
        assert_eq!(rest.phase(), Phase::Awake);
        let events = rest.settle();
        assert!(rest.lead(events));
        assert_eq!(rest.phase(), Phase::Leading);
        assert!(!rest.lead(events), "it is asked once");
        rest.wake();
        assert_eq!(rest.phase(), Phase::Awake);
    }

    #[test]
    fn what_happens_counts_and_waking_those_awake_does_not() {
        let rest = Rest::default();
        let began = rest.since();
        rest.wake();
        assert_eq!(rest.since(), began);
        rest.follow(1, 7);
        rest.wake();
        assert!(rest.since() > began && rest.woke() == rest.since(), "a group that woke stays awake for a while");
    }

    #[test]
    fn who_counts_the_time_is_told_of_changes_alone() {
        let rest = Rest::default();
        let mut follows = rest.follows();
        rest.stir();
        assert!(!follows.has_changed().unwrap());
        rest.follow(1, 7);
        assert!(*follows.borrow_and_update());
        rest.follow(1, 8);
        assert!(!follows.has_changed().unwrap(), "it rests already");
        rest.stir();
        assert!(!*follows.borrow_and_update());
    }
}
