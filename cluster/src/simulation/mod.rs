//! Clusters that run on one thread, in simulated time, with everything that happens drawn from a seed: the same seed
//! gives the same run.
//!
//! The real store runs on simulated hosts: a [`host`] has a disk, a clock and a process, and sees the
//! [`shared_network`] that connects all hosts through its [`network`]. Each process has a runtime of its own, so that
//! it can be killed, frozen and started again. [`world`] lets time pass for all of them, millisecond by millisecond.
//! [`traffic`] has clients, [`faults`] injects faults, [`changes`] changes members, leaders and shards meanwhile, and
//! [`run`] combines all this and passes the recorded history to the checker of the fault tests, which has a file for
//! each invariant.
//!
//! `cargo test -p flotilla-cluster simulation` runs some seeds. Of these commands, the first runs other seeds; the
//! second runs one, and prints everything that happens:
//!
//! ```text
//! FLOTILLA_SIMULATION_SEEDS=100..200 cargo test -p flotilla-cluster simulation::run
//! FLOTILLA_SIMULATION_SEEDS=123 FLOTILLA_SIMULATION_LOG=1 \
//!   cargo test -p flotilla-cluster simulation::run -- --nocapture
//! ```

pub(crate) mod bugs;
pub(crate) mod chance;
mod changes;
#[path = "../../../tests/faults/check/mod.rs"]
#[allow(dead_code, reason = "it is for members that are asked over HTTP, too")]
mod check;
mod clocks;
mod draw;
mod faults;
mod handing_over;
#[path = "../../../tests/faults/history.rs"]
#[allow(dead_code, reason = "it is for members that are asked over HTTP, too")]
mod history;
mod host;
mod network;
mod run;
pub(crate) mod runtime;
mod shared_network;
mod time;
mod trace;
mod traffic;
mod uncallable;
mod watch;
mod world;
