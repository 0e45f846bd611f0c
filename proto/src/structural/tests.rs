use super::*;
use crate::schema::{AnyKind, Shape, Topology, Type};
use crate::value;
use crate::value::{Float, Map};

fn half() -> Value {
    Float::new(0.5).map_or(Value::Null, Value::Float)
}

fn pruned(schema: Value, mut object: Value, is_root: bool) -> (Value, Vec<String>) {
    let unknown = prune(&Structural::of(&schema), &mut object, is_root);
    (object, unknown)
}

#[test]
fn unknown_members_are_dropped_and_named() {
    let text = || value!({"type": "string"});
    let schema = value!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": (text()),
            "o": {"type": "object", "properties": {"b": (text())}},
            "l": {"type": "array", "items": {"type": "object", "properties": {"c": (text())}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": (text())}}},
            "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "p": {"type": "object", "properties": {"q": (text())}}
            }},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "emp": {"type": "object"},
            "anyprops": {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}
        }},
        "status": {"type": "object", "properties": {"s": (text())}}
    }});
    let object = value!({"kind": "Hat", "metadata": {"name": "a", "other": 1}, "spec": {
        "a": "1", "zz": 1, "o": {"b": "x", "yy": 2}, "l": [{"c": "x", "xx": 1}, {"ww": 2}],
        "m": {"k": {"d": "1", "vv": 1}}, "keep": {"p": {"q": "1", "uu": 1}, "other": {"t": 1}},
        "raw": {"any": [1, {"x": 2}]}, "emp": {"gone": 1}, "anyprops": {"a": 1, "b": {"c": 2}}
    }, "status": {"s": "x", "t": 1}, "extra": {"x": 1}});
    let (object, unknown) = pruned(schema, object, true);
    let expected = value!({"kind": "Hat", "metadata": {"name": "a", "other": 1}, "spec": {
        "a": "1", "o": {"b": "x"}, "l": [{"c": "x"}, {}], "m": {"k": {"d": "1"}},
        "keep": {"p": {"q": "1"}, "other": {"t": 1}}, "raw": {"any": [1, {"x": 2}]}, "emp": {},
        "anyprops": {"a": 1, "b": {"c": 2}}
    }, "status": {"s": "x"}});
    assert_eq!(object, expected);
    let paths = [
        "extra",
        "spec.emp.gone",
        "spec.keep.p.uu",
        "spec.l[0].xx",
        "spec.l[1].ww",
        "spec.m.k.vv",
        "spec.o.yy",
        "spec.zz",
        "status.t",
    ];
    assert_eq!(unknown, paths);
}

#[test]
fn pruning_knows_embedded_objects_and_lists_that_preserve() {
    let schema = value!({"type": "object", "properties": {
        "es": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": {"type": "object", "properties": {"r": {"type": "integer"}}}
        }},
        "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {
            "type": "object", "properties": {"in": {"type": "object", "properties": {}}}
        }},
        "all": {"type": "object", "additionalProperties": true}
    }});
    let object = value!({
        "metadata": {"x": 1},
        "es": {"apiVersion": "v1", "kind": "X", "metadata": {"y": 1}, "spec": {"r": 1, "s": 2}, "extra": 1},
        "list": [{"kept": 1, "in": {"gone": 1}}],
        "all": {"a": 1, "b": {"c": 1}}
    });
    let (object, unknown) = pruned(schema, object, false);
    assert_eq!(unknown, ["all.b.c", "es.extra", "es.spec.s", "list[0].in.gone"]);
    let expected = value!({
        "es": {"apiVersion": "v1", "kind": "X", "metadata": {"y": 1}, "spec": {"r": 1}},
        "list": [{"kept": 1, "in": {}}],
        "all": {"a": 1, "b": {}}
    });
    assert_eq!(object, expected);
}

