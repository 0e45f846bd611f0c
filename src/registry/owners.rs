//! Owner references that stand twice.

use flotilla_proto::value::Value;

/// Drops repeated owner references and tells the client of them.
pub fn dedup(object: &mut Value, warnings: &mut Vec<String>) {
    dedup_when(object, "", warnings);
}

/// As [`dedup`], once more after others changed the object.
pub fn dedup_mutated(object: &mut Value, warnings: &mut Vec<String>) {
    dedup_when(object, " after mutating admission happens", warnings);
}

fn dedup_when(object: &mut Value, when: &str, warnings: &mut Vec<String>) {
    let owners = object.list_at(&["metadata", "ownerReferences"]);
    if owners.len() < 2 {
        return;
    }
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut repeated: Vec<String> = Vec::new();
    for owner in owners {
        if kept.contains(owner) {
            repeated.push(owner.str_at(&["uid"]).to_owned());
        } else {
            kept.push(owner.clone());
        }
    }
    if !repeated.is_empty() {
        object.set_at(&["metadata", "ownerReferences"], kept);
        warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
}
