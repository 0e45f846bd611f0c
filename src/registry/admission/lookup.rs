//! Objects that admission of others depends on, out of memory.

use flotilla_cluster::{Scope, Selection};
use flotilla_proto::value::Value;
use memchr::memmem;

use super::super::{Registry, Served, stored_tree};
use crate::catalogued::CONSULTED;
use crate::status::{ApiError, ApiResult};
use crate::unreadable::others;

/// Objects that are read at a time.
const CHUNK: usize = 256;

/// Tables of which admission may be told what was so a moment ago: the reference looks at its own copy of them, too.
const GLANCED_AT: [&str; 1] = ["nodes"];

impl Registry {
    /// An object of a built-in resource, if there is one of this name.
    pub(super) fn look_up(&self, group: &str, resource: &str, namespace: &str, name: &str) -> ApiResult<Option<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        debug_assert!(may_be_consulted(&served), "{} may lie in any group", served.table);
        self.current(&served, namespace, name).map(|object| stored_tree(&object)).transpose()
    }

    /// All objects of a built-in resource that can be decoded, of a namespace or cluster-wide.
    pub(super) fn look_up_all(&self, group: &str, resource: &str, scope: Scope) -> ApiResult<Vec<Value>> {
        self.look_up_mentioning(group, resource, scope, "")
    }

    /// As [`Registry::look_up_all`], of the objects that have this in their text.
    pub(super) fn look_up_mentioning(
        &self,
        group: &str,
        resource: &str,
        scope: Scope,
        text: &str,
    ) -> ApiResult<Vec<Value>> {
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
