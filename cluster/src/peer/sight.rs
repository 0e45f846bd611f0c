//! Which other replicas are there, in one view for all groups.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Contact, Contacts};
use crate::limits::{PEER_SILENCE_MAX, PULSE_INTERVAL};

/// The connections with a member over which it was heard lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// The one over which this replica calls it.
    called: Option<u64>,
    /// The one over which it calls this replica.
    calling: Option<u64>,
}

/// Which replicas are there. All groups use the result of the last look, so that none misses a change.
pub(crate) struct Sight {
    state: Mutex<State>,
}

struct State {
    members: BTreeMap<u64, Seen>,
    /// For each member, how long it had been silent at the look before the last, and at the last.
    silent: BTreeMap<u64, Range<Duration>>,
    looked: Instant,
    /// Since when this replica has been looking without standing still itself.
    steady: Instant,
}

impl Default for Sight {
    fn default() -> Sight {
        let now = Instant::now();
        Sight {
            state: Mutex::new(State { members: BTreeMap::new(), silent: BTreeMap::new(), looked: now, steady: now }),
        }
    }
}

impl Sight {
    /// Updates the view. Returns whether it has changed since the last look.
    pub(crate) fn look(&self, contacts: &BTreeMap<u64, Contacts>, now: Instant) -> bool {
        let mut state = self.state.lock();
        if now > state.looked + 2 * PULSE_INTERVAL {
            state.steady = now; // silence while this replica stood still proves nothing
        }
        state.looked = now;
        let steady = state.steady;
        let heard = |contact: Contact| {
            let lately = now < contact.heard.max(steady) + PEER_SILENCE_MAX;
            lately.then_some(contact.connection)
        };
        let seen = |contacts: &Contacts| Seen {
            called: contacts.called.and_then(heard),
            calling: contacts.calling.and_then(heard),
        };
        let members = contacts.iter().map(|(member, contacts)| (*member, seen(contacts))).collect();
        let before = std::mem::take(&mut state.silent);
        let silent = |(member, contacts): (&u64, &Contacts)| {
            let heard = [contacts.called, contacts.calling].into_iter().flatten().map(|contact| contact.heard).max()?;
            let silence = now.saturating_duration_since(heard.max(steady));
            Some((*member, before.get(member).map_or(silence, |before| before.end)..silence))
        };
        state.silent = contacts.iter().filter_map(silent).collect();
        let changed = state.members != members;
        state.members = members;
        changed
    }

    /// Returns whether a member answers calls.
    pub(crate) fn answers(&self, member: u64) -> bool {
        self.state.lock().members.get(&member).is_some_and(|seen| seen.called.is_some())
    }

    /// Returns whether a member is heard at all.
    pub(crate) fn hears(&self, member: u64) -> bool {
        self.state.lock().members.get(&member).is_some_and(|seen| seen.called.or(seen.calling).is_some())
    }

    /// Returns whether a member answers calls, and calls this replica.
    pub(crate) fn is_mutual(&self, member: u64) -> bool {
        let state = self.state.lock();
        state.members.get(&member).is_some_and(|seen| seen.called.is_some() && seen.calling.is_some())
    }

    /// Returns how long a member has been silent on all connections: at the look before the last, and at the last.
    /// `None` while it is not silent for long enough to be missed.
    pub(crate) fn silence(&self, member: u64) -> Option<Range<Duration>> {
        self.state.lock().silent.get(&member).filter(|silence| silence.end >= PEER_SILENCE_MAX).cloned()
    }

    /// Returns the number of the connection over which a member calls this replica; `None` when there is none.
    pub(crate) fn calls(&self, member: u64) -> Option<u64> {
        self.state.lock().members.get(&member)?.calling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contacts(called: Option<(u64, Instant)>, calling: Option<(u64, Instant)>) -> BTreeMap<u64, Contacts> {
        let contact = |(connection, heard)| Contact { connection, heard };
        BTreeMap::from([(1, Contacts { called: called.map(contact), calling: calling.map(contact) })])
    }

    #[test]
    fn silence_is_seen_of_each_connection_by_itself() {
        let (sight, mut now) = (Sight::default(), Instant::now());
        let heard = now;
        assert!(sight.look(&contacts(Some((1, heard)), Some((2, heard))), now));
        assert!(sight.answers(1) && sight.calls(1) == Some(2) && sight.is_mutual(1) && !sight.answers(2));
        while now + PULSE_INTERVAL < heard + PEER_SILENCE_MAX {
            now += PULSE_INTERVAL;
            assert!(!sight.look(&contacts(Some((1, heard)), Some((2, now))), now));
        }
        now += PULSE_INTERVAL;
        assert!(sight.look(&contacts(Some((1, heard)), Some((2, now))), now));
        assert!(!sight.answers(1) && sight.calls(1) == Some(2) && !sight.is_mutual(1));
        assert!(sight.look(&contacts(Some((3, now)), Some((2, now))), now), "another connection is a change");
    }

    #[test]
    fn a_member_is_silent_that_is_so_on_all_connections() {
        let (sight, mut now) = (Sight::default(), Instant::now());
        let heard = now;
        let mut silence = |answers: bool| {
            now += PULSE_INTERVAL;
            sight.look(&contacts(Some((1, if answers { now } else { heard })), Some((2, heard))), now);
            sight.silence(1)
        };
        assert!((0..20).all(|_| silence(true).is_none()), "it answers");
        assert!(sight.hears(1) && !sight.hears(2));
        let silent = silence(false).unwrap();
        assert!(!sight.hears(1));
        assert_eq!((silent.start, silent.end), (Duration::ZERO, 21 * PULSE_INTERVAL));
        assert_eq!(silence(false), Some(21 * PULSE_INTERVAL..22 * PULSE_INTERVAL));
        assert_eq!(silence(true), None);
        assert_eq!(sight.silence(2), None, "nobody knows it");
    }

    #[test]
    fn who_stood_still_himself_waits_before_he_misses_others() {
        let (sight, mut now) = (Sight::default(), Instant::now());
        let heard = now;
        sight.look(&contacts(None, Some((2, heard))), now);
        now += Duration::from_secs(10);
        assert!(!sight.look(&contacts(None, Some((2, heard))), now), "they may have called meanwhile");
        let resumed = now;
        while now < resumed + PEER_SILENCE_MAX {
            assert_eq!(sight.calls(1), Some(2));
            now += PULSE_INTERVAL;
            sight.look(&contacts(None, Some((2, heard))), now);
        }
        assert_eq!(sight.calls(1), None);
    }
}
