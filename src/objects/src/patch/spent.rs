//! Computes the rest of its patch that strategic merge leaves. The reference shows this rest when the result cannot be
//! decoded. Merging removes directives from the patch, and the lists that they order.

use std::collections::{HashMap, HashSet};

use flotilla_proto::json;
use flotilla_proto::schema::{Patch as MergeRules, Type};
use flotilla_proto::value::{Map, Value};

use super::strategic::{DIRECTIVE, ORDER_PREFIX, RETAIN_KEYS, Schema, discard_nulls, prefixed, without_directives};

/// Returns the rest of `patch` after it was merged into `target`, which has the type `of`.
pub fn rest(of: &Type, target: &Value, patch: &Map) -> Map {
    let mut rest = patch.clone();
    if let Value::Object(target) = target {
        spend(&mut rest, target, Schema::Struct(of));
    }
    rest
}

fn spend(patch: &mut Map, target: &Map, schema: Schema<'_>) {
    if let Some(directive) = patch.get(DIRECTIVE) {
        if directive.as_str() == Some("replace") {
            patch.remove(DIRECTIVE);
        }
        return;
    }
    patch.remove(RETAIN_KEYS);
    let name = |key: &str| prefixed(key, ORDER_PREFIX).flatten().map(str::to_owned);
    let ordered: HashSet<String> = patch.keys().filter_map(name).collect();
    patch.retain(|key, _| !key.starts_with(ORDER_PREFIX) && !ordered.contains(key));
    for (key, value) in patch.iter_mut() {
        match (target.get(key), value) {
            (Some(Value::Object(target)), Value::Object(patch)) => {
                if let Ok((inner, MergeRules { replace: false, .. })) = schema.member(key) {
                    spend(patch, target, inner);
                }
            }
            (Some(Value::Array(target)), Value::Array(patch)) => {
                if let Ok((inner, MergeRules { merge: true, merge_key: Some(key), .. })) = schema.items(key) {
                    spend_items(patch, target, key, inner);
                }
            }
            (Some(_), _) | (None, Value::Null) => {}
            (None, value) => {
                discard_nulls(value);
                if let Some(plain) = without_directives(value.clone()) {
                    *value = plain;
                }
            }
        }
    }
}

/// Removes the directives from items of a list that are merged into the items of the target with the same key.
fn spend_items(patch: &mut [Value], target: &[Value], key: &str, schema: Schema<'_>) {
    if patch.iter().any(|item| item.str_at(&[DIRECTIVE]) == "replace") {
        return;
    }
    let mut by_key: HashMap<Vec<u8>, &Value> = HashMap::with_capacity(target.len());
    for item in target {
        by_key.entry(json::to_vec(item.at(&[key]))).or_insert(item);
    }
    let is_plain = |item: &&mut Value| item.at(&[DIRECTIVE]).is_null() && !item.at(&[key]).is_null();
    for item in patch.iter_mut().filter(is_plain) {
        let Some(Value::Object(found)) = by_key.get(&json::to_vec(item.at(&[key]))) else { continue };
        if let Value::Object(item) = item {
            spend(item, found, schema);
        }
    }
}
