//! The rest of a group on this replica: nothing happens in it, and neither heartbeats nor election timeouts run.
//!
//! The leader of an idle group asks the others to rest. From then on it sends no heartbeats, and they expect none.
//! Instead they rely on the leader's process, whose presence one connection shows for all groups. Any event in the
//! group wakes it. Raft's safety does not depend on this: a replica that wakes too late or without need is like one
//! whose clock is wrong.

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// The phase of a group on this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Timers run: a leader sends heartbeats, and others expect them.
    Awake,
    /// This replica leads, and has asked the others to rest.
    AskingOthers,
    /// This replica leads, and all others that could be asked rest.
    Leading,
    /// Another replica leads. It counts as present as long as this connection exists.
    Following {
        /// The id of the leader.
        leader: u64,
        /// The number of the connection that the leader made.
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
    /// The number of events in the group.
    events: u64,
    /// The time of the last event.
    since: Instant,
    /// The time at which the group last woke.
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
    /// Returns the present phase.
    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// Returns the time of the last event.
    pub(crate) fn since(&self) -> Instant {
        self.state.lock().since
    }

    /// Returns the time at which the group last woke.
    pub(crate) fn woke(&self) -> Instant {
        self.state.lock().woke
    }

    /// Returns a receiver that shows whether the group rests here under another leader, now and after every change.
    pub(super) fn follows(&self) -> watch::Receiver<bool> {
        self.follows.subscribe()
    }

    /// Records an event in the group: it is awake, and stays so for a while.
    pub(crate) fn note_event(&self) {
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
            self.note_event();
        }
    }

    /// Starts to ask others to rest, as the leader. Returns the number of events so far.
    pub(super) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        self.enter(&mut state, Phase::AskingOthers);
        state.events
    }

    /// Lets the leader rest once all others do, unless there was an event since it asked. Returns whether it rests.
    pub(super) fn finish(&self, events: u64) -> bool {
        let mut state = self.state.lock();
        let undisturbed = state.phase == Phase::AskingOthers && state.events == events;
        if undisturbed {
            self.enter(&mut state, Phase::Leading);
        }
        undisturbed
    }

    /// Lets the group rest under another leader, as that one asked.
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
    fn an_event_while_others_are_asked_keeps_the_leader_awake() {
        let rest = Rest::default();
        let events = rest.begin();
        rest.note_event();
        assert!(!rest.finish(events));
        assert_eq!(rest.phase(), Phase::Awake);
        let events = rest.begin();
        assert!(rest.finish(events));
        assert_eq!(rest.phase(), Phase::Leading);
        assert!(!rest.finish(events), "it is asked once");
        rest.wake();
        assert_eq!(rest.phase(), Phase::Awake);
    }

    #[test]
    fn events_count_and_waking_an_awake_group_does_not() {
        let rest = Rest::default();
        let began = rest.since();
        rest.wake();
        assert_eq!(rest.since(), began);
        rest.follow(1, 7);
        rest.wake();
        assert!(rest.since() > began && rest.woke() == rest.since(), "a group that woke stays awake for a while");
    }

    #[test]
    fn a_receiver_of_the_rest_sees_only_changes() {
        let rest = Rest::default();
        let mut follows = rest.follows();
        rest.note_event();
        assert!(!follows.has_changed().unwrap());
        rest.follow(1, 7);
        assert!(*follows.borrow_and_update());
        rest.follow(1, 8);
        assert!(!follows.has_changed().unwrap(), "it rests already");
        rest.note_event();
        assert!(!*follows.borrow_and_update());
    }
}
