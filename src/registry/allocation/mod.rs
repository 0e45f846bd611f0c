//! Cluster IPs and node ports of services: taken before a service is written, given back when it does not need them.
//!
//! Nothing here is a second truth. A cluster IP is taken by creating its `IPAddress`, which the store lets only one
//! writer do; a node port is taken while some stored service has it ([`NodePorts`] follows the table of services), and
//! claimed among all members while a service is written that is to have it ([`claiming`]).

mod addresses;
mod claiming;
mod claims;
mod ports;
mod repair;
mod taker;

use std::net::IpAddr;

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

pub use ports::NodePorts;
pub use repair::{claimant, held as held_addresses};

use self::claiming::Claimed;
use self::ports::Reservation;
use self::taker::{Taken, Taker};
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
    /// That no other member takes them either.
    ports_claimed: Option<Claimed>,
}

/// Decides what a write takes, writes it into the object, and tells what it gives back.
type Decide<'a> = dyn Fn(&mut Value, &mut Taker<'_>) -> ApiResult<Held> + Sync + 'a;

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
        self.allocate(owner, object, options, &|object, taker| {
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
        self.allocate(owner, object, options, &|object, taker| service_allocation::allocate_update(object, old, taker))
            .await
    }

    async fn allocate(
        &self,
        owner: Owner<'_>,
        object: &mut Value,
        options: &WriteOptions,
        decide: &Decide<'_>,
    ) -> ApiResult<Allocation> {
        let before = object.clone();
        for _ in 0..limits::ALLOCATION_ATTEMPTS {
            let taken = self.take(owner, object, options, decide).await?;
            let Taken { released: Held { addresses: released, .. }, addresses, ports, claimed: ports_claimed } = taken;
            if options.dry_run {
                return Ok(Allocation { ports, ..Allocation::default() });
            }
            match self.claim_addresses(owner, &addresses).await {
                Ok(true) => return Ok(Allocation { claimed: addresses, released, ports, ports_claimed }),
                outrun => {
                    claiming::end(ports_claimed);
                    outrun?;
                }
            }
            *object = before.clone();
        }
        Err(ApiError::internal("failed to allocate a serviceIP: others were faster each time"))
    }

    /// Finds what a write takes. Nobody else takes its ports meanwhile; its addresses are yet to be claimed.
    async fn take(
        &self,
        owner: Owner<'_>,
        object: &mut Value,
        options: &WriteOptions,
        decide: &Decide<'_>,
    ) -> ApiResult<Taken> {
        let before = object.clone();
        let mut taker = Taker::new(self, options.dry_run)?;
        let released = decide(object, &mut taker)?;
        let taken = taker.taken(released);
        if options.dry_run || taken.ports.is_empty() || !self.store.may_have_others() {
            return Ok(taken);
        }
        drop(taken); // what is free depends on what others have claimed, too
        *object = before;
        self.claim_ports(owner, object, decide).await
    }

    /// The write was stored: what it gave up is free.
    pub(super) async fn settle_allocation(&self, target: Target<'_>, allocation: Allocation) {
        claiming::end(allocation.ports_claimed); // not before: others must find the service then
        if allocation.released.is_empty() {
            return;
        }
        let owner = Owner { namespace: target.namespace, name: target.name };
        self.free_addresses(owner, &allocation.released).await;
    }

    /// The write failed: what it took is free. When it may have been made, or may yet be, all of it stays claimed:
    /// ports for a while, addresses until somebody finds that the service does not have them.
    pub(super) async fn release(
        &self,
        target: Target<'_>,
        name: &str,
        allocation: Allocation,
        error: Option<&ApiError>,
    ) {
        if error.is_some_and(ApiError::is_timeout) {
            return;
        }
        claiming::end(allocation.ports_claimed);
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

impl Allocation {
    /// Makes sure that what was taken is still regarded by others, right before the write.
    ///
    /// # Errors
    /// 503 when this process may have stood still for too long.
    pub(super) fn begin_writing(&self) -> ApiResult<()> {
        self.ports_claimed.as_ref().map_or(Ok(()), Claimed::begin_writing)
    }
}

pub(super) fn is_service(target: Target<'_>) -> bool {
    target.served.group().is_empty() && target.served.resource.name == "services"
}
