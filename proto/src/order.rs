//! The order of members: that of the type, as Go encodes structs.

use crate::catalogue;
use crate::conform::{holds_structs, item_of};
use crate::schema::{Shape, Type};
use crate::value::Value;

/// Puts the members of every struct in a value into the order of its type, after some were added. Skips parts that are
/// shared with `before`, in which they are in order, and parts that have not changed since they were conformed.
pub fn order(of: &Type, value: &mut Value, before: &Value) {
    order_struct(of, value, before, true);
}

/// The same as [`order`], for a value that was conformed to another type or to none.
pub fn reorder(of: &Type, value: &mut Value) {
    order_struct(of, value, &Value::Null, false);
}

/// Puts the members of an object's metadata into the order of their type. The metadata of a custom resource has them
/// sorted by name, as the object itself has its members.
pub fn reorder_metadata(metadata: &mut Value) {
    if let Some(of) = catalogue::type_by_openapi("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") {
        reorder(of, metadata);
    }
}

fn order_struct(of: &Type, value: &mut Value, before: &Value, conformed: bool) {
    if value.is_same(before) {
        return;
    }
    let Value::Object(map) = value else { return };
    if conformed && map.is_conformed() {
        return;
    }
    let (mut next, mut ordered) = (0, true);
    for (key, member) in map.iter_mut() {
        let Some(at) = of.position(key, next) else { continue };
        ordered &= at >= next;
        next = at + 1;
        order_in(&of.fields[at].shape, member, before.at(&[key]), conformed);
    }
    if !ordered {
        map.sort_by_rank(|key| of.position(key, 0).unwrap_or(usize::MAX));
    }
}

fn order_in(shape: &Shape, value: &mut Value, before: &Value, conformed: bool) {
    match (shape, value) {
        (Shape::Struct(of), value) => order_struct(of, value, before, conformed),
        (Shape::List(list), Value::Array(items)) if holds_structs(&list.item) => {
            for (index, item) in items.iter_mut().enumerate() {
                order_in(&list.item, item, item_of(before, index), conformed);
            }
        }
        (Shape::Map(map), Value::Object(members)) if holds_structs(&map.value) => {
            members.iter_mut().for_each(|(key, member)| order_in(&map.value, member, before.at(&[key]), conformed));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::{conform, conform_changed, forget_empty};
    use crate::value::read;
    use crate::{catalogue, json, value};

    #[test]
    fn members_stand_as_the_type_has_them() {
        let pod = catalogue::kind("", "v1", "Pod").unwrap();
        let container = value!({"name": "c", "imagePullPolicy": "Always", "image": "i", "resources": {}});
        let mut object = value!({"spec": {"restartPolicy": "Always", "containers": [container]}, "kind": "Pod"});
        let mut other = object.clone();
        order(&pod.of, &mut object, &Value::Null);
        reorder(&pod.of, &mut other);
        assert_eq!(json::to_vec(&other), json::to_vec(&object));
        let text = String::from_utf8(json::to_vec(&object)).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"Pod","spec":{"containers":[{"name":"c","image":"i","resources":{},"imagePullPolicy":"Always"}],"restartPolicy":"Always"}}"#
        );
    }

    #[test]
    fn changed_parts_are_ordered_again() {
        let pod = catalogue::kind("", "v1", "Pod").unwrap();
        let container = |name: &str| value!({"name": name, "env": [{"name": "e", "value": "1"}], "image": "i"});
        let mut object = value!({"spec": {"containers": [(container("a")), (container("b"))]}});
        conform(&pod.of, &mut object).unwrap();
        let shared = object.clone();
        let containers = object.get_mut("spec").and_then(|spec| spec.get_mut("containers"));
        let second = &mut containers.and_then(Value::as_array_mut).unwrap()[1];
        second.set_at(&["command"], value!(["c"]));
        second.get_mut("env").and_then(Value::as_array_mut).unwrap()[0] = value!({"value": "2", "name": "f"});
        order(&pod.of, &mut object, &Value::Null);
        forget_empty(&pod.of, &mut object, &Value::Null);
        let second = &object.list_at(&["spec", "containers"])[1];
        assert_eq!(
            String::from_utf8(json::to_vec(second)).unwrap(),
            r#"{"name":"b","image":"i","command":["c"],"env":[{"name":"f","value":"2"}],"resources":{}}"#
        );
        assert_eq!(shared.list_at(&["spec", "containers"])[1].list_at(&["env"])[0].str_at(&["name"]), "e");
        object.set_at(&["spec", "containers"], value!([]));
        forget_empty(&pod.of, &mut object, &Value::Null);
        assert!(object.at(&["spec", "containers"]).is_null());
    }

    const TEXT: &str = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"\"}\\","b":"\u003c"},"managedFields":["#,
        r#"{"manager":"m","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}}}]},"#,
        r#""spec":{"containers":[{"name":"c","env":[{"name":"d"},{"name":"e","value":"}"}],"resources":{}},{"name":"f"}],"#,
        r#""terminationGracePeriodSeconds":30,"args":[[1.5,[]],[true,{"x":null}]]},"status":{}}"#
    );

    #[test]
    fn shared_parts_are_not_parsed_again() {
        let pod = catalogue::kind("", "v1", "Pod").unwrap();
        let mut stored = json::parse(TEXT.as_bytes()).unwrap();
        conform(&pod.of, &mut stored).unwrap();
        let before = read(&json::to_vec(&stored).into()).unwrap();
        let change = |value: &mut Value| {
            value.set_at(&["spec", "unknown"], 1);
            value.set_at(&["status", "phase"], "Running");
            value.set_at(&["metadata", "annotations"], value!({"b": "1", "a": "2"}));
            let containers = value.get_mut("spec").and_then(|spec| spec.get_mut("containers"));
            let containers = containers.and_then(Value::as_array_mut).unwrap();
            containers.swap(0, 1);
            containers[0].set_at(&["resources"], value!({"limits": {"cpu": "1000m"}, "requests": null}));
        };
        let (mut whole, mut part) = (stored.clone(), before.clone());
        for (value, before) in [(&mut whole, &Value::Null), (&mut part, &before)] {
            change(value);
            assert_eq!(conform_changed(&pod.of, value, before), Ok(vec!["spec.unknown".into()]));
            value.set_at(&["apiVersion"], "v1");
            forget_empty(&pod.of, value, before);
            order(&pod.of, value, before);
        }
        assert_eq!(json::to_vec(&part), json::to_vec(&whole));
    }
}
