//! Stores the objects of a custom resource once more after a field has become selectable ("Custom Resources", field
//! selectors).
//!
//! Selectors compare the terms that are stored with each object, and these follow the definition of the time of the
//! write. Without this controller, a selector by a new field would find none of the objects that were there before.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Object, Selection};
use memchr::memmem;

use super::agent::Agent;
use super::metadata::is_deleting;
use super::queue::{Queue, Requeue};
use crate::custom::{self, Custom, Definition};
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_tree;
use crate::unreadable::skip_unreadable;

/// A search for objects without the terms of their definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Search {
    /// Name of the definition.
    definition: String,
    /// The generation for which this is the second search. It finds objects that a replica wrote by the generation
    /// before. `None` for a first search, which is made at once, so that selectors soon find the objects.
    again: Option<i64>,
}

/// The generation of a definition whose spec has not changed since its creation: it has written all of its objects.
const FIRST_GENERATION: i64 = 1;

/// The generation of each definition up to which its objects were searched, by the name of the definition.
type SearchedGenerations = RefCell<HashMap<String, i64>>;

/// The controller, which stores objects once more, now and whenever a definition has changed.
struct Renewal {
    agent: Rc<Agent>,
    /// The resource of the definitions.
    definitions: Arc<Served>,
    searched: SearchedGenerations,
    queue: Queue<Search>,
}

/// Stores objects once more, now and whenever a definition has changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let definitions = agent.resource(custom::GROUP, custom::RESOURCE)?;
    let table = agent.registry.tables.table(&definitions);
    let renewal = Renewal { agent, definitions, searched: RefCell::default(), queue: Queue::new(measured) };
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(definition) = seen.live().filter(|definition| may_select(definition)) {
                renewal.queue.add(Search { definition: definition.key().name().to_owned(), again: None });
            } else if let Some(definition) = seen.deleted() {
                renewal.searched.borrow_mut().remove(definition.key().name());
            }
        }),
        renewal.queue.work(limits::DEFINITION_WORKERS, |search| renewal.search(search)),
    );
    Ok(())
}

/// Returns whether a definition may have selectable fields. Quotes inside a string are escaped: the text that is found
/// is the name of a member.
fn may_select(definition: &Object) -> bool {
    memmem::find(definition.bytes(), b"\"selectableFields\":").is_some() && !is_deleting(definition)
}

impl Renewal {
    async fn search(&self, search: Search) -> ApiResult<Requeue> {
        let (tables, name) = (&self.agent.registry.tables, &search.definition);
        let Some(definition) = tables.current(&self.definitions, "", name) else { return Ok(Requeue::Never) };
        let Some(tree) = skip_unreadable(stored_tree(&definition)) else { return Ok(Requeue::Never) };
        let generation = tree.int_at(&["metadata", "generation"]).unwrap_or_default();
        let is_done = self.searched.borrow().get(name) == Some(&generation);
        if generation <= FIRST_GENERATION || is_done {
            return Ok(Requeue::Never);
        }
        let served = Definition::of(&tree).and_then(|definition| tables.resources.defined_by(definition));
        let Some(served) = served else { return Ok(Requeue::Never) };
        self.renew_all(&served).await?;
        if let Some(searched) = search.again {
            self.searched.borrow_mut().insert(search.definition, searched);
        } else {
            self.queue.add_after(Search { again: Some(generation), ..search }, limits::DEFINITION_SETTLE);
        }
        Ok(Requeue::Never)
    }

    /// Stores those objects of a resource once more that have fields for which they have no terms.
    async fn renew_all(&self, served: &Served) -> ApiResult<()> {
        let Some(custom) = &served.custom else { return Ok(()) };
        let (tables, fields) = (&self.agent.registry.tables, custom.selectable());
        let table = tables.table(served);
        tables.barrier(&table).await?;
        let mut chunks = scan(&table.snapshot(), Selection::default());
        while let Some(objects) = chunks.next_yielding().await {
            for object in objects.map_err(ApiError::internal)? {
                if lacks_terms(custom, &object, &fields) {
                    tables.renew_terms(served, &object).await?;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether an object has a selectable field for which it has no term. Only objects that lack a term are
/// decoded.
fn lacks_terms(custom: &Custom, object: &Arc<Object>, fields: &BTreeSet<String>) -> bool {
    let lacks = |field: &str| object.terms().field(field).is_none();
    fields.iter().any(|field| lacks(field))
        && skip_unreadable(stored_tree(object))
            .is_some_and(|tree| custom.selected(&tree).iter().any(|(field, _)| lacks(field)))
}
