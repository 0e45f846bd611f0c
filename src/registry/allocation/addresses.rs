//! Allocates cluster IPs from the ranges of `ServiceCIDR`s, and records their owners as `IPAddress`es (KEP-1880).

use std::net::IpAddr;
use std::sync::Arc;

use flotilla_cluster::{Expectation, Mutation, Object, Scope, Selection, Write};
use flotilla_proto::value;
use flotilla_proto::value::Value;
use rand::Rng;

use super::Owner;
use crate::limits;
use crate::registry::{Incoming, Registry};
use crate::request::{Caller, WriteOptions};
use crate::rules::addresses::{self, Block};
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};
use crate::unreadable::skip_unreadable;

/// Label that names the manager of an address.
pub(super) const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
/// Value of that label for the addresses of services.
pub(super) const ALLOCATOR: &str = "ipallocator.k8s.io";
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
/// The ServiceCIDR of the configured range. Its address families are those of the cluster.
const DEFAULT_RANGE: &str = "kubernetes";
/// The field manager of the server's own writes of addresses.
const MANAGER: &str = "kube-apiserver";

/// Ranges to allocate addresses from, and the address families of the cluster, the preferred one first.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub blocks: Vec<Block>,
    pub families: Vec<&'static str>,
}

impl Registry {
    fn networking(&self, name: &str) -> ApiResult<Arc<Served>> {
        let served = self.tables.resources.of_resource("networking.k8s.io", name);
        served.ok_or_else(|| ApiError::internal(format!("{name} are not served")))
    }

    pub(super) fn ip_addresses(&self) -> ApiResult<Arc<Served>> {
        self.networking("ipaddresses")
    }

    /// Returns the ranges of the `ServiceCIDR`s that are ready and are not being deleted.
    pub(super) fn service_ranges(&self) -> ApiResult<Ranges> {
        let served = self.networking("servicecidrs")?;
        let mut objects = Vec::new();
        let selection = Selection { scope: Scope::All, ..Selection::default() };
        for chunk in scan(&self.tables.table(&served).snapshot(), selection) {
            let chunk =
                chunk.map_err(|error| ApiError::internal(format!("cannot read the service ranges: {error:?}")))?;
            objects.extend(chunk);
            if objects.len() >= limits::ADDRESS_RANGES_MAX {
                break;
            }
        }
        objects.truncate(limits::ADDRESS_RANGES_MAX);
        let mut ranges = Ranges::default();
        for object in &objects {
            let Some(value) = skip_unreadable(stored_value(object)) else { continue };
            let blocks =
                value.list_at(&["spec", "cidrs"]).iter().filter_map(Value::as_str).filter_map(Block::parse_sloppy);
            if object.key().name() == DEFAULT_RANGE {
                let families =
                    blocks.clone().map(|block| if addresses::is_v4(block.address) { "IPv4" } else { "IPv6" });
                ranges.families = families.collect();
            }
            if is_ready(&value) {
                ranges.blocks.extend(blocks);
            }
        }
        if ranges.families.is_empty() {
            ranges.families.push("IPv4");
        }
        Ok(ranges)
    }

    /// Returns the `IPAddress` of an address. Returns `None` if the address is free.
    pub(super) fn address_object(&self, served: &Served, address: IpAddr) -> Option<Arc<Object>> {
        self.tables.current(served, "", &addresses::canonical(address))
    }

    /// Claims addresses for an owner. If another writer was faster, claims none of them and returns false.
    pub(super) async fn claim_addresses(&self, owner: Owner<'_>, wanted: &[IpAddr]) -> ApiResult<bool> {
        let served = self.ip_addresses()?;
        for (index, address) in wanted.iter().enumerate() {
            match Box::pin(self.claim_address(&served, owner, *address)).await {
                Ok(()) => {}
                Err(error) => {
                    self.free_addresses(owner, &wanted[..index]).await;
                    return if error.reason == "AlreadyExists" { Ok(false) } else { Err(error) };
                }
            }
        }
        Ok(true)
    }

    async fn claim_address(&self, served: &Served, owner: Owner<'_>, address: IpAddr) -> ApiResult<()> {
        let name = addresses::canonical(address);
        let family = if addresses::is_v4(address) { "IPv4" } else { "IPv6" };
        let object = value!({
            "kind": "IPAddress",
            "apiVersion": (served.api_version()),
            "metadata": {"name": (name.clone()), "labels": {(FAMILY): family, (MANAGED_BY): ALLOCATOR}},
            "spec": {"parentRef": {"resource": "services", "namespace": (owner.namespace), "name": (owner.name)}},
        });
        let target = Target::resource(served, "");
        let options = WriteOptions { manager: MANAGER.into(), ..WriteOptions::default() };
        let incoming = Incoming { value: object, ..Incoming::default() };
        self.create(target, incoming, &options, &mut Caller::server(MANAGER)).await.map(drop)
    }

