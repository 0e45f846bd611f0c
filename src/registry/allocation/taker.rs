//! What one write of a service takes.

use std::net::IpAddr;
use std::sync::Arc;

use super::addresses::Ranges;
use super::ports::Reservation;
use crate::kinds::service_allocation::{Allocations, Refusal};
use crate::registry::{Registry, Served};
use crate::status::{ApiError, ApiResult};

/// Finds free addresses and ports, and remembers which it found. Ports are reserved; addresses are yet to be claimed.
#[derive(Debug)]
pub(super) struct Taker<'a> {
    registry: &'a Registry,
    served: Arc<Served>,
    ranges: Ranges,
    addresses: Vec<IpAddr>,
    ports: Vec<Reservation>,
    dry_run: bool,
}

impl<'a> Taker<'a> {
    pub fn new(registry: &'a Registry, dry_run: bool) -> ApiResult<Self> {
        let services = registry.resources.of_resource("", "services");
        let services = services.ok_or_else(|| ApiError::internal("services are not served"))?;
        registry.node_ports.follow(&registry.table(&services))?;
        let (served, ranges) = (registry.ip_addresses()?, registry.service_ranges()?);
        Ok(Self { registry, served, ranges, addresses: Vec::new(), ports: Vec::new(), dry_run })
    }

    /// What was found.
    pub fn taken(self) -> (Vec<IpAddr>, Vec<Reservation>) {
        (self.addresses, self.ports)
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
            Some(address) if !self.ranges.holds(address) => return Err(Refusal::AddressOutside),
            // A dry run takes nothing, so it does not look who has what either.
            Some(address) if !self.dry_run && self.is_taken(address) => return Err(Refusal::AddressTaken),
            Some(address) => address,
            None => {
                // An address more than there are taken ones: one of so many is free.
                let probes = self.registry.table(&self.served).len() + 1 + self.addresses.len() as u64;
                self.ranges.any(family, probes, |address| !self.is_taken(address)).ok_or(Refusal::Full)?
            }
        };
        self.addresses.push(address);
        Ok(address)
    }

    fn take_port(&mut self, wanted: Option<u16>) -> Result<u16, Refusal> {
        let reservation = self.registry.node_ports.reserve(wanted)?;
        let port = reservation.port();
        self.ports.push(reservation);
        Ok(port)
    }
}
