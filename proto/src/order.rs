//! The order of members: that of the type, as Go encodes structs.

use crate::conform::{holds_structs, position};
use crate::schema::{Shape, Type};
use crate::value::Value;

/// Puts the members of every struct in a value into the order of its type, after some were added.
pub fn order(of: &Type, value: &mut Value) {
    let Value::Object(map) = value else { return };
    let (mut next, mut ordered) = (0, true);
    for (key, member) in map.iter_mut() {
        let Some(at) = position(of, key, next) else { continue };
        ordered &= at >= next;
        next = at + 1;
        order_in(&of.fields[at].shape, member);
    }
    if !ordered {
        map.sort_by_rank(|key| position(of, key, 0).unwrap_or(usize::MAX));
    }
}

fn order_in(shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Struct(of), value) => order(of, value),
        (Shape::List(list), Value::Array(items)) if holds_structs(&list.item) => {
            items.iter_mut().for_each(|item| order_in(&list.item, item));
        }
        (Shape::Map(map), Value::Object(members)) if holds_structs(&map.value) => {
            members.iter_mut().for_each(|(_, member)| order_in(&map.value, member));
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
        order(&pod.of, &mut object);
        let text = String::from_utf8(crate::json::to_vec(&object)).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"Pod","spec":{"containers":[{"name":"c","image":"i","resources":{},"imagePullPolicy":"Always"}],"restartPolicy":"Always"}}"#
        );
    }
}
