//! Counts the usage of quotas in each namespace ("Resource Quotas").
//!
//! Admission charges writes. This controller counts where admission cannot: quotas that were never counted, objects
//! that were removed, and objects whose usage fell. It follows only tables that some quota counts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Change, Interest, Object, Scope, Selection};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Map, Value};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use memchr::memmem;
use tokio::sync::Notify;

use super::agent::Agent;
use super::metadata::{is_deleting, metadata};
use super::queue::{Queue, Requeue};
use crate::follow::{Seen, follow};
use crate::kinds::admission::quota::{self, Tally, Usage};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};

/// Group and resource.
type Counted = (String, String);

/// A quota to count: namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum QuotaItem {
    /// Count it, unless it was counted meanwhile.
    First(String, String),
    /// Count it, even if it was counted before.
    Again(String, String),
}

struct QuotaController {
    agent: Rc<Agent>,
    quotas: Arc<Served>,
    /// The resources that each quota counts, by namespace.
    counted: RefCell<HashMap<String, BTreeMap<String, BTreeSet<Counted>>>>,
    /// Resources whose tables are followed.
    followed: RefCell<BTreeSet<Counted>>,
    /// Notified when the controller may need to follow more tables.
    wanted: Notify,
    queue: Queue<QuotaItem>,
}

/// Counts every quota once, and again whenever its count may have changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let quotas = agent.resource("", "resourcequotas")?;
    let table = agent.registry.tables.table(&quotas);
    let controller = QuotaController {
        agent,
        quotas,
        counted: RefCell::default(),
        followed: RefCell::default(),
        wanted: Notify::new(),
        queue: Queue::new(measured),
    };
    tokio::join!(
        follow(&table, Interest::default(), |seen| controller.see(&seen)),
        controller.follow_all(),
        controller.queue.work(limits::QUOTA_WORKERS, |item| controller.attempt(item)),
    );
    Ok(())
}

impl QuotaController {
    fn see(&self, seen: &Seen<'_>) {
        let Some(object) = seen.live().or(seen.deleted()) else { return };
        let (namespace, name) = (object.key().namespace().unwrap_or(""), object.key().name());
        let Some(quota) = seen.live().and_then(|object| stored_value(object).ok()) else {
            let mut counted = self.counted.borrow_mut();
            if let Some(of_namespace) = counted.get_mut(namespace) {
                of_namespace.remove(name);
                if of_namespace.is_empty() {
                    counted.remove(namespace);
                }
            }
            return;
        };
        let names = quota.map_at(&["spec", "hard"]).into_iter().flat_map(Map::keys);
        let counts = names.flat_map(quota::resources_of).collect();
        self.counted.borrow_mut().entry(namespace.to_owned()).or_default().insert(name.to_owned(), counts);
        self.wanted.notify_one();
        // Changes while no controller ran are unknown, so count again. A change of only the usage was made by admission
        // or here, and needs no count.
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        if matches!(seen, Seen::Present(_)) {
            self.queue.add_after(QuotaItem::Again(namespace, name), limits::QUOTA_SETTLE);
        } else if quota::is_uncounted(&quota) {
            self.queue.add_after(QuotaItem::First(namespace, name), limits::QUOTA_SETTLE);
        }
    }

    /// Follows the tables that quotas count, for ever.
    async fn follow_all(&self) {
        let mut followers = FuturesUnordered::new();
        let mut defined = self.agent.registry.tables.resources.changes();
        loop {
            followers.extend(self.adopt().into_iter().map(|(served, of)| self.follow_counted(served, of)));
            tokio::select! {
                () = self.wanted.notified() => {}
                changed = defined.changed() => if changed.is_err() { return },
                Some(()) = followers.next() => {} // no follower ends
            }
        }
    }

    /// Returns the resources that some quota counts and that are not followed yet.
    fn adopt(&self) -> Vec<(Arc<Served>, Counted)> {
        let counted = self.counted.borrow();
        let mut followed = self.followed.borrow_mut();
        let mut found = Vec::new();
        for of in counted.values().flat_map(BTreeMap::values).flatten() {
            if !followed.contains(of)
                && let Some(served) = self.agent.registry.tables.resources.of_resource(&of.0, &of.1)
            {
                followed.insert(of.clone());
                found.push((served, of.clone()));
            }
        }
        found
    }

    async fn follow_counted(&self, served: Arc<Served>, of: Counted) {
        let table = self.agent.registry.tables.table(&served);
        follow(&table, Interest::default(), |seen| match seen {
            Seen::Changed(change) if self.may_use_less(change, &of) => self.look_at(change.object(), &of),
            _ => {}
        })
        .await;
    }

    /// Returns whether a change may have reduced the usage below the charged usage.
    fn may_use_less(&self, change: &Change, of: &Counted) -> bool {
        let namespace = change.object().key().namespace().unwrap_or("");
        if !self.counted.borrow().contains_key(namespace) {
            return false;
        }
        if change.object().is_tombstone() {
            return true;
        }
        let Some(previous) = change.previous().filter(|_| of.0.is_empty()) else { return false };
        if !matches!(&*of.1, "pods" | "services" | "persistentvolumeclaims") {
            return false;
        }
        if of.1 == "pods" && !is_other_pod(previous, change.object()) {
            return false;
        }
        let (Ok(before), Ok(after)) = (stored_value(previous), stored_value(change.object())) else { return true };
        let now = now();
        let used = |object| quota::usage(&of.0, &of.1, object, now);
        let is_other = |path: &[&str]| before.at(path) != after.at(path);
        used(&before) != used(&after)
            || is_other(&["metadata", "deletionTimestamp"])
            || is_other(&["spec", "activeDeadlineSeconds"])
            || is_other(&["spec", "volumeAttributesClassName"])
    }