    /// Frees those addresses that belong to the owner.
    pub(super) async fn free_addresses(&self, owner: Owner<'_>, addresses: &[IpAddr]) {
        let Ok(served) = self.ip_addresses() else { return };
        for address in addresses {
            let Some(object) = self.address_object(&served, *address) else { continue };
            if !stored_value(&object).is_ok_and(|value| belongs(&value, owner)) {
                continue;
            }
            let write = Write {
                table: served.table.clone(),
                key: object.key().clone(),
                expectation: Expectation::Revision(object.revision()),
                mutation: Mutation::Delete,
            };
            if let Err(error) = self.tables.write(write).await {
                tracing::warn!(%address, error = %error.message, "cannot free a cluster IP until the next repair");
            }
        }
    }
}

impl Ranges {
    /// Returns whether an address lies in one of the ranges.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.blocks.iter().any(|block| usable(*block).is_some_and(|(first, last)| (first..=last).contains(&address)))
    }

    /// Returns a free address of a family. Returns `None` if no address is free. Prefers the upper part of a range,
    /// since people choose from the lower part (KEP-3070). Tries `probes` successive addresses of each part. The caller
    /// passes a greater number than that of the taken addresses: no part with a free address is then passed over.
    pub fn any(&self, family: &str, probes: u64, is_free: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let of_family = |block: &&Block| (if addresses::is_v4(block.address) { "IPv4" } else { "IPv6" }) == family;
        for (first, last) in self.blocks.iter().filter(of_family).filter_map(|block| usable(*block)) {
            let (base, size) = (number(first), number(last) - number(first) + 1);
            let lower = lower_part(size);
            let free = |from: u128, to: u128| {
                if from >= to {
                    return None;
                }
                let start = rand::rng().random_range(from..to);
                let offsets = (start..to).chain(from..start).take(usize::try_from(probes).unwrap_or(usize::MAX));
                offsets.map(|offset| address(base + offset, first)).find(|address| is_free(*address))
            };
            if let Some(found) = free(lower, size).or_else(|| free(0, lower)) {
                return Some(found);
            }
        }
        None
    }
}

/// Returns the first and the last address of a block that services can have: all but its network and broadcast
/// addresses. Returns `None` if no address is left.
fn usable(block: Block) -> Option<(IpAddr, IpAddr)> {
    let (first, last) = (block.first(), block.last());
    let begin = address(number(first).checked_add(1)?, first);
    let end = if addresses::is_v4(last) { address(number(last).checked_sub(1)?, last) } else { last };
    (begin <= end).then_some((begin, end))
}

fn lower_part(size: u128) -> u128 {
    const MIN: u128 = 16;
    const MAX: u128 = 256;
    const STEP: u128 = 16;
    if size <= MIN { 0 } else { (size / STEP).clamp(MIN, MAX) }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Returns the address with this number, of the same family as `like`.
fn address(number: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    }
}

/// Returns whether an `IPAddress` belongs to this service.
pub(super) fn belongs(address: &Value, owner: Owner<'_>) -> bool {
    let parent = |field: &str| address.str_at(&["spec", "parentRef", field]);
    parent("group").is_empty()
        && parent("resource") == "services"
        && parent("namespace") == owner.namespace
        && parent("name") == owner.name
}

fn is_ready(range: &Value) -> bool {
    let stays = range.at(&["metadata", "deletionTimestamp"]).is_null();
    let mut conditions = range.list_at(&["status", "conditions"]).iter();
    // A range without conditions counts as ready: the cluster may have no controller that writes conditions.
    let ready = conditions.find(|condition| condition.str_at(&["type"]) == "Ready");
    stays && ready.is_none_or(|ready| ready.str_at(&["status"]) == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Ranges {
        Ranges { blocks: vec![Block::parse_sloppy(text).unwrap()], families: vec!["IPv4"] }
    }

    #[test]
    fn services_get_no_network_or_broadcast_address() {
        let ranges = ranges("192.0.2.0/30");
        assert!(!ranges.holds("192.0.2.0".parse().unwrap()));
        assert!(ranges.holds("192.0.2.1".parse().unwrap()));
        assert!(!ranges.holds("192.0.2.3".parse().unwrap()));
        assert!(!ranges.holds("192.0.3.1".parse().unwrap()));
    }

    #[test]
    fn addresses_come_from_the_upper_part_until_it_is_full() {
        let ranges = ranges("10.96.0.0/24");
        let upper: IpAddr = "10.96.0.17".parse().unwrap();
        for _ in 0..50 {
            assert!(ranges.any("IPv4", 300, |_| true).unwrap() >= upper);
        }
        let below = ranges.any("IPv4", 300, |address| address < upper).unwrap();
        assert!(below < upper);
        assert_eq!(ranges.any("IPv4", 300, |_| false), None);
        assert_eq!(ranges.any("IPv6", 300, |_| true), None);
    }
}
