//! The order of members: that of the type, as Go encodes structs.

use crate::conform::{holds_structs, item_of, position};
use crate::schema::{Shape, Type};
use crate::value::Value;

/// Puts the members of every struct in a value into the order of its type, after some were added. What is shared with
/// `before`, in which they have it, is left as it is.
pub fn order(of: &Type, value: &mut Value, before: &Value) {
    if value.is_same(before) {
        return;
    }
    let Value::Object(map) = value else { return };
    let (mut next, mut ordered) = (0, true);
    for (key, member) in map.iter_mut() {
        let Some(at) = position(of, key, next) else { continue };
        ordered &= at >= next;
        next = at + 1;
        order_in(&of.fields[at].shape, member, before.at(&[key]));
    }
    if !ordered {
        map.sort_by_rank(|key| position(of, key, 0).unwrap_or(usize::MAX));
    }
}

fn order_in(shape: &Shape, value: &mut Value, before: &Value) {
    match (shape, value) {
        (Shape::Struct(of), value) => order(of, value, before),
        (Shape::List(list), Value::Array(items)) if holds_structs(&list.item) => {
            for (index, item) in items.iter_mut().enumerate() {
                order_in(&list.item, item, item_of(before, index));
            }
        }
        (Shape::Map(map), Value::Object(members)) if holds_structs(&map.value) => {
            members.iter_mut().for_each(|(key, member)| order_in(&map.value, member, before.at(&[key])));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue, value};

    #[test]
    fn members_stand_as_the_type_has_them() {
        let pod = catalogue::kind("", "v1", "Pod").unwrap();
        let container = value!({"name": "c", "imagePullPolicy": "Always", "image": "i", "resources": {}});
        let mut object = value!({"spec": {"restartPolicy": "Always", "containers": [container]}, "kind": "Pod"});
        order(&pod.of, &mut object, &Value::Null);
        let text = String::from_utf8(crate::json::to_vec(&object)).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"Pod","spec":{"containers":[{"name":"c","image":"i","resources":{},"imagePullPolicy":"Always"}],"restartPolicy":"Always"}}"#
        );
    }
}
