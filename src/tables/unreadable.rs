//! Refuses lists that contain objects which cannot be decoded (see [`crate::unreadable`]), and searches for such
//! objects before a client asks for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flotilla_cluster::{Key, Object, Revision, Selection, Table, TableId};
use parking_lot::Mutex;

use super::Tables;
use crate::limits;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult, Cause, Details, qualified};
use crate::turn::Turn;
use crate::unreadable::{REASON, cause, prove};

/// Returns 500 for a list that contains objects which cannot be decoded; it names them.
fn listed(served: &Served, found: &[Arc<Object>]) -> ApiError {
    let mut causes: Vec<Cause> =
        found.iter().take(limits::UNREADABLE_LISTED).filter_map(|object| cause(object)).collect();
    if found.len() > limits::UNREADABLE_LISTED {
        let (reason, message) = ("FieldValueTooMany".into(), "too many errors, the list is truncated".into());
        causes.push(Cause { reason, message, field: String::new() });
    }
    let (group, kind) = (served.group().to_owned(), served.resource.name.to_string());
    let message = format!("failed to read one or more {} from the storage", qualified(&group, &kind));
    let details = Details { name: "list".into(), group, kind, causes, ..Details::default() };
    ApiError { details: Some(Box::new(details)), ..ApiError::new(500, REASON, message) }
}

/// The objects that are known to be unreadable. A list that contains one is refused before its answer begins.
#[derive(Debug, Default)]
pub struct Unreadable {
    count: AtomicUsize,
    objects: Mutex<BTreeMap<(String, Key), Revision>>,
}

impl Unreadable {
    fn note(&self, table: &TableId, object: &Object) {
        let mut objects = self.objects.lock();
        if objects.len() < limits::UNREADABLE_KNOWN {
            objects.insert((table.as_str().to_owned(), object.key().clone()), object.revision());
        }
        self.count.store(objects.len(), Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns the unreadable objects of a table that still exist.
    fn of(&self, table: &Table) -> Vec<Arc<Object>> {
        let mut objects = self.objects.lock();
        let mut found = Vec::new();
        objects.retain(|(of, key), revision| {
            if of != table.id().as_str() {
                return true;
            }
            let object = table.get(key.as_str()).filter(|object| object.revision() == *revision);
            let is_there = object.is_some();
            found.extend(object);
            is_there
        });
        self.count.store(objects.len(), Ordering::Relaxed);
        found
    }
}

impl Tables {
    /// Refuses a list that contains an object which is known to be unreadable.
    ///
    /// # Errors
    /// 500, which names those objects.
    pub fn refuse_unreadable(&self, served: &Served, selects: impl Fn(&Object) -> bool) -> ApiResult<()> {
        if self.unreadable.is_empty() {
            return Ok(());
        }
        let mut found = self.unreadable.of(&self.table(served));
        found.retain(|object| selects(object));
        if found.is_empty() { Ok(()) } else { Err(listed(served, &found)) }
    }

    /// Returns the error of a list that met an object which cannot be decoded. `rest` reads the remaining objects.
    /// These are searched for others that cannot be decoded.
    pub fn list_failed(
        &self,
        served: &Served,
        object: &Arc<Object>,
        error: ApiError,
        mut rest: impl FnMut(&mut Vec<Arc<Object>>) -> ApiResult<bool>,
    ) -> ApiError {
        if object.is_decodable() != Some(false) {
            return error;
        }
        let mut found = vec![Arc::clone(object)];
        let mut objects = Vec::new();
        // The error names those that are found at once; others are found before a client asks for them.
        let turn = Turn::begin();
        while found.len() <= limits::UNREADABLE_LISTED && !turn.is_over() {
            let more = rest(&mut objects).unwrap_or(false);
            found.extend(objects.drain(..).filter(|object| prove(object).is_err()));
            if !more {
                break;
            }
        }
        found.iter().for_each(|object| self.unreadable.note(&served.table, object));
        listed(served, &found)
    }

    /// Slowly decodes every object that this process did not write. Objects that cannot be decoded are thus known
    /// before a client asks for them.
    pub async fn examine_stored(&self) {
        for served in self.resources.stored() {
            let table = self.table(&served);
            let mut bytes = 0;
            // Stops when the snapshot is older than the history window: newer objects were encoded by a running server.
            for objects in scan(&table.snapshot(), Selection::default()).map_while(Result::ok) {
                for object in objects.into_iter().filter(|object| object.is_decodable().is_none()) {
                    bytes += object.bytes().len();
                    if prove(&object).is_err() {
                        self.unreadable.note(&served.table, &object);
                    }
                }
                if bytes >= limits::EXAMINED_BYTES {
                    bytes = 0;
                    tokio::time::sleep(limits::EXAMINE_PAUSE).await;
                }
            }
        }
    }
}
