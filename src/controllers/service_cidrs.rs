//! Maintains ranges of service addresses (ServiceCIDR) other than the default one. A finalizer keeps a range as long as
//! it has addresses that are in no other range, and a condition says that the range can be used (KEP-1880).
//!
//! The default range belongs to the server (`crate::bootstrap`): it has no finalizer and is created again when it is
//! deleted.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Selection};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::metadata::{has_finalizer, release};
use super::queue::{Queue, Requeue};
use crate::follow::{Seen, follow};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::rules::addresses::{self, Block};
use crate::rules::protection::add_finalizer;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};

const GROUP: &str = "networking.k8s.io";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// The manager that applies the condition.
const MANAGER: &str = "service-cidr-controller";
const DEFAULT: &str = "kubernetes";
/// Label that names the manager of an address, and its value for the addresses of services.
const MANAGED_BY: [&str; 3] = ["metadata", "labels", "ipaddress.kubernetes.io/managed-by"];
const ALLOCATOR: &str = "ipallocator.k8s.io";

struct RangeController {
    agent: Rc<Agent>,
    ranges: Arc<Served>,
    claims: Arc<Served>,
    /// Ranges that are deleted and kept by their finalizer.
    held: RefCell<BTreeSet<String>>,
    queue: Queue<String>,
}

/// Checks every range, now and when it changes, and the kept ones when any range or address changes.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let (ranges, claims) = (agent.resource(GROUP, "servicecidrs")?, agent.resource(GROUP, "ipaddresses")?);
    let (held, queue) = (RefCell::default(), Queue::new(measured));
    let controller = RangeController { agent, ranges, claims, held, queue };
    let registry = &controller.agent.registry;
    let (ranges, claims) = (registry.tables.table(&controller.ranges), registry.tables.table(&controller.claims));
    tokio::join!(
        follow(&ranges, Interest::default(), |seen| {
            if let Some(range) = seen.live() {
                controller.queue.add_after(range.key().name().to_owned(), limits::SERVICE_CIDR_SETTLE);
            }
            controller.look_at_held(&seen);
        }),
        follow(&claims, Interest::default(), |seen| controller.look_at_held(&seen)),
        controller.queue.work(1, |name| controller.attempt(name)),
    );
    Ok(())
}

impl RangeController {
    fn look_at_held(&self, seen: &Seen<'_>) {
        if matches!(seen, Seen::Changed(_)) {
            self.held.borrow().iter().for_each(|name| self.queue.add_after(name.clone(), limits::SERVICE_CIDR_SETTLE));
        }
    }

    async fn attempt(&self, name: String) -> ApiResult<Requeue> {
        self.held.borrow_mut().remove(&name);
        let target = Target::object(&self.ranges, "", &name);
        let Some(range) = self.agent.get(target)? else { return Ok(Requeue::Never) };
        let done = match range.str_at(&["metadata", "deletionTimestamp"]) {
            "" if name == DEFAULT => Ok(Requeue::Never),
            "" => self.prepare(target, &range).await,
            deleted if has_finalizer(&range, FINALIZER) => self.finish(target, &range, deleted).await,
            _ => Ok(Requeue::Never),
        };
        match done {
            Err(ApiError { code: 404, .. }) => Ok(Requeue::Never),
            done => done,
        }
    }

    /// Gives a range that is not deleted its finalizer and condition.
    async fn prepare(&self, target: Target<'_>, range: &Value) -> ApiResult<Requeue> {
        if !has_finalizer(range, FINALIZER) {
            let uid = range.str_at(&["metadata", "uid"]);
            self.agent.edit(target, uid, |range| add_finalizer(range, FINALIZER)).await?;
        }
        self.tell(target, range, "True", "", "Kubernetes Service CIDR is ready").await?;
        Ok(Requeue::Never)
    }

    /// Removes the finalizer of a deleted range, unless the range has addresses that are in no other range.
    async fn finish(&self, target: Target<'_>, range: &Value, deleted: &str) -> ApiResult<Requeue> {
        self.held.borrow_mut().insert(target.name.to_owned());
        if self.is_needed(range)? {
            let why = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new \
                       ServiceCIDR";
            self.tell(target, range, "False", "Terminating", why).await?;
            return Ok(Requeue::Never);
        }
        let since = Timestamp::parse(deleted).map_or(i64::MAX, |deleted| now().seconds - deleted.seconds);
        let since = Duration::from_secs(u64::try_from(since).unwrap_or(0));
        if let Some(rest) = limits::SERVICE_CIDR_GRACE.checked_sub(since).filter(|rest| !rest.is_zero()) {
            return Ok(Requeue::After(rest));
        }
        let uid = range.str_at(&["metadata", "uid"]);
        self.agent.edit(target, uid, |range| release(range, FINALIZER)).await?;
        Ok(Requeue::Never)
    }

    /// Returns whether some address of a service is in this range alone.
    fn is_needed(&self, range: &Value) -> ApiResult<bool> {
        let name = range.str_at(&["metadata", "name"]);
        let others: Vec<Block> = self.all(&self.ranges, |other| match other.str_at(&["metadata", "name"]) == name {
            true => Vec::new(),
            false => blocks(other),
        })?;
        let own = blocks(range);
        let contains = |outer: &Block, inner: &Block| {
            outer.bits <= inner.bits && outer.contains(inner.first()) && outer.contains(inner.last())
        };
        if own.iter().all(|block| others.iter().any(|other| contains(other, block))) {
            return Ok(false);
        }
        let claimed = self.all(&self.claims, |claim| {
            let is_claimed = claim.str_at(&MANAGED_BY) == ALLOCATOR;
            let address = addresses::parse_sloppy(claim.str_at(&["metadata", "name"]));
            address.filter(|_| is_claimed).into_iter().collect()
        })?;
        let is_in = |blocks: &[Block], address| blocks.iter().any(|block| block.contains(address));
        Ok(claimed.into_iter().any(|address| is_in(&own, address) && !is_in(&others, address)))
    }

    /// Collects the results of `find` for all objects of a resource.
    fn all<T>(&self, served: &Served, find: impl Fn(&Value) -> Vec<T>) -> ApiResult<Vec<T>> {
        let mut all = Vec::new();
        for objects in scan(&self.agent.registry.tables.table(served).snapshot(), Selection::default()) {
            for object in objects.map_err(ApiError::internal)? {
                all.extend(find(&stored_value(&object)?));
            }
        }
        Ok(all)
    }

    /// Sets the condition `Ready`, unless it has that value already.
    async fn tell(&self, of: Target<'_>, range: &Value, status: &str, reason: &str, message: &str) -> ApiResult<()> {
        let wanted = [("status", status), ("reason", reason), ("message", message)];
        let mut conditions = range.list_at(&["status", "conditions"]).iter();
        let present = conditions.find(|condition| condition.str_at(&["type"]) == "Ready");
        if present.is_some_and(|present| wanted.iter().all(|(field, text)| present.str_at(&[field]) == *text)) {
            return Ok(());
        }
        let mut condition = value!({"type": "Ready", "lastTransitionTime": (now().to_string())});
        wanted.into_iter().for_each(|(field, text)| condition.set_at(&[field], text));
        let status = of.with_subresource("status");
        self.agent.apply(status, value!({"status": {"conditions": [condition]}}), MANAGER).await
    }
}

fn blocks(range: &Value) -> Vec<Block> {
    let texts = range.list_at(&["spec", "cidrs"]).iter().filter_map(Value::as_str);
    texts.filter_map(Block::parse_sloppy).collect()
}
