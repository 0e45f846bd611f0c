//! Mends what writes that were cut off left behind: addresses of no service, services without their address.

use std::net::IpAddr;
use std::sync::Arc;

use flotilla_cluster::{Key, Object, Scope, Selection, Table};
use flotilla_proto::value::Value;

use super::Owner;
use super::addresses::{ALLOCATOR, MANAGED_BY};
use crate::kinds::{addresses, service_allocation};
use crate::registry::{Registry, Served, stored_value};
use crate::status::{ApiError, ApiResult};

/// Objects that are read at a time.
const CHUNK: usize = 512;

impl Registry {
    /// Frees addresses that no service has, and claims those that services have without having claimed them. Meant
    /// for the time before requests are served: a service that is being created has its address before it is stored.
    ///
    /// # Errors
    /// When objects cannot be read or written.
    pub async fn repair_addresses(&self) -> ApiResult<()> {
        let services = self.resources.of_resource("", "services").ok_or_else(|| ApiError::internal("no services"))?;
        let claims = self.ip_addresses()?;
        self.free_orphans(&claims, &services).await?;
        let mut after = None;
        let table = self.table(&services);
        loop {
            let mut objects = Vec::new();
            let end = chunk(&table, &mut after, &mut objects)?;
            for object in &objects {
                self.claim_missing(&claims, object).await?;
            }
            if end {
                return Ok(());
            }
        }
    }

    async fn free_orphans(&self, claims: &Arc<Served>, services: &Served) -> ApiResult<()> {
        let table = self.table(claims);
        let mut after = None;
        loop {
            let mut objects = Vec::new();
            let end = chunk(&table, &mut after, &mut objects)?;
            for object in &objects {
                let claim = stored_value(object)?;
                let parent = |field: &str| claim.str_at(&["spec", "parentRef", field]);
                let ours = claim.str_at(&["metadata", "labels", MANAGED_BY]) == ALLOCATOR;
                let Some(address) = addresses::parse_sloppy(object.key().name()) else { continue };
                if !ours
                    || parent("resource") != "services"
                    || self.has(services, parent("namespace"), parent("name"), address)?
                {
                    continue;
                }
                let owner = Owner { namespace: parent("namespace"), name: parent("name") };
                self.free_addresses(owner, &[address]).await;
            }
            if end {
                return Ok(());
            }
        }
    }

    /// Whether a service exists and has an address.
    fn has(&self, services: &Served, namespace: &str, name: &str, address: IpAddr) -> ApiResult<bool> {
        let Some(service) = self.current(services, namespace, name) else { return Ok(false) };
        Ok(service_allocation::held(&stored_value(&service)?).addresses.contains(&address))
    }

    async fn claim_missing(&self, claims: &Served, service: &Object) -> ApiResult<()> {
        let owner = Owner { namespace: service.key().namespace().unwrap_or(""), name: service.key().name() };
        let value: Value = stored_value(service)?;
        for address in service_allocation::held(&value).addresses {
            if self.address_object(claims, address).is_none() {
                self.claim_addresses(owner, &[address]).await?;
            }
        }
        Ok(())
    }
}

/// Reads on in a table as it is now; whether its end is reached.
fn chunk(table: &Table, after: &mut Option<Key>, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
    let selection = Selection { scope: Scope::All, ..Selection::default() };
    let mut cursor = table.snapshot().cursor(selection, after.clone());
    let mut more = true;
    while more && out.is_empty() {
        more = cursor
            .read(CHUNK, out)
            .map_err(|error| ApiError::internal(format!("cannot read {}: {error:?}", table.id().as_str())))?;
    }
    *after = out.last().map(|object| object.key().clone());
    Ok(!more)
}
