//! Finds the addresses and ports that one write of a service takes.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::addresses::Ranges;
use super::claiming::Claimed;
use super::ports::Reservation;
use crate::kinds::core::service::allocation::{Allocations, Held, Refusal};
use crate::registry::Registry;
use crate::served::Served;
use crate::status::ApiResult;

/// Finds free addresses and ports, and remembers them. Ports are reserved here; the caller claims the addresses.
#[derive(Debug)]
pub(super) struct Taker<'a> {
    registry: &'a Registry,
    served: Arc<Served>,
    ranges: Ranges,
    addresses: Vec<IpAddr>,
    ports: Vec<Reservation>,
    /// Ports outside of the range, which only a dry run takes.
    outside_ports: HashSet<i64>,
    /// Ports that other writes have claimed.
    claimed: HashSet<u16>,
    /// Whether the write asked for one of the ports in `claimed`.
    met_claim: bool,
    dry_run: bool,
}

/// The addresses and ports that a write takes, and those that it frees once it is stored.
#[derive(Debug)]
pub(super) struct Taken {
    pub released: Held,
    /// Addresses that the caller must claim.
    pub addresses: Vec<IpAddr>,
    pub ports: Vec<Reservation>,
    /// The claim that keeps other members from taking the ports.
    pub claimed: Option<Claimed>,
}

impl<'a> Taker<'a> {
    pub fn new(registry: &'a Registry, dry_run: bool) -> ApiResult<Self> {
        registry.node_ports.follow(&registry.tables.table(&*registry.services()?))?;
        let (served, ranges) = (registry.ip_addresses()?, registry.service_ranges()?);
        let (addresses, ports) = (Vec::new(), Vec::new());
        let (outside_ports, claimed) = (HashSet::new(), HashSet::new());
        Ok(Self { registry, served, ranges, addresses, ports, outside_ports, claimed, met_claim: false, dry_run })
    }

    /// Excludes ports that other writes have claimed.
    pub fn beside(self, claimed: HashSet<u16>) -> Self {
        Self { claimed, ..self }
    }

    /// Returns the addresses and ports found here, together with those that the write frees.
    pub fn taken(self, released: Held) -> Taken {
        Taken { released, addresses: self.addresses, ports: self.ports, claimed: None }
    }

    /// Returns whether a port was refused only because another write has claimed it. That write may still fail.
    pub const fn has_met_claim(&self) -> bool {
        self.met_claim
    }

    fn outside(&self, address: IpAddr) -> Refusal {
        match self.ranges.blocks.first().filter(|_| self.dry_run) {
            Some(range) => Refusal::AddressNotInRange(address, range.canonical()),
            None => Refusal::AddressOutside,
        }
    }

    fn is_taken(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address) || self.registry.address_object(&self.served, address).is_some()
    }
}

impl Allocations for Taker<'_> {
    fn families(&self) -> &[&'static str] {
        &self.ranges.families
    }

    fn take_address(&mut self, family: &str, wanted: Option<IpAddr>) -> Result<IpAddr, Refusal> {
        let address = match wanted {
            Some(address) if !self.ranges.holds(address) => return Err(self.outside(address)),
            // A dry run takes nothing, so it does not check whether the address is free.
            Some(address) if !self.dry_run && self.is_taken(address) => return Err(Refusal::AddressTaken),
            Some(address) => address,
            None => {
                // One more probe than taken addresses: at least one of them must be free.
                let probes = self.registry.tables.table(&self.served).len() + 1 + self.addresses.len() as u64;
                self.ranges.any(family, probes, |address| !self.is_taken(address)).ok_or(Refusal::Full)?
            }
        };
        self.addresses.push(address);
        Ok(address)
    }

    fn take_port(&mut self, wanted: Option<i64>) -> Result<i64, Refusal> {
        // A number that is no port gets the answer for port 0, which is outside of every range.
        let as_port = |number: i64| u16::try_from(number).unwrap_or(0);
        let node_ports = &self.registry.node_ports;
        // A dry run does not look at the range.
        if let Some(port) = wanted.filter(|wanted| self.dry_run && !node_ports.holds(as_port(*wanted))) {
            return if self.outside_ports.insert(port) { Ok(port) } else { Err(Refusal::PortTaken) };
        }
        let reservation = node_ports.reserve(wanted.map(as_port), |port| self.claimed.contains(&port))?;
        let port = reservation.port();
        if wanted.is_some() && self.claimed.contains(&port) {
            self.met_claim = true;
            return Err(Refusal::PortTaken);
        }
        self.ports.push(reservation);
        Ok(port.into())
    }
}

impl Taken {
    pub fn port_numbers(&self) -> Vec<u16> {
        self.ports.iter().map(Reservation::port).collect()
    }
}
