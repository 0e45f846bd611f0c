//! The random numbers of a simulation: one source on its thread, started with its seed.

use std::cell::RefCell;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

thread_local! {
    static SOURCE: RefCell<Option<SmallRng>> = const { RefCell::new(None) };
}

/// Draws from this seed on this thread until dropped.
pub(super) struct Seeded(());

impl Seeded {
    pub(super) fn with(seed: u64) -> Seeded {
        SOURCE.set(Some(SmallRng::seed_from_u64(seed)));
        Seeded(())
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        SOURCE.set(None);
    }
}

/// Draws the next number of this thread's simulation; `None` outside of one.
pub(crate) fn drawn() -> Option<u64> {
    SOURCE.with_borrow_mut(|source| source.as_mut().map(Rng::random))
}
