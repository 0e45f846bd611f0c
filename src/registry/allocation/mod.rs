//! Cluster IPs and node ports of services: taken before a service is written, given back when it does not need them.
//!
//! Nothing here is a second truth. A cluster IP is taken by creating its `IPAddress`, which the store lets only one
//! writer do; a node port is taken while some stored service has it ([`NodePorts`] follows the table of services).

mod addresses;
mod ports;
mod repair;
mod taker;

use std::net::IpAddr;

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

pub use ports::NodePorts;
pub use repair::{claimant, held as held_addresses};

use self::ports::Reservation;
use self::taker::Taker;
use super::{Registry, Target, WriteOptions, stored_value};
use crate::kinds::service_allocation::{self, Held};
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// What a write took outside its own table, and what it gives back once it is stored.
#[derive(Debug, Default)]
pub(super) struct Allocation {
    /// Addresses that were claimed for this write.
    claimed: Vec<IpAddr>,
    /// Addresses that the object does not have any more after it.
    released: Vec<IpAddr>,
    /// Ports that nobody else may take until the write has ended.
    #[expect(dead_code, reason = "held, and given back when this is dropped")]
    ports: Vec<Reservation>,
}

/// Whom an address belongs to.
#[derive(Debug, Clone, Copy)]
struct Owner<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl Registry {
    /// Reserves what a new object needs of shared ranges, and writes it into the object.
    pub(super) async fn allocate_create(
        &self,
        target: Target<'_>,
        object: &mut Value,
        options: &WriteOptions,
    ) -> ApiResult<Allocation> {
        if !is_service(target) {
            return Ok(Allocation::default());
        }
        let name = object.str_at(&["metadata", "name"]).to_owned();
        let owner = Owner { namespace: target.namespace, name: &name };
        self.allocate(owner, object, options, |object, taker| {
            service_allocation::allocate_create(object, taker).map(|()| Held::default())
        })
        .await
    }

    /// Reserves what a changed object needs of shared ranges besides what it has.
    pub(super) async fn allocate_update(
        &self,
        target: Target<'_>,
        object: &mut Value,
        old: &Value,
        options: &WriteOptions,
    ) -> ApiResult<Allocation> {
        if !is_service(target) || !target.subresource.is_empty() {
            return Ok(Allocation::default());
        }
        let owner = Owner { namespace: target.namespace, name: target.name };
        self.allocate(owner, object, options, |object, taker| service_allocation::allocate_update(object, old, taker))
            .await
    }

    async fn allocate(
        &self,
        owner: Owner<'_>,
        object: &mut Value,
        options: &WriteOptions,
        decide: impl Fn(&mut Value, &mut Taker<'_>) -> ApiResult<Held> + Send,
    ) -> ApiResult<Allocation> {
        let before = object.clone();
        for _ in 0..limits::ALLOCATION_ATTEMPTS {
            let mut taker = Taker::new(self, options.dry_run)?;
            let released = decide(object, &mut taker)?;
            let (wanted, ports) = taker.taken();
            if options.dry_run {
                return Ok(Allocation { ports, ..Allocation::default() });
            }
            match self.claim_addresses(owner, &wanted).await {
                Ok(true) => return Ok(Allocation { claimed: wanted, released: released.addresses, ports }),
                Ok(false) => *object = before.clone(),
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::internal("failed to allocate a serviceIP: others were faster each time"))
    }

    /// The write was stored: what it gave up is free.
    pub(super) async fn settle_allocation(&self, target: Target<'_>, allocation: Allocation) {
        if allocation.released.is_empty() {
            return;
        }
        let owner = Owner { namespace: target.namespace, name: target.name };
        self.free_addresses(owner, &allocation.released).await;
    }

    /// The write failed: what it took is free.
    pub(super) async fn release(&self, target: Target<'_>, name: &str, allocation: Allocation) {
        if !allocation.claimed.is_empty() {
            self.free_addresses(Owner { namespace: target.namespace, name }, &allocation.claimed).await;
        }
    }

    /// Gives back what a deleted object held.
    pub(super) async fn after_delete(&self, target: Target<'_>, object: &Object) {
        if !is_service(target) {
            return;
        }
        match stored_value(object) {
            Ok(service) => {
                let owner = Owner { namespace: target.namespace, name: target.name };
                self.free_addresses(owner, &service_allocation::held(&service).addresses).await;
            }
            Err(error) => tracing::error!(%error, "a deleted service keeps its addresses"),
        }
    }
}

pub(super) fn is_service(target: Target<'_>) -> bool {
    target.served.group().is_empty() && target.served.resource.name == "services"
}