    /// Puts the quotas that count an object into the queue.
    fn look_at(&self, object: &Object, of: &Counted) {
        let namespace = object.key().namespace().unwrap_or("");
        for (name, counts) in self.counted.borrow().get(namespace).into_iter().flatten() {
            if counts.contains(of) {
                self.queue.add_after(QuotaItem::Again(namespace.to_owned(), name.clone()), limits::QUOTA_SETTLE);
            }
        }
    }

    async fn attempt(&self, item: QuotaItem) -> ApiResult<Requeue> {
        let is_first = matches!(item, QuotaItem::First(..));
        let (QuotaItem::First(namespace, name) | QuotaItem::Again(namespace, name)) = item;
        let target = Target::object(&self.quotas, &namespace, &name);
        let Some(quota) = self.agent.get(target)? else { return Ok(Requeue::Never) };
        if is_first && !quota::is_uncounted(&quota) {
            return Ok(Requeue::Never);
        }
        let now = now();
        let mut leaves = None;
        let used = self.count(&quota, now, &mut leaves).await?;
        let again =
            leaves.map(|at: Timestamp| Duration::from_secs(u64::try_from(at.seconds - now.seconds).unwrap_or(0)));
        let rest = || again.map_or(Requeue::Never, |again| Requeue::After(again.max(limits::QUOTA_SETTLE)));
        if says(&quota, &used) {
            return Ok(rest());
        }
        let seen = quota.str_at(&["metadata", "resourceVersion"]).to_owned();
        let status = target.with_subresource("status");
        let counted = self.agent.edit_if(status, |quota| {
            if quota.str_at(&["metadata", "resourceVersion"]) != seen {
                // Admission charged a write meanwhile that the count does not include.
                return Err(ApiError::conflict("", "resourcequotas", &name, "it was charged meanwhile"));
            }
            let hard = quota.at(&["spec", "hard"]).clone();
            quota.set_at(&["status", "hard"], hard);
            let texts = used.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string())));
            quota.set_at(&["status", "used"], Value::Object(texts.collect::<Map>()));
            Ok(())
        });
        match counted.await {
            Ok(()) => {
                // A charged write may not have been stored yet when the objects were counted.
                self.queue.add_after(QuotaItem::Again(namespace.clone(), name.clone()), limits::QUOTA_SETTLE);
                Ok(Requeue::Never)
            }
            Err(ApiError { code: 404, .. }) => Ok(Requeue::Never),
            Err(ApiError { code: 409, .. }) => Ok(Requeue::After(limits::QUOTA_SETTLE)),
            Err(error) => Err(error),
        }
    }

    /// Counts the usage of a quota. Names that nothing counts keep their amounts. Sets `leaves` to the time at which
    /// the first object ceases to count without a change.
    async fn count(&self, quota: &Value, now: Timestamp, leaves: &mut Option<Timestamp>) -> ApiResult<Usage> {
        let namespace = quota.str_at(&["metadata", "namespace"]);
        let hard = quota.map_at(&["spec", "hard"]);
        let names = || hard.into_iter().flat_map(Map::keys);
        let mut used = Usage::new();
        for name in names() {
            if let Some(known) = quota.map_at(&["status", "used"]).and_then(|used| used.get(name)) {
                used.insert(name.to_owned(), crate::rules::resources::amount(known));
            }
        }
        let resources: BTreeSet<Counted> = names().flat_map(quota::resources_of).collect();
        for (group, resource) in &resources {
            let Some(served) = self.agent.registry.tables.resources.of_resource(group, resource) else { continue };
            if !served.resource.namespaced || !quota::is_counted(group, resource) {
                continue;
            }
            let table = self.agent.registry.tables.table(&served);
            self.agent.registry.tables.barrier(&table).await?;
            let mut tally = Tally::new(quota, group, resource, now);
            let selection = Selection { scope: Scope::namespace(namespace), ..Selection::default() };
            let mut chunks = scan(&table.snapshot(), selection);
            while let Some(objects) = chunks.next_yielding().await {
                for object in objects.map_err(ApiError::internal)? {
                    let object = stored_value(&object)?;
                    tally.add(&object);
                    let end = quota::ends_at(group, resource, &object).filter(|end| end.seconds >= now.seconds);
                    *leaves = (*leaves).into_iter().chain(end).min_by_key(|end| end.seconds);
                }
            }
            used.extend(tally.used());
        }
        Ok(used)
    }
}

/// Returns whether the usage of a pod may have changed. Most changes only report the state of containers, and are not
/// decoded.
fn is_other_pod(before: &Object, after: &Object) -> bool {
    let phase = |pod: &Object| pod.terms().field("status.phase").map(str::to_owned);
    let generation = |pod: &Object| metadata(pod).ok().and_then(|metadata| metadata.int_at(&["generation"]));
    let is_sized = |pod: &Object| memmem::find(pod.bytes(), b"\"allocatedResources\":").is_some();
    phase(before) != phase(after)
        || is_deleting(before) != is_deleting(after)
        || is_sized(before)
        || is_sized(after)
        || generation(before) != generation(after)
}

/// Returns whether the status of a quota has the counted usage.
fn says(quota: &Value, used: &Usage) -> bool {
    let known = quota.map_at(&["status", "used"]);
    let is_known = |(name, amount): (&String, &flotilla_proto::quantity::Quantity)| {
        known.and_then(|known| known.get(name)).is_some_and(|known| crate::rules::resources::amount(known) == *amount)
    };
    !quota::is_uncounted(quota) && known.map_or(0, Map::len) == used.len() && used.iter().all(is_known)
}
