//! Allocates cluster IPs and node ports of services: takes them before a service is written, frees those that it no
//! longer needs.
//!
//! The allocation is derived from stored objects and has no state of its own. A write takes a cluster IP by creating
//! its `IPAddress`; the store lets only one writer create it. A node port is taken while a stored service has it
//! ([`NodePorts`] follows the table of services), and is claimed among all members while a service that needs it is
//! being written ([`claiming`]).

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
use crate::kinds::core::service::allocation::{self as service_allocation, Held};
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// The addresses and ports that a write took outside its own table, and those that it frees once it is stored.
#[derive(Debug, Default)]
pub(super) struct Allocation {
    /// Addresses that were claimed for this write.
    claimed: Vec<IpAddr>,
    /// Addresses that the object no longer has after the write.
    released: Vec<IpAddr>,
    /// Ports that no other write of this process may take until this one has ended.
    #[expect(dead_code, reason = "held, and given back when this is dropped")]
    ports: Vec<Reservation>,
    /// The claim that keeps other members from taking the ports.
    ports_claimed: Option<Claimed>,
}

/// Decides which addresses and ports a write takes, writes them into the object, and returns those that the write
/// frees.
type Decide<'a> = dyn Fn(&mut Value, &mut Taker<'_>) -> ApiResult<Held> + Sync + 'a;

/// The service that an address belongs to.
#[derive(Debug, Clone, Copy)]
struct Owner<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl Registry {
    /// Reserves the addresses and ports that a new object needs, and writes them into the object.
    pub(super) async fn allocate_create(
        &self,
        target: Target<'_>,
        object: &mut Value,
        options: &WriteOptions,
    ) -> ApiResult<Allocation> {
        if !target.served.strategy.allocates {
            return Ok(Allocation::default());
        }
        let name = object.str_at(&["metadata", "name"]).to_owned();
        let owner = Owner { namespace: target.namespace, name: &name };
        self.allocate(owner, object, options, &|object, taker| {
            service_allocation::allocate_create(object, taker).map(|()| Held::default())
        })
        .await
    }

    /// Reserves the addresses and ports that a changed object needs besides its present ones.
    pub(super) async fn allocate_update(
        &self,
        target: Target<'_>,
        object: &mut Value,
        old: &Value,
        options: &WriteOptions,
    ) -> ApiResult<Allocation> {
        if !target.served.strategy.allocates || !target.subresource.is_empty() {
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
                lost => {
                    claiming::end(ports_claimed);
                    lost?;
                }
            }
            *object = before.clone();
        }
        Err(ApiError::internal("failed to allocate a serviceIP: others were faster each time"))
    }

    /// Finds addresses and ports for a write. The ports are reserved against other writes; the addresses are not
    /// claimed yet.
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
        if options.dry_run || taken.ports.is_empty() || !self.tables.store.may_have_others() {
            return Ok(taken);
        }
        drop(taken); // decide again: other members' claims count, too
        *object = before;
        self.claim_ports(owner, object, decide).await
    }

    /// Frees the addresses and ports that a write gave up, after the write was stored.
    pub(super) async fn finish_allocation(&self, target: Target<'_>, allocation: Allocation) {
        claiming::end(allocation.ports_claimed); // only now, as others must find the stored service instead
        if allocation.released.is_empty() {
            return;
        }
        let owner = Owner { namespace: target.namespace, name: target.name };
        self.free_addresses(owner, &allocation.released).await;
    }

    /// Frees the addresses and ports that a failed write took. If the outcome of the write is unknown, everything stays
    /// claimed: ports for a while, addresses until a repair finds that the service does not have them.
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

    /// Frees the addresses of a deleted object.
    pub(super) async fn after_delete(&self, target: Target<'_>, object: &Object) {
        if !target.served.strategy.allocates {
            return;
        }
        match stored_value(object) {
            Ok(service) => {
                let owner = Owner { namespace: target.namespace, name: target.name };
                self.free_addresses(owner, &service_allocation::held(&service).addresses).await;
            }
            Err(error) => tracing::error!(%error, "cannot free the addresses of a deleted service"),
        }
    }
}

impl Allocation {
    /// Makes sure, right before the write, that other members still respect the claims.
    ///
    /// # Errors
    /// 503 when this process may have been paused for too long.
    pub(super) fn begin_writing(&self) -> ApiResult<()> {
        self.ports_claimed.as_ref().map_or(Ok(()), Claimed::begin_writing)
    }
}
