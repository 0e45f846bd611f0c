//! Priority and fairness decides which requests are carried out first when there are too many (Kubernetes
//! documentation, "API Priority and Fairness"; KEP-1040).
//!
//! A request belongs to a flow of the first FlowSchema that [matches](rules) it, and takes a seat of that FlowSchema's
//! priority [level]. If the level has no free seat and borrows none from [others](pool), the request waits in one of
//! the level's [queues], or is refused. This module knows nothing of HTTP, except that it prepares the values of two
//! headers.
//!
//! The objects are [followed](following), and compiled when they change. While seats are free, a request costs a
//! comparison with the FlowSchemas and one atomic operation.

mod counts;
mod dumps;
mod flow;
mod following;
pub mod level;
mod pool;
mod queues;
mod retry_after;
mod rules;
mod schemas;
mod shares;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use compact_str::CompactString;
use parking_lot::Mutex;
use tokio::sync::watch;

pub use dumps::Dump;
pub use flow::{Entered, Flow, Reason};
pub use following::{PriorityTables, RESOURCES, follow};
pub use pool::Seat;
pub use schemas::{FlowSchema, Objects, PriorityLevel};
pub use waiting::Waiting;

use self::counts::Counts;
use self::level::Level;
use self::pool::Pool;
use self::schemas::{CATCH_ALL, EXEMPT, Schemas, header};
use crate::access::{Attributes, User};
use crate::limits;
use crate::prometheus::Page;

/// API group of FlowSchemas and priority levels.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The levels and FlowSchemas in use.
#[derive(Debug)]
pub struct Fairness {
    /// The seats of all levels together.
    total: usize,
    schemas: ArcSwap<Schemas>,
    pool: Arc<Pool>,
    kept: Mutex<Kept>,
    hasher: std::hash::RandomState,
    complete: watch::Sender<bool>,
}

/// The state that survives a change of the objects, by name.
#[derive(Debug, Default)]
struct Kept {
    levels: HashMap<CompactString, Arc<Level>>,
    /// By FlowSchema and level.
    counts: HashMap<(CompactString, CompactString), Arc<Counts>>,
}

impl Fairness {
    /// Creates the levels of a server with this many seats. Until the objects are read, only the levels and FlowSchemas
    /// that need no objects exist.
    pub fn new(total: usize) -> Self {
        let pool = Arc::<Pool>::default();
        let (mut kept, hasher) = (Kept::default(), std::hash::RandomState::new());
        let schemas = compile(Objects::default(), total, &mut kept, (&pool, &hasher));
        Self {
            total,
            schemas: ArcSwap::from_pointee(schemas),
            pool,
            kept: Mutex::new(kept),
            hasher,
            complete: watch::Sender::new(false),
        }
    }

    /// Replaces the objects. Requests keep their seats and their positions in queues.
    pub fn set(&self, objects: Objects) {
        let mut kept = self.kept.lock();
        let schemas = compile(objects, self.total, &mut kept, (&self.pool, &self.hasher));
        self.schemas.store(Arc::new(schemas));
        self.complete.send_replace(true);
    }

    /// Waits until the objects are read.
    pub async fn is_complete(&self) {
        // The sender lives as long as `self`.
        let _ = self.complete.subscribe().wait_for(|complete| *complete).await;
    }

    /// Returns the flow of a request of a user.
    pub fn flow(&self, user: &User, attributes: &Attributes<'_>) -> Arc<Flow> {
        Arc::clone(self.schemas.load().of(user, attributes))
    }

    /// Returns the number of requests that wait for seats.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Appends the metrics.
    pub fn measure(&self, page: &mut Page) {
        let schemas = self.schemas.load();
        let flows = schemas.flows().take(limits::MEASURED_FLOWS).filter(|flow| flow.counts.are_used());
        let flows: Vec<_> = flows.map(|flow| (flow.schema.as_str(), flow.level.name.as_str(), &*flow.counts)).collect();
        counts::write(page, &flows);
        counts::write_limits(page, &self.pool.levels());
    }
}

/// Compiles objects for requests, and sets the limits of the levels.
fn compile(
    objects: Objects,
    total: usize,
    kept: &mut Kept,
    (pool, hasher): (&Arc<Pool>, &std::hash::RandomState),
) -> Schemas {
    let objects = objects.completed();
    let mut levels = HashMap::new();
    for name in objects.levels.keys() {
        let level = kept.levels.remove(name);
        levels.insert(name.clone(), level.unwrap_or_else(|| Arc::new(Level::new(name.clone(), name == EXEMPT))));
    }
    kept.levels = levels;
    let shares: Vec<_> = objects.levels.values().map(|level| level.share).collect();
    let mut configured = Vec::new();
    for ((name, level), limit) in objects.levels.iter().zip(shares::divide(total, &shares)) {
        let state = &kept.levels[name];
        state.set_queuing(level.queuing);
        state.set_limit(limit);
        configured.push(Arc::clone(state));
    }
    let mut counts = HashMap::new();
    let mut all = Vec::new();
    for (name, schema) in objects.in_order() {
        let names = (name.clone(), schema.level.clone());
        let counted = kept.counts.remove(&names).unwrap_or_default();
        counts.insert(names, Arc::clone(&counted));
        let flow = Flow {
            schema: name.clone(),
            schema_uid: header(&schema.uid),
            level_uid: header(&objects.levels[&schema.level].uid),
            distinguisher: schema.distinguisher,
            level: Arc::clone(&kept.levels[&schema.level]),
            counts: counted,
            pool: Arc::clone(pool),
            hasher: hasher.clone(),
        };
        all.push((schema.rules.clone(), Arc::new(flow)));
    }
    kept.counts = counts;
    pool.set(configured);
    let catch_all = all.iter().map(|(_, flow)| flow).find(|flow| flow.schema == CATCH_ALL).cloned();
    Schemas::new(all, catch_all.expect("catch-all exists even without its object"))
}