#[test]
fn defaults_are_set_where_there_is_an_object() {
    let schema = Structural::of(&value!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer", "default": 1},
        "opts": {"type": "object", "default": {}, "properties": {
            "x": {"type": "integer", "default": 7},
            "y": {"type": "object", "properties": {"z": {"type": "boolean", "default": true}}}
        }},
        "noDefault": {"type": "object", "properties": {"x": {"type": "integer", "default": 7}}},
        "list": {"type": "array", "default": [{"name": "main"}], "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "port": {"type": "integer", "default": 80}
        }}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "w": {"type": "number", "default": (half())}
        }}},
        "n": {"type": "string", "nullable": true, "default": "dd"},
        "plain": {"type": "string"},
        "nulls": {"type": "array", "items": {"type": "string"}}
    }}}}));
    let whole = value!({"replicas": 1, "opts": {"x": 7}, "list": [{"name": "main", "port": 80}], "n": "dd"});
    let cases = [
        (value!({"kind": "K"}), value!({"kind": "K"})),
        (value!({"spec": null}), value!({})),
        (value!({"spec": {}}), value!({"spec": whole})),
        (
            value!({"spec": {"replicas": null, "opts": null, "list": null, "n": null, "plain": null, "nulls": [null]}}),
            value!({"spec": {
                "replicas": 1, "opts": {"x": 7}, "list": [{"name": "main", "port": 80}], "n": null, "nulls": [null]
            }}),
        ),
        (
            value!({"spec": {
                "replicas": 0, "opts": {"y": {}}, "noDefault": {}, "list": [{"name": "a"}, {"port": null}],
                "map": {"m": {}, "k": {"w": 2}}, "n": "x"
            }}),
            value!({"spec": {
                "replicas": 0, "opts": {"y": {"z": true}, "x": 7}, "noDefault": {"x": 7},
                "list": [{"name": "a", "port": 80}, {"port": 80}], "map": {"m": {"w": (half())}, "k": {"w": 2}}, "n": "x"
            }}),
        ),
    ];
    for (mut object, expected) in cases {
        drop_nulls(&schema, &mut object);
        default(&schema, &mut object).unwrap();
        assert_eq!(object, expected);
        default(&schema, &mut object).unwrap();
        assert_eq!(object, expected, "once more");
    }
}

#[test]
fn defaulting_alone_keeps_nulls_without_default() {
    let schema = Structural::of(&value!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string", "default": "x"},
        "l": {"type": "array", "items": {"type": "string", "default": "y"}}
    }}));
    let mut object = value!({"a": null, "b": null, "l": [null]});
    default(&schema, &mut object).unwrap();
    assert_eq!(object, value!({"a": null, "b": "x", "l": ["y"]}));
    drop_nulls(&schema, &mut object);
    assert_eq!(object, value!({"b": "x", "l": ["y"]}));
}

fn field<'t>(of: &'t Type, name: &str) -> &'t Shape {
    &of.field(name).unwrap().1.shape
}

fn structure(shape: &Shape) -> &Type {
    match shape {
        Shape::Struct(of) => of,
        other => panic!("{other:?}"),
    }
}

#[test]
fn types_tell_apply_which_fields_are_granular() {
    let schema = Structural::of(&value!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "plain": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "map": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}
            }}
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "sel": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "ref": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"name": {"type": "string"}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "in": {"type": "object", "properties": {"x": {"type": "integer"}}}
        }},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "raw": {"x-kubernetes-preserve-unknown-fields": true},
        "ios": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"},
        "tmpl": {
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true
        }
    }}}}));
    let of = object_type(&schema, "Sample", "v1");
    let names: Vec<&str> = of.fields.iter().map(|field| &*field.name).collect();
    assert_eq!((&*of.name, &*of.package, of.open), ("Sample", "v1", false));
    assert_eq!(names, ["kind", "apiVersion", "metadata", "spec"]);
    assert_eq!(structure(field(&of, "metadata")).name, "ObjectMeta");
    let spec = structure(field(&of, "spec"));
    let list = |name: &str| match field(spec, name) {
        Shape::List(list) => list.topology.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(list("plain"), Topology::Atomic);
    assert_eq!(list("set"), Topology::Set);
    assert_eq!(list("map"), Topology::Map(vec!["port".into(), "protocol".into()].into()));
    let Shape::List(map) = field(spec, "map") else { panic!() };
    assert_eq!(structure(&map.item).field("protocol").unwrap().1.default.as_deref(), Some("\"TCP\""));
    let atomic = |name: &str| match field(spec, name) {
        Shape::Map(map) => (map.atomic, matches!(map.value, Shape::Any(AnyKind::Json))),
        other => panic!("{other:?}"),
    };
    assert_eq!([atomic("labels"), atomic("sel"), atomic("free")], [(false, false), (true, false), (false, true)]);
    assert!(structure(field(spec, "ref")).atomic);
    let open = structure(field(spec, "open"));
    assert!(open.open && structure(field(open, "in")).open && !spec.open);
    assert!(matches!(field(spec, "raw"), Shape::Any(AnyKind::Json)));
    assert!(matches!(field(spec, "ios"), Shape::Any(AnyKind::Json)));
    assert!(matches!(field(spec, "when"), Shape::Quantity), "any scalar");
    let embedded = structure(field(spec, "tmpl"));
    assert!(embedded.open && embedded.field("metadata").is_some());
}

