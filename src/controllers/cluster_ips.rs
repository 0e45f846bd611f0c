//! Cluster IPs that no service has, and services that have one which nobody claimed.
//!
//! A service that is created has its address before it is stored, and one that is deleted gives it back afterwards: a
//! server that ends in between leaves one behind. So what was claimed or changed is looked at once more, when whoever
//! did it must be done.

use std::rc::Rc;

use flotilla_cluster::Interest;

use super::agent::Agent;
use super::queue::{Queue, Then};
use crate::follow::{Seen, follow};
use crate::kinds::addresses;
use crate::limits::ADDRESS_SETTLE_TIME;
use crate::registry::{claimant, held_addresses};
use crate::status::ApiResult;

/// What may need work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    /// An address that was claimed: the name of the claim.
    Claim(String),
    /// A service: namespace and name.
    Service(String, String),
}

/// Looks at every claim and every service a while after it was made, changed or deleted.
pub async fn run(agent: Rc<Agent>) -> ApiResult<()> {
    let registry = &agent.registry;
    let claims = registry.table(&*agent.resource("networking.k8s.io", "ipaddresses")?);
    let services = registry.table(&*agent.resource("", "services")?);
    let queue = Queue::new(&registry.metrics, "service_ip_repair");
    let look_later = |work| queue.add_after(work, ADDRESS_SETTLE_TIME);
    tokio::join!(
        follow(&claims, Interest::default(), |seen| {
            if let Some(claim) = seen.live() {
                look_later(Work::Claim(claim.key().name().to_owned()));
            } else if let Some((namespace, name)) = seen.deleted().and_then(|claim| claimant(claim).ok().flatten()) {
                look_later(Work::Service(namespace, name));
            }
        }),
        follow(&services, Interest::default(), |seen| look_at_service(&seen, look_later)),
        // Hardly one of them takes a write.
        queue.work(1, |work: Work| async move {
            match work {
                Work::Claim(address) => registry.free_if_orphaned(&address).await?,
                Work::Service(namespace, name) => registry.claim_unclaimed(&namespace, &name).await?,
            }
            Ok(Then::Rest)
        }),
    );
    Ok(())
}

fn look_at_service(seen: &Seen<'_>, look_later: impl Fn(Work)) {
    if let Some(service) = seen.live() {
        let key = service.key();
        look_later(Work::Service(key.namespace().unwrap_or("").to_owned(), key.name().to_owned()));
    }
    if let Some(service) = seen.deleted() {
        let had = held_addresses(service).unwrap_or_default();
        had.into_iter().for_each(|address| look_later(Work::Claim(addresses::canonical(address))));
    }
}
