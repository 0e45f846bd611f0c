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
    fault: Fault,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
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
        if self.undoing.iter().any(|undoing| undoing.fault == Fault::Flicker) && draw::once_in(FLICKER_MS) {
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
            if matches!(fault, Fault::Replace | Fault::Readmit) && self.member_changes.is_going_on() {
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
    fn inject(&self, world: &mut World, traffic: &Traffic, host: usize, fault: Fault) -> u64 {
        let names = world.hosts[host].name.clone();
        world.trace.note(&format!("{names}: {fault:?}"));
        match fault {
            Fault::Kill => world.hosts[host].crash(Crash::Kill),
            Fault::PowerLoss => world.hosts[host].crash(Crash::PowerLoss),
            Fault::Blackout => world.hosts.iter_mut().for_each(|host| host.crash(Crash::PowerLoss)),
            Fault::Freeze => world.hosts[host].is_frozen = true,
            Fault::Isolate => isolate(world, host, true),
            Fault::CutTo(other) => world.shared_network.cut(host, other, true),
            Fault::SlowDisk => world.hosts[host].condition.disk_ms.store(draw::within(10..200), Ordering::Relaxed),
            Fault::FullDisk => world.hosts[host].disk.set_room(Some(LITTLE_ROOM)),
            Fault::Clock => {
                let skew = draw::below(2 * SKEW_MS) as i64 - SKEW_MS as i64;
                world.hosts[host].condition.skew_ms.store(skew, Ordering::Relaxed);
            }
            Fault::SlowNetwork => world.shared_network.set_jitter(draw::within(20..150)),
            Fault::Stop => world.hosts[host].stop(),
            Fault::Ahead(other) => {
                world.hosts[host].condition.skew_ms.fetch_add(draw::within(AHEAD_MS) as i64, Ordering::Relaxed);
                world.shared_network.cut(host, other, true);
            }
            Fault::Flicker => {}
            Fault::Quiet => traffic.set_quiet(true),
            Fault::Snapshot => snapshot(world, host),
            Fault::Replace => {
                world.hosts[host].crash(Crash::Kill);
                world.hosts[host].lose_disk();
                self.member_changes.replace(world, host);
            }
            Fault::Readmit => self.member_changes.readmit(world, host),
            Fault::Transfer => changes::transfer(world, (host + 1) % world.hosts.len(), host),
            Fault::Divide => changes::divide(world, host, if draw::once_in(2) { PLAIN } else { SPREAD }),
        }
        match fault {
            Fault::Snapshot | Fault::Readmit | Fault::Transfer | Fault::Divide => 0,
            Fault::Quiet => draw::within(1_000..8_000),
            _ if draw::once_in(3) => draw::within(1_500..6_000),
            _ => draw::within(1..1_200),
        }
    }

    fn undo(&self, world: &mut World, traffic: &Traffic, undoing: &Undoing) {
        let host = undoing.host;
        world.trace.note(&format!("{}: no more {:?}", world.hosts[host].name, undoing.fault));
        match undoing.fault {
            Fault::Stop => {
                world.hosts[host].crash(Crash::Kill);
                world.hosts[host].restart();
            }
            Fault::Kill | Fault::PowerLoss | Fault::Blackout | Fault::Replace => {
                world.hosts.iter_mut().filter(|host| !host.is_running()).for_each(|host| host.restart());
            }
            Fault::Freeze => world.hosts[host].is_frozen = false,
            Fault::Isolate => isolate(world, host, false),
            Fault::CutTo(other) | Fault::Ahead(other) => world.shared_network.cut(host, other, false),
            Fault::SlowDisk => world.calm_disk(host),
            Fault::FullDisk => world.hosts[host].disk.set_room(None),
            // The clock may stay off, or be corrected.
            Fault::Clock if draw::once_in(2) => world.hosts[host].condition.skew_ms.store(0, Ordering::Relaxed),
            Fault::SlowNetwork => world.calm_network(),
            Fault::Quiet => traffic.set_quiet(false),
            Fault::Clock | Fault::Snapshot | Fault::Flicker | Fault::Readmit | Fault::Transfer | Fault::Divide => {}
        }
    }
}

fn drawn(host: usize, hosts: usize) -> Fault {
    let other = (host + 1 + draw::below(hosts as u64 - 1) as usize) % hosts;
    match draw::below(36) {
        0..3 => Fault::Kill,
        3..6 => Fault::PowerLoss,
        6 => Fault::Blackout,
        7..10 => Fault::Freeze,
        10..13 => Fault::Isolate,
        13..16 => Fault::CutTo(other),
        16 => Fault::SlowDisk,
        17 => Fault::FullDisk,
        18..20 => Fault::Clock,
        20 => Fault::SlowNetwork,
        21..24 => Fault::Stop,
        24 => Fault::Quiet,
        25 => Fault::Blackout,
        26..28 => Fault::Flicker,
        28..30 => Fault::Ahead(other),
        32 => Fault::Replace,
        33 => Fault::Readmit,
        34 => Fault::Transfer,
        35 => Fault::Divide,
        _ => Fault::Snapshot,
    }
}

fn isolate(world: &World, host: usize, is_cut: bool) {
    for other in (0..world.hosts.len()).filter(|other| *other != host) {
        world.shared_network.cut(host, other, is_cut);
        world.shared_network.cut(other, host, is_cut);
    }
}

fn snapshot(world: &World, host: usize) {
    let client = world.hosts[host].client.clone();
    world.spawn(async move {
        let _ = client.ask(|store| async move { drop(store.write_snapshots().await) }).await;
    });
}