#[test]
fn invalid_schemas_and_deep_schemas_are_read() {
    assert!(Structural::of(&Value::from("x")).properties.is_empty());
    let odd = value!({"type": 1, "properties": [], "items": true, "enum": "x", "required": [1], "maximum": "5"});
    let read = Structural::of(&odd);
    assert!(read.of.is_none() && read.items.is_none() && read.rules().required().is_empty());
    let mut deep = value!({"type": "string"});
    for _ in 0..5000 {
        deep = value!({"type": "object", "properties": {"a": deep}});
    }
    let mut read = &Structural::of(&deep);
    let mut levels = 0;
    while let Some(below) = read.property("a") {
        (read, levels) = (below, levels + 1);
    }
    assert!(levels > 100 && read.preserves_unknown);
    std::mem::forget(deep);
}

#[test]
fn the_list_of_unknown_members_is_limited() {
    let map = value!({"type": "object", "additionalProperties": {"type": "object", "properties": {}}});
    let schema = value!({"type": "object", "properties": {"spec": map}});
    let members: Map = (0..2_000).map(|number| (format!("a{number}"), Value::Int(0))).collect();
    let mut long: Map = Map::new();
    long.insert("k".repeat(100_000), members);
    let (object, unknown) = pruned(schema, value!({"spec": long}), true);
    assert!(unknown.iter().map(String::len).sum::<usize>() <= 1 << 20, "{}", unknown.len());
    assert!(!unknown.is_empty());
    let left = object.map_at(&["spec"]).unwrap().values().next().unwrap();
    assert_eq!(left, &Value::object(), "all are dropped");
}

#[test]
fn defaults_are_counted_before_they_are_made() {
    let schema = Structural::of(&value!({"type": "object", "properties": {"list": {"type": "array", "items": {
        "type": "object", "properties": {"text": {"type": "string", "default": ("x".repeat(200_000))}}
    }}}}));
    let items = |count: usize| value!({"list": (vec![Value::object(); count])});
    assert_eq!(default(&schema, &mut items(20)), Ok(()));
    assert_eq!(default(&schema, &mut items(3_000)), Err(Overgrown));
}

#[test]
fn the_properties_of_an_object_come_in_the_order_of_the_schema_whatever_has_more() {
    let names = (0..500).map(|n| (format!("p{n:03}"), value!({"type": "string"}))).collect::<Map>();
    let schema = Structural::of(&value!({"type": "object", "properties": names}));
    let stated = |count: usize| {
        let map: Map = (0..count).rev().map(|n| (format!("p{:03}", 2 * n), Value::Null)).collect();
        let found: Vec<String> = schema.stated(&map).map(|(name, ..)| name.to_string()).collect();
        assert!(found.is_sorted());
        found.len()
    };
    assert_eq!([stated(0), stated(3), stated(62), stated(63), stated(250)], [0, 3, 62, 63, 250]);
}

#[test]
fn fields_share_a_schema_if_they_state_the_same() {
    let schema = Structural::of(&value!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 3, "description": "One."},
        "b": {"type": "string", "maxLength": 3, "description": "Another."},
        "c": {"type": "string", "maxLength": 4},
        "d": {"type": "integer", "default": 1},
        "e": {"type": "integer", "default": 2},
        "f": {"type": "object", "default": {"x": 1, "y": 2}},
        "g": {"type": "object", "default": {"y": 2, "x": 1}},
        "h": {"anyOf": [{"minimum": 1}]},
        "i": {"anyOf": [{"minimum": 2}]}
    }}));
    let at = |name: &str| &schema.properties.iter().find(|(own, _)| own == name).unwrap().1;
    for (one, other, is_shared) in
        [("a", "b", true), ("a", "c", false), ("d", "e", false), ("f", "g", true), ("h", "i", false)]
    {
        assert_eq!(at(one) == at(other), is_shared, "{one} {other}");
    }
}
