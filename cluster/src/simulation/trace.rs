//! The events of a simulation, in order. Two runs are the same when their traces are.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::time::Time;

/// The number of last notes that are kept.
const SHOWN_MAX: usize = 64;

/// A record of all events. Cheap to clone.
#[derive(Clone)]
pub(super) struct Trace {
    time: Time,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    digest: u64,
    events: u64,
    notes: VecDeque<String>,
    is_printed: bool,
}

impl Trace {
    /// Returns an empty trace. `is_printed` says whether notes are printed as they come.
    pub(super) fn new(time: Time, is_printed: bool) -> Trace {
        Trace { time, state: Arc::new(Mutex::new(State { is_printed, ..State::default() })) }
    }

    /// Records an event that needs no note, such as bytes that were delivered.
    pub(super) fn event(&self, numbers: [u64; 3], bytes: &[u8]) {
        let mut state = self.state.lock();
        let content = u64::from(crc32c::crc32c(bytes)) << 32 | bytes.len() as u64;
        for number in [self.time.now_ms()].into_iter().chain(numbers).chain([content]) {
            state.digest = (state.digest ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        state.events += 1;
    }

    /// Records an event that helps to find the cause of a failure.
    pub(super) fn note(&self, what: &str) {
        self.event([0; 3], what.as_bytes());
        let note = format!("{:>9.3} s {what}", self.time.now_ms() as f64 / 1_000.0);
        let mut state = self.state.lock();
        if state.is_printed {
            eprintln!("{note}");
        }
        state.notes.push_back(note);
        if state.notes.len() > SHOWN_MAX {
            state.notes.pop_front();
        }
    }

    /// Prints a detail, if notes are printed.
    pub(super) fn print(&self, what: impl FnOnce() -> String) {
        if self.state.lock().is_printed {
            eprintln!("{:>9.3} s   {}", self.time.now_ms() as f64 / 1_000.0, what());
        }
    }

    /// Returns a digest of all events, and their number. Two equal runs have the same.
    pub(super) fn digest(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.digest, state.events)
    }

    /// Returns the last notes.
    pub(super) fn notes(&self) -> Vec<String> {
        self.state.lock().notes.iter().cloned().collect()
    }
}
