//! Publishes the endpoints of the Service `kubernetes`: the addresses at which clients inside the cluster reach its
//! servers.
//!
//! Members exchange their client addresses when they connect; the leader publishes those of the members that are
//! connected. A member that is away briefly, as during a restart, stays published.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use flotilla_cluster::{Interest, Object};
use tokio::time::Instant;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::bootstrap;
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// Publishes the servers, now and whenever one comes or goes, and restores endpoints that were changed or deleted.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    if !agent.settings.publishes {
        std::future::pending::<()>().await; // --endpoint-reconciler-type=none: the endpoints are left to others
    }
    let queue = Queue::new(measured);
    let endpoints = agent.resource("", "endpoints")?;
    let slices = agent.resource("discovery.k8s.io", "endpointslices")?;
    let target = Target::object(&endpoints, NAMESPACE, NAME);
    let published = agent.get(target)?.map(|endpoints| bootstrap::published(&endpoints)).unwrap_or_default();
    let servers = RefCell::new(Servers::new(published, Instant::now()));
    let of_name = || Interest { name: Some(NAME.into()), ..Interest::default() };
    let look = |object: Option<&Object>| {
        if object.is_some_and(|object| object.key().namespace() == Some(NAMESPACE)) {
            queue.add(());
        }
    };
    let tables = [&endpoints, &slices].map(|served| agent.registry.tables.table(served));
    tokio::join!(
        follow(&tables[0], of_name(), |seen| look(seen.live().or(seen.deleted()).map(|object| &**object))),
        follow(&tables[1], of_name(), |seen| look(seen.live().or(seen.deleted()).map(|object| &**object))),
        async {
            loop {
                let changed = agent.registry.tables.store.members_changed();
                queue.add(());
                changed.await;
            }
        },
        queue.work(1, |()| publish(&agent, &servers)),
    );
    Ok(())
}

async fn publish(agent: &Agent, servers: &RefCell<Servers>) -> ApiResult<Requeue> {
    let (own, now) = (agent.settings.advertised, Instant::now());
    let others = agent.registry.tables.store.servers();
    let members = others.iter().filter(|(_, votes)| *votes).filter_map(|(address, _)| address.parse().ok());
    let (addresses, next) = servers.borrow_mut().look(members.chain([own.ip()]), now);
    // A connected server that is not a member may become one.
    let next =
        if others.iter().all(|(_, votes)| *votes) { next } else { Some(now + limits::SERVER_ADMISSION_INTERVAL) };
    let addresses: Vec<IpAddr> =
        addresses.into_iter().filter(|it| !it.is_loopback() && it.is_ipv4() == own.is_ipv4()).collect();
    // Addresses that only processes of the same host can reach are not published.
    if !addresses.is_empty() {
        for seed in bootstrap::endpoints(&addresses, own.port()) {
            bootstrap::ensure(&agent.registry, &seed).await.or_else(unless_outrun)?;
        }
    }
    Ok(next.map_or(Requeue::Never, |next| Requeue::After(next - now)))
}

/// Ignores a conflict: the change of the other writer puts the object into the queue again.
fn unless_outrun(error: ApiError) -> ApiResult<()> {
    if error.code == 409 { Ok(()) } else { Err(error) }
}

/// The time at which each server was last connected.
struct Servers(BTreeMap<IpAddr, Instant>);

impl Servers {
    /// Starts with the addresses that another member has published: those servers may still be connected.
    fn new(published: Vec<IpAddr>, now: Instant) -> Self {
        Self(published.into_iter().map(|address| (address, now)).collect())
    }

    /// Records the connected servers. Returns the servers to publish, and the time from which the next absent one is no
    /// longer published. The time is `None` if no server is absent.
    fn look(&mut self, there: impl Iterator<Item = IpAddr>, now: Instant) -> (Vec<IpAddr>, Option<Instant>) {
        self.0.extend(there.map(|address| (address, now)));
        self.0.retain(|_, last| now.duration_since(*last) < limits::SERVER_ABSENCE_MAX);
        let next = self.0.values().filter(|last| **last < now).min().map(|last| *last + limits::SERVER_ABSENCE_MAX);
        (self.0.keys().copied().collect(), next)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_absent_server_stays_published_for_a_while() {
        let [a, b, c] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut servers = Servers::new(vec![c], start);
        assert_eq!(servers.look([a, b].into_iter(), after(1)), (vec![a, b, c], Some(after(15))));
        assert_eq!(servers.look([a].into_iter(), after(10)), (vec![a, b, c], Some(after(15))));
        assert_eq!(servers.look([a].into_iter(), after(15)), (vec![a, b], Some(after(16))));
        assert_eq!(servers.look([a, c].into_iter(), after(16)), (vec![a, c], None));
    }
}
