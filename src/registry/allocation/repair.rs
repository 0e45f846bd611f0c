//! Repairs the state that interrupted writes left behind: addresses without a service, and services whose address is
//! not claimed.

use std::net::IpAddr;
use std::sync::Arc;

use flotilla_cluster::{Key, Object, Revision, Scope, Selection, Table};
use flotilla_proto::value::Value;

use super::Owner;
use super::addresses::{ALLOCATOR, MANAGED_BY, belongs};
use crate::kinds::core::service::allocation as service_allocation;
use crate::limits;
use crate::registry::Registry;
use crate::rules::addresses;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_value;
use crate::unreadable::skip_unreadable;

impl Registry {
    /// Frees addresses that no service has, and claims unclaimed addresses of services. Call this only before requests
    /// are served: a request that creates a service claims its address before it stores the service.
    ///
    /// # Errors
    /// When objects cannot be read or written.
    pub async fn repair_addresses(&self) -> ApiResult<()> {
        let services = self.services()?;
        let claims = self.ip_addresses()?;
        self.free_orphans(&claims, &services).await?;
        let mut after = None;
        let table = self.tables.table(&services);
        loop {
            let mut objects = Vec::new();
            let end = chunk(&table, &mut after, &mut objects)?;
            for object in &objects {
                self.claim_of(&claims, object).await?;
            }
            if end {
                return Ok(());
            }
        }
    }

    async fn free_orphans(&self, claims: &Arc<Served>, services: &Served) -> ApiResult<()> {
        let table = self.tables.table(claims);
        let mut after = None;
        loop {
            let mut objects = Vec::new();
            let end = chunk(&table, &mut after, &mut objects)?;
            for object in &objects {
                self.free_orphan(services, object).await?;
            }
            if end {
                return Ok(());
            }
        }
    }

    async fn free_orphan(&self, services: &Served, claim: &Object) -> ApiResult<()> {
        let Some(value) = skip_unreadable(stored_value(claim)) else { return Ok(()) };
        if let Some((address, owner)) = claimed(claim, &value)
            && !self.has(services, owner, address)?
        {
            self.free_addresses(owner, &[address]).await;
        }
        Ok(())
    }

    /// Frees an address if its `IPAddress` still has this revision and names a service that does not have the address.
    /// The write that claimed it must have ended.
    ///
    /// # Errors
    /// When objects cannot be read, or this replica cannot catch up.
    pub async fn free_if_orphaned(&self, address: &str, revision: Revision) -> ApiResult<()> {
        let services = self.services()?;
        for is_current in [false, true] {
            let claim = self.tables.current(&*self.ip_addresses()?, "", address);
            let Some(claim) = claim.filter(|claim| claim.revision() == revision) else { return Ok(()) };
            let value = stored_value(&claim)?;
            match claimed(&claim, &value) {
                Some((address, owner)) if !self.has(&services, owner, address)? => {}
                _ => return Ok(()),
            }
            if is_current {
                return self.free_orphan(&services, &claim).await;
            }
            self.tables.catch_up().await?; // a service that this replica does not know yet may have it
        }
        Ok(())
    }

    /// Claims those addresses of a service that are not claimed for it. The write that changed the service must have
    /// ended.
    ///
    /// # Errors
    /// When objects cannot be read or written, or this replica cannot catch up.
    pub async fn claim_unclaimed(&self, namespace: &str, name: &str) -> ApiResult<()> {
        let (services, claims) = (self.services()?, self.ip_addresses()?);
        let Some(service) = self.tables.current(&services, namespace, name) else { return Ok(()) };
        let owner = Owner { namespace, name };
        let is_its_own =
            |address: &IpAddr| self.address_object(&claims, *address).is_some_and(|claim| is_of(&claim, owner));
        if held(&service)?.iter().all(is_its_own) {
            return Ok(());
        }
        self.tables.catch_up().await?;
        let Some(service) = self.tables.current(&services, namespace, name) else { return Ok(()) };
        self.claim_of(&claims, &service).await
    }

    pub(super) fn services(&self) -> ApiResult<Arc<Served>> {
        self.tables.resources.of_resource("", "services").ok_or_else(|| ApiError::internal("no services"))
    }

    /// Returns whether a service has an address. Returns true for a service that cannot be decoded, since it may have
    /// it.
    fn has(&self, services: &Served, owner: Owner<'_>, address: IpAddr) -> ApiResult<bool> {
        let Some(service) = self.tables.current(services, owner.namespace, owner.name) else { return Ok(false) };
        Ok(skip_unreadable(held(&service)).is_none_or(|addresses| addresses.contains(&address)))
    }

    async fn claim_of(&self, claims: &Served, service: &Object) -> ApiResult<()> {
        let owner = Owner { namespace: service.key().namespace().unwrap_or(""), name: service.key().name() };
        for address in skip_unreadable(held(service)).unwrap_or_default() {
            match self.address_object(claims, address) {
                None => drop(self.claim_addresses(owner, &[address]).await?),
                Some(claim) if is_of(&claim, owner) => {}
                Some(_) => {
                    let Owner { namespace, name } = owner;
                    tracing::warn!(namespace, name, %address, "the cluster IP of a service belongs to another service");
                }
            }
        }
        Ok(())
    }
}

/// Returns whether an address was claimed for this service.
fn is_of(claim: &Object, owner: Owner<'_>) -> bool {
    stored_value(claim).is_ok_and(|value| belongs(&value, owner))
}

/// Returns the addresses of a stored service.
///
/// # Errors
/// The service cannot be decoded.
pub fn held(service: &Object) -> ApiResult<Vec<IpAddr>> {
    Ok(service_allocation::held(&stored_value(service)?).addresses)
}

/// Returns the namespace and the name of the service for which this server claimed an `IPAddress`. Returns `None` if
/// another manager claimed it.
///
/// The claim cannot be decoded.
pub fn claimant(claim: &Object) -> ApiResult<Option<(String, String)>> {
    let value = stored_value(claim)?;
    Ok(claimed(claim, &value).map(|(_, owner)| (owner.namespace.to_owned(), owner.name.to_owned())))
}

/// Returns the address of an `IPAddress` and the service for which this server claimed it. Returns `None` if another
/// manager claimed it.
fn claimed<'a>(claim: &Object, value: &'a Value) -> Option<(IpAddr, Owner<'a>)> {
    let parent = |field: &str| value.str_at(&["spec", "parentRef", field]);
    let is_ours = value.str_at(&["metadata", "labels", MANAGED_BY]) == ALLOCATOR && parent("resource") == "services";
    let owner = Owner { namespace: parent("namespace"), name: parent("name") };
    addresses::parse_sloppy(claim.key().name()).filter(|_| is_ours).map(|address| (address, owner))
}

/// Reads the next objects of a table as it is now. Returns whether the end was reached.
fn chunk(table: &Table, after: &mut Option<Key>, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
    let selection = Selection { scope: Scope::All, ..Selection::default() };
    let mut cursor = table.snapshot().cursor(selection, after.clone());
    let mut more = true;
    while more && out.is_empty() {
        more = cursor
            .read(limits::REPAIR_CHUNK_OBJECTS, out)
            .map_err(|error| ApiError::internal(format!("cannot read {}: {error:?}", table.id().as_str())))?;
    }
    *after = out.last().map(|object| object.key().clone());
    Ok(!more)
}
