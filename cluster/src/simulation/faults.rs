//! Faults of hosts and links, drawn from the seed.

use std::sync::atomic::Ordering;

use super::changes::{self, MemberChanges};
use super::draw;
use super::host::Crash;
use super::traffic::Traffic;
use super::world::{PLAIN, SPREAD, World};

/// The room on a disk that is nearly full.
const LITTLE_ROOM: u64 = 8 << 10;
/// The most by which a wall clock is set wrong, in milliseconds.
const SKEW_MS: u64 = 3_600_000;

/// How far a wall clock is set forward that is only slightly off, in milliseconds.
const AHEAD_MS: std::ops::Range<u64> = 10..5_000;

/// The mean time between two restarts while processes restart again and again, in milliseconds.
const FLICKER_MS: u64 = 60;

/// A fault that will be undone at a time.
struct Undoing {
    due_ms: u64,
    host: usize,
    fault: HostFault,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostFault {
    Kill,
    PowerLoss,
    /// The process is asked to end, and does.
    Stop,
    /// All hosts lose their power at once.
    Blackout,
    Freeze,
    /// Nothing passes between a host and the others.
    Isolate,
    /// Nothing passes from a host to this one.
    CutTo(usize),
    /// Of the connections of a host only those remain that it made, and none with this other host; no new ones are
    /// made.
    Uncallable(usize),
    SlowDisk,
    FullDisk,
    /// The wall clock jumps.
    Clock,
    /// The wall clock is set forward, and this other host hears of it only from third ones.
    Ahead(usize),
    /// Messages take long, and very different times.
    SlowNetwork,
    /// Random processes end and start again at once, now and then.
    Flicker,
    /// Clients do nothing.
    Quiet,
    /// Every group writes a snapshot and drops the log before it.
    Snapshot,
    /// The disk is lost, and a new replica replaces the old one.
    Replace,
    /// A host is removed, and admitted again.
    Readmit,
    /// All hosts but this one are removed, and admitted again.
    Shrink,
    /// A host is made the leader of everything.
    Transfer,
    /// A table is divided into another number of shards.
    Divide,
}

/// Decides when faults are injected and undone.
pub(super) struct Schedule {
    next_ms: u64,
    undoing: Vec<Undoing>,
    member_changes: MemberChanges,
}

impl Schedule {
    pub(super) fn new(from_ms: u64) -> Schedule {
        Schedule { next_ms: from_ms, undoing: Vec::new(), member_changes: MemberChanges::default() }
    }

    /// Injects and undoes the faults that are due.
    pub(super) fn step(&mut self, world: &mut World, traffic: &Traffic) {
        let now = world.time.now_ms();
        while let Some(index) = self.undoing.iter().position(|undoing| undoing.due_ms <= now) {
            let undoing = self.undoing.remove(index);
            self.undo(world, traffic, &undoing);
        }
        if self.undoing.iter().any(|undoing| undoing.fault == HostFault::Flicker) && draw::once_in(FLICKER_MS) {
            let host = draw::below(world.hosts.len() as u64) as usize;
            world.hosts[host].crash(*draw::one_of(&[Crash::Kill, Crash::PowerLoss]));
            world.hosts[host].restart();
        }
        if now >= self.next_ms {
            self.next_ms = now + draw::within(50..1_500);
            let host = draw::below(world.hosts.len() as u64) as usize;
            let fault = drawn(host, world.hosts.len());
            if self.undoing.iter().any(|undoing| undoing.host == host || undoing.fault == fault) {
                return;
            }
            if matches!(fault, HostFault::Replace | HostFault::Readmit | HostFault::Shrink)
                && self.member_changes.is_going_on()
            {
                return;
            }
            let lasts_ms = self.inject(world, traffic, host, fault);
            self.undoing.push(Undoing { due_ms: now + lasts_ms, host, fault });
        }
    }

    /// Undoes all faults.
    pub(super) fn end(&mut self, world: &mut World, traffic: &Traffic) {
        for undoing in std::mem::take(&mut self.undoing) {
            self.undo(world, traffic, &undoing);
        }
    }

    /// Returns whether all changes of members have been completed.
    pub(super) fn is_settled(&self) -> bool {
        !self.member_changes.is_going_on()
    }

