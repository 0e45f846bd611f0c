//! The setting `--allow-privileged`: whether pods may have privileged containers. It is set once, before the server
//! answers requests, and applies to all of them.
//!
//! A rule gets everything else that it depends on as arguments. This setting is no argument, because it concerns every
//! kind with a template of pods: each rule that checks an object, of any kind, would take an argument that nothing else
//! needs.

use std::sync::atomic::{AtomicBool, Ordering};

static REFUSES_PRIVILEGED: AtomicBool = AtomicBool::new(false);

/// Sets whether pods may have privileged containers, and processes of a Windows host. Call it before anything is
/// validated.
pub fn decide(allow_privileged: bool) {
    REFUSES_PRIVILEGED.store(!allow_privileged, Ordering::Relaxed);
}

/// Returns whether privileged containers and processes of the host are refused.
pub(super) fn refuses_privileged() -> bool {
    REFUSES_PRIVILEGED.load(Ordering::Relaxed)
}
