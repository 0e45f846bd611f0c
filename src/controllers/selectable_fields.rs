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
use flotilla_proto::value::Value;
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

/// A search for objects without the terms of their definition, which it names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Search {
    /// Searches at once, so that selectors soon find the objects.
    Now(String),
    /// Searches once more, for objects that a replica wrote by the definition before.
    Later(String),
}

/// The fields for which the objects of each definition were searched, by the name of the definition.
type SearchedFields = RefCell<HashMap<String, BTreeSet<String>>>;

/// Stores objects once more, now and whenever a definition has changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let definitions = agent.resource(custom::GROUP, custom::RESOURCE)?;
    let table = agent.registry.tables.table(&definitions);
    let (queue, searched) = (Queue::new(measured), SearchedFields::default());
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(definition) = seen.live().filter(|definition| may_select(definition)) {
                let name = definition.key().name();
                queue.add(Search::Now(name.to_owned()));
                queue.add_after(Search::Later(name.to_owned()), limits::DEFINITION_SETTLE);
            } else if let Some(definition) = seen.deleted() {
                searched.borrow_mut().remove(definition.key().name());
            }
        }),
        queue.work(limits::DEFINITION_WORKERS, |search| attempt(&agent, &definitions, &searched, search)),
    );
    Ok(())
}

/// Returns whether a definition may have selectable fields. Quotes inside a string are escaped: the text that is found
/// is the name of a member.
fn may_select(definition: &Object) -> bool {
    memmem::find(definition.bytes(), b"\"selectableFields\":").is_some() && !is_deleting(definition)
}

async fn attempt(agent: &Agent, definitions: &Served, searched: &SearchedFields, search: Search) -> ApiResult<Requeue> {
    let (Search::Now(name) | Search::Later(name)) = &search;
    let Some(definition) = agent.registry.tables.current(definitions, "", name) else { return Ok(Requeue::Never) };
    let read = skip_unreadable(stored_tree(&definition)).filter(has_changed).and_then(|tree| Definition::of(&tree));
    let Some(served) = read.and_then(|definition| agent.registry.tables.resources.defined_by(definition)) else {
        return Ok(Requeue::Never);
    };
    let Some(custom) = &served.custom else { return Ok(Requeue::Never) };
    let fields = custom.selectable();
    if searched.borrow().get(name) == Some(&fields) {
        return Ok(Requeue::Never);
    }
    renew_all(agent, &served, custom, &fields).await?;
    if matches!(search, Search::Later(_)) {
        searched.borrow_mut().insert(name.clone(), fields);
    }
    Ok(Requeue::Never)
}

/// Returns whether the spec of a definition has changed since its creation. Otherwise all objects were written by it.
fn has_changed(definition: &Value) -> bool {
    definition.int_at(&["metadata", "generation"]).is_some_and(|generation| generation > 1)
}

/// Stores those objects of a resource once more that have fields for which they have no terms.
async fn renew_all(agent: &Agent, served: &Served, custom: &Custom, fields: &BTreeSet<String>) -> ApiResult<()> {
    let table = agent.registry.tables.table(served);
    agent.registry.tables.barrier(&table).await?;
    let mut chunks = scan(&table.snapshot(), Selection::default());
    while let Some(objects) = chunks.next_yielding().await {
        for object in objects.map_err(ApiError::internal)? {
            if lacks_terms(custom, &object, fields) {
                agent.registry.tables.renew_terms(served, &object).await?;
            }
        }
    }
    Ok(())
}

/// Returns whether an object has a selectable field for which it has no term. Only objects that lack a term are
/// decoded.
fn lacks_terms(custom: &Custom, object: &Arc<Object>, fields: &BTreeSet<String>) -> bool {
    let lacks = |field: &str| object.terms().field(field).is_none();
    fields.iter().any(|field| lacks(field))
        && skip_unreadable(stored_tree(object))
            .is_some_and(|tree| custom.selected(&tree).iter().any(|(field, _)| lacks(field)))
}
