//! Objects that admission of others depends on, out of memory.

use flotilla_cluster::{Scope, Selection};
use flotilla_proto::value::Value;

use super::super::{Registry, stored_value};
use crate::status::{ApiError, ApiResult};

/// Objects that are read at a time.
const CHUNK: usize = 256;

impl Registry {
    /// An object of a built-in resource, if there is one of this name.
    pub(super) fn look_up(&self, group: &str, resource: &str, namespace: &str, name: &str) -> ApiResult<Option<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        self.current(&served, namespace, name).map(|object| stored_value(&object)).transpose()
    }

    /// All objects of a built-in resource, of a namespace or cluster-wide.
    pub(super) fn look_up_all(&self, group: &str, resource: &str, scope: Scope) -> ApiResult<Vec<Value>> {
        let served = self.resources.of_resource(group, resource).ok_or_else(ApiError::no_such_path)?;
        let table = self.table(&served);
        if table.is_empty() {
            return Ok(Vec::new());
        }
        let (snapshot, selection) = (table.snapshot(), Selection { scope, field: None });
        let (mut all, mut objects, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            after = snapshot
                .chunk(&selection, after.as_ref(), CHUNK, &mut objects)
                .map_err(|error| ApiError::internal(format!("cannot read {resource}: {error:?}")))?;
            for object in objects.drain(..) {
                all.push(stored_value(&object)?);
            }
            if after.is_none() {
                return Ok(all);
            }
        }
    }
}
