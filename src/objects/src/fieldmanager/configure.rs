//! Merges an apply configuration of an admission policy into an object, without tracking owners.

use flotilla_proto::schema::Type;
use flotilla_proto::value::Value;

use super::check::complaints;
use super::form::{Form, Members};
use super::merge::merge;

/// Returns the object with the configuration merged in. Lists are merged as their type says.
///
/// # Errors
/// The configuration does not fit the type, or states part of an atomic value, whose other parts would be lost. The
/// texts are those of the reference.
pub fn configured(of: &Type, live: &Value, configuration: &Value) -> Result<Value, String> {
    if let Some(why) = complaints(of, configuration, false) {
        return Err(format!("failed to convert patch object to typed object: {why}"));
    }
    let mut whole = Vec::new();
    find_whole(Form::of_type(of), configuration, "", &mut whole);
    if !whole.is_empty() {
        let whole = whole.join(", ");
        return Err(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {whole}"));
    }
    if let Some(why) = complaints(of, live, true) {
        return Err(format!("failed to convert original object to typed object: {why}"));
    }
    Ok(merge(of, live, configuration))
}

/// Collects the paths of atomic values.
fn find_whole(form: Form<'_>, value: &Value, path: &str, whole: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if form.atomic() {
                whole.push(path.to_owned());
            }
            let mut known = Members::of(form);
            map.iter().for_each(|(key, value)| find_whole(known.any(key), value, &format!("{path}.{key}"), whole));
        }
        Value::Array(items) => {
            if form.atomic() || matches!(form, Form::Deduced) {
                whole.push(path.to_owned());
            }
            let item = if let Form::List(list) = form { Form::of_shape(&list.item) } else { Form::Deduced };
            let places = items.iter().enumerate();
            places.for_each(|(index, value)| find_whole(item, value, &format!("{path}[{index}]"), whole));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::{catalogue, value};

    use super::*;

    fn with(configuration: Value) -> Result<Value, String> {
        let pod = catalogue::kind("", "v1", "Pod").unwrap();
        let live = value!({"metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "args": ["x"]}]}});
        configured(&pod.of, &live, &configuration)
    }

    #[test]
    fn lists_are_merged_as_their_type_states() {
        let merged = with(value!({"metadata": {"labels": {"c": "d"}},
            "spec": {"containers": [{"name": "c", "image": "j"}, {"name": "d"}]}}));
        let merged = merged.unwrap();
        assert_eq!(merged.at(&["metadata", "labels"]), &value!({"a": "b", "c": "d"}));
        let containers = value!([{"name": "c", "image": "j", "args": ["x"]}, {"name": "d"}]);
        assert_eq!(merged.at(&["spec", "containers"]), &containers);
    }

    #[test]
    fn a_configuration_must_not_state_a_part_of_an_atomic_value() {
        let why = with(value!({"spec": {"containers": [{"name": "c", "args": ["y"]}]}})).unwrap_err();
        let wanted =
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args";
        assert_eq!(why, wanted);
        let why = with(value!({"spec": {"containerz": []}})).unwrap_err();
        let wanted = "failed to convert patch object to typed object: .spec.containerz: field not declared in schema";
        assert_eq!(why, wanted);
    }
}
