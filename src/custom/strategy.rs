//! The strategy of all custom resources. Their schemas determine the members of objects.

use std::collections::BTreeSet;

use flotilla_proto::value::{Map, Value};

use crate::field::quote;
use crate::fieldmanager::reset;
use crate::rules::{Generation, Strategy, metadata};

/// The strategy without the subresource `status`.
pub static PLAIN: Strategy = Strategy {
    known_finalizers: false,
    generation: Generation::Own,
    unconditional_update: false,
    unknown_field: Some(|_, field| format!("field label not supported: {field}")),
    prepare_update: |object, old, _| count(object, old, &["metadata"]),
    warnings: warn_of_finalizers,
    resets: &[("status", reset::SPEC_AND_METADATA)],
    ..Strategy::DEFAULT
};

/// The strategy with the subresource `status`.
pub static WITH_STATUS: Strategy = Strategy {
    status: true,
    prepare_update: |object, old, _| count(object, old, &["metadata", "status"]),
    prepare_status: |object, old, _| keep_metadata(object, old),
    ..PLAIN
};

/// Raises the generation if a member other than those in `besides` changed.
fn count(object: &mut Value, old: &Value, besides: &[&str]) {
    let counted = |value: &Value| -> Vec<(String, Value)> {
        let members = value.as_object().into_iter().flat_map(Map::iter);
        let mut own: Vec<_> = members.filter(|(key, _)| !besides.contains(key)).collect();
        own.sort_by_key(|(key, _)| *key);
        own.into_iter().map(|(key, value)| (key.to_owned(), value.clone())).collect()
    };
    if counted(object) != counted(old) {
        let generation = old.int_at(&["metadata", "generation"]).unwrap_or(0);
        object.set_at(&["metadata", "generation"], generation + 1);
    }
}

/// Warns of new finalizers without a domain, since other writers may use the same name.
fn warn_of_finalizers(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let finalizers = |object: &Value| -> BTreeSet<String> {
        let list = object.list_at(&["metadata", "finalizers"]).iter();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = old.map(finalizers).unwrap_or_default();
    for name in finalizers(object).difference(&before).filter(|name| !metadata::is_certain_finalizer(name)) {
        let why = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
        warnings.push(format!("metadata.finalizers: {}: {why}", quote(name)));
    }
}

/// Keeps the stored metadata in a write of the status, except for the owners of fields.
fn keep_metadata(object: &mut Value, old: &Value) {
    let owners = object.remove_at(&["metadata", "managedFields"]);
    object.set_at(&["metadata"], old.at(&["metadata"]).clone());
    match owners {
        Some(owners) => object.set_at(&["metadata", "managedFields"], owners),
        None => drop(object.remove_at(&["metadata", "managedFields"])),
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::time::Timestamp;
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn the_status_raises_the_generation_unless_it_is_a_subresource() {
        let old = value!({"metadata": {"generation": 3, "labels": {}}, "spec": {"a": 1}, "status": {"b": 1}});
        let changed = |path: &[&str], strategy: &Strategy| {
            let mut new = old.clone();
            new.set_at(path, 2);
            (strategy.prepare_update)(&mut new, &old, Timestamp { seconds: 0, nanos: 0 });
            new.int_at(&["metadata", "generation"])
        };
        assert_eq!(changed(&["metadata", "labels", "x"], &PLAIN), Some(3));
        assert_eq!(changed(&["spec", "a"], &PLAIN), Some(4));
        assert_eq!(changed(&["status", "b"], &PLAIN), Some(4));
        assert_eq!(changed(&["other"], &WITH_STATUS), Some(4));
        assert_eq!(changed(&["status", "b"], &WITH_STATUS), Some(3));
    }

    #[test]
    fn new_finalizers_without_a_domain_get_a_warning() {
        let of = |names: Value| value!({"metadata": {"finalizers": names}});
        let new = of(value!(["orphan", "b", "example.com/a", "a"]));
        let reported = |old: Option<&Value>| {
            let mut warnings = Vec::new();
            warn_of_finalizers(&new, old, &mut warnings);
            warnings.iter().map(|text| text.split(": ").nth(1).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(reported(None), ["\"a\"", "\"b\""]);
        assert_eq!(reported(Some(&of(value!(["a"])))), ["\"b\""]);
    }

    #[test]
    fn a_write_of_the_status_keeps_metadata_but_not_owners() {
        let old = value!({"metadata": {"name": "a", "managedFields": [1]}, "status": {}});
        let mut new = value!({"metadata": {"name": "a", "labels": {"x": "y"}, "managedFields": [2]}, "status": {}});
        keep_metadata(&mut new, &old);
        assert_eq!(new.at(&["metadata"]), &value!({"name": "a", "managedFields": [2]}));
    }
}
