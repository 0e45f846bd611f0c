//! Removes duplicate owner references.

use std::collections::HashSet;

use flotilla_proto::json;
use flotilla_proto::value::Value;

/// Drops duplicate owner references and warns the client of them. The object was conformed, and equal references
/// therefore have equal text.
pub fn dedup(object: &mut Value, warnings: &mut Vec<String>) {
    dedup_when(object, "", warnings);
}

/// Does the same as [`dedup`] after policies and webhooks, or a patch, changed the object.
pub fn dedup_mutated(object: &mut Value, warnings: &mut Vec<String>) {
    dedup_when(object, " after mutating admission happens", warnings);
}

fn dedup_when(object: &mut Value, when: &str, warnings: &mut Vec<String>) {
    let owners = object.list_at(&["metadata", "ownerReferences"]);
    if owners.len() < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(owners.len());
    let is_new: Vec<bool> = owners.iter().map(|owner| seen.insert(json::to_vec(owner))).collect();
    let of = |new: bool| owners.iter().zip(&is_new).filter(move |(_, is_new)| **is_new == new).map(|(owner, _)| owner);
    let repeated: Vec<&str> = of(false).map(|owner| owner.str_at(&["uid"])).collect();
    if !repeated.is_empty() {
        warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
        let kept: Vec<Value> = of(true).cloned().collect();
        object.set_at(&["metadata", "ownerReferences"], kept);
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn repeated_owners_are_dropped_with_a_warning() {
        let owner = |uid: &str| value!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid});
        let owners = [owner("a"), owner("b"), owner("a"), owner("a")].to_vec();
        let (mut object, mut warnings) = (value!({"metadata": {"ownerReferences": owners}}), Vec::new());
        dedup(&mut object, &mut warnings);
        assert_eq!(object.list_at(&["metadata", "ownerReferences"]), [owner("a"), owner("b")]);
        assert!(warnings[0].ends_with("observed: a, a"), "{warnings:?}");
        dedup(&mut object, &mut warnings);
        assert_eq!(warnings.len(), 1);
    }
}
