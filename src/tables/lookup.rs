//! Reads the objects that an admission decision depends on from this replica's tables.

use std::sync::Arc;

use flotilla_cluster::{Object, Scope, Selection};
use flotilla_proto::value::Value;
use memchr::memmem;

use super::{Tables, stored_tree};
use crate::catalogued::CONSULTED;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::unreadable::skip_unreadable;

/// Tables that admission may read without catching up first, because the reference reads its own cached copy of them.
const GLANCED_AT: [&str; 1] = ["nodes"];

impl Tables {
    /// Returns an object of a built-in resource. Returns `None` if there is none of this name.
    pub fn look_up(&self, group: &str, resource: &str, namespace: &str, name: &str) -> ApiResult<Option<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        debug_assert!(may_be_consulted(&served), "{} may lie in any group", served.table);
        self.current(&served, namespace, name).map(|object| stored_tree(&object)).transpose()
    }

    /// Returns all objects of a built-in resource, in a namespace or in all. Leaves out those that cannot be decoded.
    pub fn look_up_all(&self, group: &str, resource: &str, scope: Scope) -> ApiResult<Vec<Value>> {
        self.look_up_mentioning(group, resource, scope, "")
    }

    /// Does the same as [`Tables::look_up_all`], limited to objects whose stored text contains `text`.
    pub fn look_up_mentioning(&self, group: &str, resource: &str, scope: Scope, text: &str) -> ApiResult<Vec<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        debug_assert!(may_be_consulted(&served), "{} may lie in any group", served.table);
        let table = self.table(&served);
        if table.is_empty() {
            return Ok(Vec::new());
        }
        let mentions = |object: &Arc<Object>| memmem::find(object.bytes(), text.as_bytes()).is_some();
        let mut all = Vec::new();
        for objects in scan(&table.snapshot(), Selection { scope, ..Selection::default() }) {
            let objects = objects.map_err(|error| ApiError::internal(format!("cannot read {resource}: {error:?}")))?;
            all.extend(objects.into_iter().filter(mentions).filter_map(|object| skip_unreadable(stored_tree(&object))));
        }
        Ok(all)
    }
}

fn may_be_consulted(served: &Served) -> bool {
    CONSULTED.iter().chain(&GLANCED_AT).any(|table| *table == served.table.as_str())
}

#[cfg(test)]
#[path = "lookup_tests.rs"]
mod tests;
