//! Faults under traffic, and a checker of all answers that clients saw meanwhile.
//!
//! `cargo test --workspace --test faults` tests the checker with broken histories, and injects faults into a control
//! plane for [`SECONDS`] seconds. These commands run longer, and measure how long writes are interrupted when a leader
//! ends, becomes silent or hands over:
//!
//! ```text
//! export FLOTILLA_FAULT_SECONDS=600 FLOTILLA_FAULT_MEASURE=50
//! cargo test --workspace --release --test faults -- --include-ignored --nocapture promises
//! cargo test --workspace --release --test faults -- --include-ignored --nocapture interruption
//! ```
//!
//! FLOTILLA_FAULT_EVENT=terminate measures only the event of this name in [`interruption`].
//!
//! FLOTILLA_FAULT_SEED repeats a schedule of faults, but not how threads interleave. Clocks jump only where libfaketime
//! is installed.
//!
//! The checker also judges the simulations of the store in `cluster/src/simulation`, which a seed repeats exactly.
//!
//! Read in this order: [`history`] (the recorded operations), [`check`] (the promises of Kubernetes), [`fleet`]
//! (members and the links between them), [`traffic`] (clients), [`faults`] (faults of members), [`run`] (a whole run),
//! [`disks`] (faults of disks), [`loss`] (lost packets), [`minority`] (a member that is cut off), [`rolling`] (restarts
//! as for an upgrade), [`interruption`] (measurements).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests and their stand-ins may block")]

mod check;
mod disks;
mod faults;
mod fleet;
#[allow(dead_code, reason = "simulations of the store record more")]
mod history;
mod interruption;
mod loss;
mod minority;
mod rolling;
mod run;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other test programs use the rest")]
mod support;
mod traffic;

use std::time::Duration;

/// For how many seconds faults are injected, unless FLOTILLA_FAULT_SECONDS is set.
const SECONDS: u64 = 10;
/// How often each event is measured, unless FLOTILLA_FAULT_MEASURE is set.
const MEASUREMENTS: u64 = 1;

fn duration() -> Duration {
    Duration::from_secs(number("FLOTILLA_FAULT_SECONDS").unwrap_or(SECONDS))
}

fn measurements() -> usize {
    usize::try_from(number("FLOTILLA_FAULT_MEASURE").unwrap_or(MEASUREMENTS)).expect("a small number")
}

/// Returns the name of the only event to measure. Returns `None` if FLOTILLA_FAULT_EVENT is not set.
fn event() -> Option<String> {
    std::env::var("FLOTILLA_FAULT_EVENT").ok()
}

/// Reads a number from an environment variable. Returns `None` if the variable is not set.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

#[test]
fn one_member_keeps_its_promises() {
    run::run(1, duration());
}

#[test]
fn three_members_keep_their_promises() {
    run::run(3, duration());
}

#[test]
fn three_members_with_eight_shards_keep_their_promises() {
    run::run_with_shards(duration());
}

#[test]
fn five_members_keep_their_promises() {
    run::run(5, duration());
}

#[test]
fn three_members_whose_clocks_jump_keep_their_promises() {
    run::run_with_clocks(3, &[], duration());
}

#[test]
#[ignore = "needs more processors than most machines have"]
fn five_members_with_eight_shards_whose_clocks_jump_keep_their_promises() {
    run::run_with_clocks(5, &["--shards", run::SHARDS], duration());
}

#[test]
fn two_members_go_on_when_the_disk_of_the_third_is_full() {
    disks::one_is_full();
}

#[test]
fn one_member_serves_reads_when_the_disks_of_the_others_are_full() {
    disks::two_are_full();
}

#[test]
fn two_members_go_on_when_the_disk_of_the_third_is_slow() {
    disks::one_is_slow();
}

#[test]
fn interruption_by_the_end_of_the_only_member() {
    interruption::measure(1, measurements(), event().as_deref());
}

#[test]
fn a_member_that_is_cut_off_refuses_what_needs_a_majority() {
    minority::answers_no_more_than_it_knows();
}

#[test]
fn two_members_go_on_when_packets_of_the_third_are_lost() {
    loss::goes_on("two_members_go_on_when_packets_of_the_third_are_lost");
}

#[test]
fn no_request_fails_during_a_rolling_restart() {
    rolling::no_request_fails();
}

#[test]
fn no_request_fails_during_a_rolling_restart_behind_haproxy() {
    rolling::no_request_fails_behind_haproxy();
}

#[test]
fn interruption_by_the_leader_of_three_members() {
    interruption::measure(3, measurements(), event().as_deref());
}
