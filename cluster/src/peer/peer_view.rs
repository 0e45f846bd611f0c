//! Knows which other replicas answer, in one view for all groups.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Contact, Contacts};
use crate::limits::{PEER_SILENCE_MAX, PULSE_INTERVAL};

/// The connections with a member over which something was received lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LiveConnections {
    /// The one over which this replica calls it.
    outgoing: Option<u64>,
    /// The one over which it calls this replica.
    incoming: Option<u64>,
}

/// The replicas that answer. All groups use the result of the last look, so that none misses a change.
pub(crate) struct PeerView {
    state: Mutex<State>,
}

struct State {
    members: BTreeMap<u64, LiveConnections>,
    /// For each member, how long it had been silent at the look before the last, and at the last.
    silent: BTreeMap<u64, Range<Duration>>,
    updated: Instant,
    /// Since when this replica has been looking without standing still itself.
    steady: Instant,
}

impl Default for PeerView {
    fn default() -> PeerView {
        let now = Instant::now();
        PeerView {
            state: Mutex::new(State { members: BTreeMap::new(), silent: BTreeMap::new(), updated: now, steady: now }),
        }
    }
}

impl PeerView {
    /// Updates the view. Returns whether it has changed since the last look.
    pub(crate) fn update(&self, contacts: &BTreeMap<u64, Contacts>, now: Instant) -> bool {
        let mut state = self.state.lock();
        if now > state.updated + 2 * PULSE_INTERVAL {
            state.steady = now; // silence while this replica stood still proves nothing
        }
        state.updated = now;
        let steady = state.steady;
        let last_received = |contact: Contact| {
            let lately = now < contact.last_received.max(steady) + PEER_SILENCE_MAX;
            lately.then_some(contact.connection)
        };
        let seen = |contacts: &Contacts| LiveConnections {
            outgoing: contacts.outgoing.and_then(last_received),
            incoming: contacts.incoming.and_then(last_received),
        };
        let members = contacts.iter().map(|(member, contacts)| (*member, seen(contacts))).collect();
        let before = std::mem::take(&mut state.silent);
        let silent = |(member, contacts): (&u64, &Contacts)| {
            let last_received = [contacts.outgoing, contacts.incoming]
                .into_iter()
                .flatten()
                .map(|contact| contact.last_received)
                .max()?;
            let silence = now.saturating_duration_since(last_received.max(steady));
            Some((*member, before.get(member).map_or(silence, |before| before.end)..silence))
        };
        state.silent = contacts.iter().filter_map(silent).collect();
        let changed = state.members != members;
        state.members = members;
        changed
    }

    /// Returns whether a member answers calls.
    pub(crate) fn answers(&self, member: u64) -> bool {
        self.state.lock().members.get(&member).is_some_and(|seen| seen.outgoing.is_some())
    }

    /// Returns whether anything is received from a member.
    pub(crate) fn receives_from(&self, member: u64) -> bool {
        self.state.lock().members.get(&member).is_some_and(|seen| seen.outgoing.or(seen.incoming).is_some())
    }

    /// Returns whether a member answers calls, and calls this replica.
    pub(crate) fn connects_both_ways(&self, member: u64) -> bool {
        let state = self.state.lock();
        state.members.get(&member).is_some_and(|seen| seen.outgoing.is_some() && seen.incoming.is_some())
    }

    /// Returns how long a member has been silent on all connections: at the look before the last, and at the last.
    /// `None` while it is not silent for long enough to be missed.
    pub(crate) fn silence(&self, member: u64) -> Option<Range<Duration>> {
        self.state.lock().silent.get(&member).filter(|silence| silence.end >= PEER_SILENCE_MAX).cloned()
    }

    /// Returns the number of the connection over which a member calls this replica; `None` when there is none.
    pub(crate) fn incoming_connection(&self, member: u64) -> Option<u64> {
        self.state.lock().members.get(&member)?.incoming
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contacts(outgoing: Option<(u64, Instant)>, incoming: Option<(u64, Instant)>) -> BTreeMap<u64, Contacts> {
        let contact = |(connection, last_received)| Contact { connection, last_received };
        BTreeMap::from([(1, Contacts { outgoing: outgoing.map(contact), incoming: incoming.map(contact) })])
    }

    #[test]
    fn each_connection_has_its_own_silence() {
        let (view, mut now) = (PeerView::default(), Instant::now());
        let last_received = now;
        assert!(view.update(&contacts(Some((1, last_received)), Some((2, last_received))), now));
        assert!(
            view.answers(1) && view.incoming_connection(1) == Some(2) && view.connects_both_ways(1) && !view.answers(2)
        );
        while now + PULSE_INTERVAL < last_received + PEER_SILENCE_MAX {
            now += PULSE_INTERVAL;
            assert!(!view.update(&contacts(Some((1, last_received)), Some((2, now))), now));
        }
        now += PULSE_INTERVAL;
        assert!(view.update(&contacts(Some((1, last_received)), Some((2, now))), now));
        assert!(!view.answers(1) && view.incoming_connection(1) == Some(2) && !view.connects_both_ways(1));
        assert!(view.update(&contacts(Some((3, now)), Some((2, now))), now), "another connection is a change");
    }

    #[test]
    fn a_member_is_silent_if_all_its_connections_are() {
        let (view, mut now) = (PeerView::default(), Instant::now());
        let last_received = now;
        let mut silence = |answers: bool| {
            now += PULSE_INTERVAL;
            view.update(&contacts(Some((1, if answers { now } else { last_received })), Some((2, last_received))), now);
            view.silence(1)
        };
        assert!((0..20).all(|_| silence(true).is_none()), "it answers");
        assert!(view.receives_from(1) && !view.receives_from(2));
        let silent = silence(false).unwrap();
        assert!(!view.receives_from(1));
        assert_eq!((silent.start, silent.end), (Duration::ZERO, 21 * PULSE_INTERVAL));
        assert_eq!(silence(false), Some(21 * PULSE_INTERVAL..22 * PULSE_INTERVAL));
        assert_eq!(silence(true), None);
        assert_eq!(view.silence(2), None, "nobody knows it");
    }

    #[test]
    fn a_paused_replica_waits_before_it_considers_others_silent() {
        let (view, mut now) = (PeerView::default(), Instant::now());
        let last_received = now;
        view.update(&contacts(None, Some((2, last_received))), now);
        now += Duration::from_secs(10);
        assert!(!view.update(&contacts(None, Some((2, last_received))), now), "they may have called meanwhile");
        let resumed = now;
        while now < resumed + PEER_SILENCE_MAX {
            assert_eq!(view.incoming_connection(1), Some(2));
            now += PULSE_INTERVAL;
            view.update(&contacts(None, Some((2, last_received))), now);
        }
        assert_eq!(view.incoming_connection(1), None);
    }
}
