//! Reads the objects that an admission decision depends on from this replica's tables.

use flotilla_cluster::{Scope, Selection};
use flotilla_proto::value::Value;
use memchr::memmem;

use crate::catalogued::CONSULTED;
use crate::registry::{Registry, stored_tree};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::unreadable::others;

/// How many objects are read at a time.
const CHUNK: usize = 256;

/// Tables that admission may read without catching up first, because the reference reads its own cached copy of them.
const GLANCED_AT: [&str; 1] = ["nodes"];

impl Registry {
    /// Returns an object of a built-in resource; `None` if there is none of this name.
    pub fn look_up(&self, group: &str, resource: &str, namespace: &str, name: &str) -> ApiResult<Option<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        debug_assert!(may_be_consulted(&served), "{} may lie in any group", served.table);
        self.current(&served, namespace, name).map(|object| stored_tree(&object)).transpose()
    }

    /// Returns all objects of a built-in resource, in a namespace or in all. Leaves out those that cannot be decoded.
    pub fn look_up_all(&self, group: &str, resource: &str, scope: Scope) -> ApiResult<Vec<Value>> {
        self.look_up_mentioning(group, resource, scope, "")
    }

    /// Returns what [`Registry::look_up_all`] returns, limited to objects whose stored text contains `text`.
    pub fn look_up_mentioning(&self, group: &str, resource: &str, scope: Scope, text: &str) -> ApiResult<Vec<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        debug_assert!(may_be_consulted(&served), "{} may lie in any group", served.table);
        let table = self.table(&served);
        if table.is_empty() {
            return Ok(Vec::new());
        }
        let mut cursor = table.snapshot().cursor(Selection { scope, ..Selection::default() }, None);
        let (mut all, mut objects) = (Vec::new(), Vec::new());
        loop {
            let more = cursor
                .read(CHUNK, &mut objects)
                .map_err(|error| ApiError::internal(format!("cannot read {resource}: {error:?}")))?;
            for object in objects.drain(..).filter(|object| memmem::find(object.bytes(), text.as_bytes()).is_some()) {
                all.extend(others(stored_tree(&object)));
            }
            if !more {
                return Ok(all);
            }
        }
    }
}

fn may_be_consulted(served: &Served) -> bool {
    CONSULTED.iter().chain(&GLANCED_AT).any(|table| *table == served.table.as_str())
}