    /// Injects a fault into a host. Returns how long it lasts, in milliseconds.
    fn inject(&self, world: &mut World, traffic: &Traffic, host: usize, fault: HostFault) -> u64 {
        let names = world.hosts[host].name.clone();
        world.trace.note(&format!("{names}: {fault:?}"));
        match fault {
            HostFault::Kill => world.hosts[host].crash(Crash::Kill),
            HostFault::PowerLoss => world.hosts[host].crash(Crash::PowerLoss),
            HostFault::Blackout => world.hosts.iter_mut().for_each(|host| host.crash(Crash::PowerLoss)),
            HostFault::Freeze => world.hosts[host].is_frozen = true,
            HostFault::Isolate => isolate(world, host, true),
            HostFault::CutTo(other) => world.shared_network.cut(host, other, true),
            HostFault::Uncallable(other) => {
                make_uncallable(world, host, other, if draw::once_in(2) { 1 } else { usize::MAX });
            }
            HostFault::SlowDisk => world.hosts[host].condition.disk_ms.store(draw::within(10..200), Ordering::Relaxed),
            HostFault::FullDisk => world.hosts[host].disk.set_room(Some(LITTLE_ROOM)),
            HostFault::Clock => {
                let skew = draw::below(2 * SKEW_MS) as i64 - SKEW_MS as i64;
                world.hosts[host].condition.skew_ms.store(skew, Ordering::Relaxed);
            }
            HostFault::SlowNetwork => world.shared_network.set_jitter(draw::within(20..150)),
            HostFault::Stop => world.hosts[host].stop(),
            HostFault::Ahead(other) => {
                world.hosts[host].condition.skew_ms.fetch_add(draw::within(AHEAD_MS) as i64, Ordering::Relaxed);
                world.shared_network.cut(host, other, true);
            }
            HostFault::Flicker => {}
            HostFault::Quiet => traffic.set_quiet(true),
            HostFault::Snapshot => snapshot(world, host),
            HostFault::Replace => {
                world.hosts[host].crash(Crash::Kill);
                world.hosts[host].lose_disk();
                self.member_changes.replace(world, host);
            }
            HostFault::Readmit => self.member_changes.readmit(world, host),
            HostFault::Shrink => self.member_changes.shrink(world, host),
            HostFault::Transfer => changes::transfer(world, (host + 1) % world.hosts.len(), host),
            HostFault::Divide => changes::divide(world, host, if draw::once_in(2) { PLAIN } else { SPREAD }),
        }
        match fault {
            HostFault::Snapshot | HostFault::Readmit | HostFault::Shrink | HostFault::Transfer | HostFault::Divide => 0,
            HostFault::Quiet => draw::within(1_000..8_000),
            _ if draw::once_in(3) => draw::within(1_500..6_000),
            _ => draw::within(1..1_200),
        }
    }

    fn undo(&self, world: &mut World, traffic: &Traffic, undoing: &Undoing) {
        let host = undoing.host;
        world.trace.note(&format!("{}: no more {:?}", world.hosts[host].name, undoing.fault));
        match undoing.fault {
            HostFault::Stop => {
                world.hosts[host].crash(Crash::Kill);
                world.hosts[host].restart();
            }
            HostFault::Kill | HostFault::PowerLoss | HostFault::Blackout | HostFault::Replace => {
                world.hosts.iter_mut().filter(|host| !host.is_running()).for_each(|host| host.restart());
            }
            HostFault::Freeze => world.hosts[host].is_frozen = false,
            HostFault::Isolate => isolate(world, host, false),
            HostFault::CutTo(other) | HostFault::Ahead(other) => world.shared_network.cut(host, other, false),
            HostFault::Uncallable(_) => make_callable(world, host),
            HostFault::SlowDisk => world.calm_disk(host),
            HostFault::FullDisk => world.hosts[host].disk.set_room(None),
            // The clock may stay off, or be corrected.
            HostFault::Clock if draw::once_in(2) => world.hosts[host].condition.skew_ms.store(0, Ordering::Relaxed),
            HostFault::SlowNetwork => world.calm_network(),
            HostFault::Quiet => traffic.set_quiet(false),
            HostFault::Clock
            | HostFault::Snapshot
            | HostFault::Flicker
            | HostFault::Readmit
            | HostFault::Shrink
            | HostFault::Transfer
            | HostFault::Divide => {}
        }
    }
}

fn drawn(host: usize, hosts: usize) -> HostFault {
    let other = (host + 1 + draw::below(hosts as u64 - 1) as usize) % hosts;
    match draw::below(38) {
        0..3 => HostFault::Kill,
        3..6 => HostFault::PowerLoss,
        6 => HostFault::Blackout,
        7..10 => HostFault::Freeze,
        10..13 => HostFault::Isolate,
        13..16 => HostFault::CutTo(other),
        16 => HostFault::SlowDisk,
        17 => HostFault::FullDisk,
        18..20 => HostFault::Clock,
        20 => HostFault::SlowNetwork,
        21..24 => HostFault::Stop,
        24 => HostFault::Quiet,
        25 => HostFault::Blackout,
        26..28 => HostFault::Flicker,
        28..30 => HostFault::Ahead(other),
        30 => HostFault::Shrink,
        32 => HostFault::Replace,
        33 => HostFault::Readmit,
        34 => HostFault::Transfer,
        35 => HostFault::Divide,
        36..38 => HostFault::Uncallable(other),
        _ => HostFault::Snapshot,
    }
}

fn isolate(world: &World, host: usize, is_cut: bool) {
    for other in (0..world.hosts.len()).filter(|other| *other != host) {
        world.shared_network.cut(host, other, is_cut);
        world.shared_network.cut(other, host, is_cut);
    }
}

/// Breaks the connections of a host that others made, and all with `without`, and lets none be made. Of those that it
/// made to each other host, the first `remaining` remain.
pub(super) fn make_uncallable(world: &World, host: usize, without: usize, remaining: usize) {
    for other in (0..world.hosts.len()).filter(|other| *other != host) {
        world.shared_network.close(host, other, true);
        world.shared_network.break_connections(other, host, 0);
        world.shared_network.break_connections(host, other, if other == without { 0 } else { remaining });
    }
}

/// Lets connections with a host be made again.
pub(super) fn make_callable(world: &World, host: usize) {
    for other in (0..world.hosts.len()).filter(|other| *other != host) {
        world.shared_network.close(host, other, false);
    }
}

fn snapshot(world: &World, host: usize) {
    let client = world.hosts[host].client.clone();
    world.spawn(async move {
        let _ = client.ask(|store| async move { drop(store.write_snapshots().await) }).await;
    });
}
