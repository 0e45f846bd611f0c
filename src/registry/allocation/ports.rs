//! Tracks which service has which node port, by following the table of services.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flotilla_cluster::{Object, Revision, Scope, Selection, Table};
use parking_lot::Mutex;
use rand::Rng;

use super::claiming::Claiming;
use crate::config::PortRange;
use crate::kinds::core::service::allocation::{self as service_allocation, Refusal};
use crate::limits;
use crate::scan::scan;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_value;
use crate::unreadable::skip_unreadable;

/// The range of node ports, and the ports in it that are taken. The index is derived from the table. It is therefore
/// correct after a restart and on every replica.
#[derive(Debug, Clone)]
pub struct NodePorts {
    range: PortRange,
    index: Arc<Mutex<PortIndex>>,
    /// Claims of ports by writes through other members.
    pub(super) claiming: Arc<Claiming>,
}

#[derive(Debug, Default)]
struct PortIndex {
    /// The revision of the table that `held` reflects. `None` until the table was first read.
    seen: Option<Revision>,
    /// The number of services that have each port.
    held: HashMap<u16, u32>,
    /// Ports that writes of this process have reserved.
    reserved: HashSet<u16>,
}

/// A port that a write reserved. Dropping it frees the port, unless a stored service has it by then.
#[derive(Debug)]
pub(super) struct Reservation {
    port: u16,
    index: Arc<Mutex<PortIndex>>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.index.lock().reserved.remove(&self.port);
    }
}

impl NodePorts {
    /// Creates an empty index of a range.
    pub fn new(range: PortRange) -> Self {
        Self { range, index: Arc::default(), claiming: Arc::default() }
    }

    /// Returns whether the range holds a port.
    pub(super) fn holds(&self, port: u16) -> bool {
        (self.range.first..=self.range.last).contains(&port)
    }

    /// Reserves the wanted port, or any free one for which `is_spared` is false.
    pub(super) fn reserve(&self, wanted: Option<u16>, is_spared: impl Fn(u16) -> bool) -> Result<Reservation, Refusal> {
        let mut index = self.index.lock();
        let PortRange { first, last } = self.range;
        let port = match wanted {
            Some(port) if !self.holds(port) => return Err(Refusal::PortOutside(first, last)),
            Some(port) if index.is_taken(port) => return Err(Refusal::PortTaken),
            Some(port) => port,
            None => self.any(|port| !index.is_taken(port) && !is_spared(port)).ok_or(Refusal::Full)?,
        };
        index.reserved.insert(port);
        Ok(Reservation { port, index: Arc::clone(&self.index) })
    }

    /// Returns a free port. Returns `None` if there is none. Prefers the upper part of the range, since people choose
    /// from the lower part (KEP-3070).
    fn any(&self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let PortRange { first, last } = self.range;
        let size = u32::from(last) - u32::from(first) + 1;
        let lower = lower_part(size);
        let free = |from: u32, to: u32| {
            if from >= to {
                return None;
            }
            let start = rand::rng().random_range(from..to);
            let ports =
                (start..to).chain(from..start).filter_map(|offset| u16::try_from(u32::from(first) + offset).ok());
            ports.into_iter().find(|port| is_free(*port))
        };
        free(lower, size).or_else(|| free(0, lower))
    }

    /// Updates the index to the current state of the table.
    pub(super) fn follow(&self, services: &Table) -> ApiResult<()> {
        let mut index = self.index.lock();
        while let Some(seen) = index.seen {
            let Ok(changes) = services.changes(seen, limits::PORT_CHUNK_CHANGES) else { break };
            let Some(last) = changes.last() else { return Ok(()) };
            for change in &changes {
                if let Some(previous) = change.previous() {
                    index.count(previous, false)?;
                }
                if !change.object().is_tombstone() {
                    index.count(change.object(), true)?;
                }
            }
            index.seen = Some(last.revision());
        }
        index.rebuild(services)
    }
}

/// Returns how many ports at the start of a range are left to users who choose one themselves.
fn lower_part(size: u32) -> u32 {
    const MIN: u32 = 16;
    const MAX: u32 = 128;
    const STEP: u32 = 32;
    if size <= MIN { 0 } else { (size / STEP).clamp(MIN, MAX) }
}

impl PortIndex {
    fn is_taken(&self, port: u16) -> bool {
        self.held.contains_key(&port) || self.reserved.contains(&port)
    }

    fn count(&mut self, service: &Object, add: bool) -> ApiResult<()> {
        let Some(service) = skip_unreadable(stored_value(service)) else { return Ok(()) };
        let ports: HashSet<u16> = service_allocation::held(&service).ports.into_iter().collect();
        for port in ports {
            let count = self.held.entry(port).or_default();
            *count = if add { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                self.held.remove(&port);
            }
        }
        Ok(())
    }

    /// Builds the index from the whole table.
    fn rebuild(&mut self, services: &Table) -> ApiResult<()> {
        self.held.clear();
        self.seen = None;
        let snapshot = services.snapshot();
        let selection = Selection { scope: Scope::All, ..Selection::default() };
        for objects in scan(&snapshot, selection) {
            let objects =
                objects.map_err(|error| ApiError::internal(format!("cannot read the services: {error:?}")))?;
            for object in objects {
                self.count(&object, true)?;
            }
        }
        self.seen = Some(snapshot.revision());
        Ok(())
    }
}

impl Reservation {
    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody(_: u16) -> bool {
        false
    }

    #[test]
    fn reservations_exclude_and_end() {
        let ports = NodePorts::new(PortRange { first: 30_000, last: 30_001 });
        let first = ports.reserve(Some(30_000), nobody).unwrap();
        assert_eq!(ports.reserve(Some(30_000), nobody).unwrap_err(), Refusal::PortTaken);
        assert_eq!(ports.reserve(Some(29_999), nobody).unwrap_err(), Refusal::PortOutside(30_000, 30_001));
        let second = ports.reserve(None, nobody).unwrap();
        assert_eq!(second.port(), 30_001);
        assert_eq!(ports.reserve(None, nobody).unwrap_err(), Refusal::Full);
        drop(first);
        assert_eq!(ports.reserve(None, nobody).unwrap().port(), 30_000);
    }

    #[test]
    fn a_spared_port_is_given_only_on_request() {
        let ports = NodePorts::new(PortRange { first: 30_000, last: 30_001 });
        let is_spared = |port| port == 30_000;
        drop(ports.reserve(Some(30_000), is_spared).unwrap());
        assert_eq!(ports.reserve(None, is_spared).unwrap().port(), 30_001);
        let _last = ports.reserve(Some(30_001), is_spared).unwrap();
        assert_eq!(ports.reserve(None, is_spared).unwrap_err(), Refusal::Full);
    }

    #[test]
    fn ports_come_from_the_upper_part_unless_one_is_asked_for() {
        let ports = NodePorts::new(PortRange::NODE_PORTS);
        for _ in 0..100 {
            assert!(ports.reserve(None, nobody).unwrap().port() >= 30_086);
        }
    }
}
