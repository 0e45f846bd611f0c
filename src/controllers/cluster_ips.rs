//! Repairs cluster IPs: releases claims that no service uses, and claims addresses that services use without a claim.
//!
//! A new service claims its address before it is stored, and a deleted one releases it afterwards: a server that stops
//! in between leaves the claim behind. Therefore each claim and each changed service is checked once more after some
//! time, when the request that made it must have ended.

use std::rc::Rc;

use flotilla_cluster::{Interest, Object, Revision};

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::follow::follow;
use crate::limits::ADDRESS_SETTLE_TIME;
use crate::metrics::queues::QueueMetrics;
use crate::registry::{Registry, claimant, held_addresses};
use crate::rules::addresses;
use crate::status::ApiResult;

/// An item of the queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ClusterIpItem {
    /// The claim of an address: its name and revision. A later claim of the same name is another item.
    Claim(String, Revision),
    /// A service: namespace and name.
    Service(String, String),
}

/// Checks every claim and every service some time after it was created, changed or deleted.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let registry = &agent.registry;
    let served = agent.resource("networking.k8s.io", "ipaddresses")?;
    let table = registry.tables.table(&served);
    let services = registry.tables.table(&*agent.resource("", "services")?);
    let queue = Queue::new(measured);
    let look_at_claim = |claim: &Object| {
        // The delay also lets a request that deletes the service of the claim end first.
        queue.put_off(ClusterIpItem::Claim(claim.key().name().to_owned(), claim.revision()), ADDRESS_SETTLE_TIME);
    };
    let look_at_service =
        |namespace, name| queue.add_after(ClusterIpItem::Service(namespace, name), ADDRESS_SETTLE_TIME);
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(claim) = seen.live() {
                look_at_claim(claim);
            } else if let Some((namespace, name)) = seen.deleted().and_then(|claim| claimant(claim).ok().flatten()) {
                look_at_service(namespace, name);
            }
        }),
        follow(&services, Interest::default(), |seen| {
            if let Some(service) = seen.live() {
                let key = service.key();
                look_at_service(key.namespace().unwrap_or("").to_owned(), key.name().to_owned());
            }
            for address in seen.deleted().and_then(|service| held_addresses(service).ok()).unwrap_or_default() {
                let claim = registry.tables.current(&served, "", &addresses::canonical(address));
                claim.iter().for_each(|claim| look_at_claim(claim));
            }
        }),
        // One worker suffices: hardly any item needs a write.
        queue.work(1, |item: ClusterIpItem| async {
            tokio::task::yield_now().await; // all existing items are due at once at the start
            attempt(registry, item).await
        }),
    );
    Ok(())
}

async fn attempt(registry: &Registry, item: ClusterIpItem) -> ApiResult<Requeue> {
    match item {
        ClusterIpItem::Claim(address, revision) => registry.free_if_orphaned(&address, revision).await?,
        ClusterIpItem::Service(namespace, name) => registry.claim_unclaimed(&namespace, &name).await?,
    }
    Ok(Requeue::Never)
}
