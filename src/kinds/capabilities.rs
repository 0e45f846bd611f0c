//! What pods of this server may be given. It is decided once, before anything is served, and is the same for all.

use std::sync::atomic::{AtomicBool, Ordering};

static REFUSES_PRIVILEGED: AtomicBool = AtomicBool::new(false);

/// Decides whether containers may be privileged, and processes of the host. Call it before anything is validated.
pub fn decide(allow_privileged: bool) {
    REFUSES_PRIVILEGED.store(!allow_privileged, Ordering::Relaxed);
}

/// Whether containers may neither be privileged nor processes of the host.
pub(super) fn refuses_privileged() -> bool {
    REFUSES_PRIVILEGED.load(Ordering::Relaxed)
}
