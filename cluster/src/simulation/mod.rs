//! Clusters that run on one thread, in time that does not pass by itself, with everything that happens drawn from a
//! seed: the same seed is the same run.
//!
//! What runs is the store itself, on hosts that are not real: [`host`] has a disk, a clock and a process, [`network`]
//! is what it sees of the [`fabric`] that connects all. Each process has a runtime of its own, so that it can be
//! killed, frozen and started again. [`world`] lets time pass for all of them, millisecond by millisecond. [`traffic`]
//! are clients, [`faults`] what is done to hosts and links, [`reform`] what people ask for meanwhile, and [`run`] puts
//! all together and has the recorded history checked by the checker of the tests of faults, whose invariants have a
//! file each.
//!
//! `cargo test -p flotilla-cluster simulation` runs some seeds. Others, one, or one with everything that it does told:
//!
//! ```text
//! FLOTILLA_SIMULATION_SEEDS=100..200 cargo test -p flotilla-cluster simulation::run
//! FLOTILLA_SIMULATION_SEEDS=123 FLOTILLA_SIMULATION_TOLD=1 \
//!   cargo test -p flotilla-cluster simulation::run -- --nocapture
//! ```

pub(crate) mod bugs;
pub(crate) mod chance;
#[path = "../../../tests/faults/check/mod.rs"]
#[allow(dead_code, reason = "it is for members that are asked over HTTP, too")]
mod check;
mod clocks;
mod draw;
mod fabric;
mod faults;
mod handing_over;
#[path = "../../../tests/faults/history.rs"]
#[allow(dead_code, reason = "it is for members that are asked over HTTP, too")]
mod history;
mod host;
mod network;
mod reform;
mod run;
pub(crate) mod runtime;
mod time;
mod trace;
mod traffic;
mod watch;
mod world;
