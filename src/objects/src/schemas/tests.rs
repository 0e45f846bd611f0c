//! Compares the errors of values with those of the reference, by schema.

use flotilla_proto::json;
use flotilla_proto::structural::Structural;
use flotilla_proto::value::Value;

use super::ratchet::{validate_status_update, validate_update};
use super::{coerce, validate};
use crate::field::Errors;

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// Returns the schema of objects with this `spec`.
fn of_spec(spec: &str) -> Structural {
    Structural::of(&parse(&format!(r#"{{"type": "object", "properties": {{"spec": {spec}}}}}"#)))
}

fn messages(errors: Errors) -> Vec<String> {
    errors.0.iter().map(|error| format!("{} {error}", error.kind.reason().trim_start_matches("FieldValue"))).collect()
}

fn found(schema: &Structural, object: &str) -> Vec<String> {
    let mut errors = Errors::default();
    validate::validate(schema, &parse(object), &mut errors);
    messages(errors)
}

fn changed(schema: &Structural, old: &str, new: &str) -> Vec<String> {
    let mut errors = Errors::default();
    validate_update(schema, &parse(new), &parse(old), &mut errors);
    messages(errors)
}

/// Checks a table of specs and the errors of each.
fn check(schema: &Structural, cases: &[(&str, &[&str])]) {
    for (spec, expected) in cases {
        assert_eq!(found(schema, &format!(r#"{{"spec": {spec}}}"#)), *expected, "{spec}");
    }
}

#[test]
fn errors_of_types_and_bounds_match() {
    let schema = of_spec(
        r#"{"type": "object", "required": ["s"], "properties": {
        "s": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "e": {"type": "string", "enum": ["red", "green"]},
        "i": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
        "n": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true},
        "b": {"type": "boolean"},
        "a": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1, "maxItems": 3},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
            "required": ["x", "y"]},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2, "minProperties": 1},
        "i32": {"type": "integer", "format": "int32"}, "i64": {"type": "integer", "format": "int64"},
        "f": {"type": "number", "format": "float"}, "ei": {"type": "integer", "enum": [1, 3]}}}"#,
    );
    assert!(found(&schema, r#"{"kind": "K"}"#).is_empty());
    assert_eq!(
        found(&schema, r#"{"spec": "text"}"#),
        [r#"TypeInvalid spec: Invalid value: "string": spec in body must be of type object: "string""#]
    );
    check(
        &schema,
        &[
            (
                r#"{"s": "abc", "e": "red", "i": 4, "n": 0.5, "b": true, "a": ["x"], "o": {"x": 1, "y": "z"},
                "m": {"k": 1}, "i32": 5, "f": 1.5, "ei": 3, "i64": 9223372036854775807}"#,
                &[],
            ),
            ("{}", &["Required spec.s: Required value"]),
            (
                r#"{"s": 1}"#,
                &[r#"TypeInvalid spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer""#],
            ),
            (
                r#"{"s": true}"#,
                &[r#"TypeInvalid spec.s: Invalid value: "boolean": spec.s in body must be of type string: "boolean""#],
            ),
            (
                r#"{"s": ["a"]}"#,
                &[r#"TypeInvalid spec.s: Invalid value: "array": spec.s in body must be of type string: "array""#],
            ),
            (
                r#"{"s": {}}"#,
                &[r#"TypeInvalid spec.s: Invalid value: "object": spec.s in body must be of type string: "object""#],
            ),
            (
                r#"{"s": null}"#,
                &[r#"TypeInvalid spec.s: Invalid value: "null": spec.s in body must be of type string: "null""#],
            ),
            (
                r#"{"s": "a"}"#,
                &[r#"Invalid spec.s: Invalid value: "a": spec.s in body should be at least 2 chars long"#],
            ),
            (r#"{"s": "abcdef"}"#, &["TooLong spec.s: Too long: may not be more than 5 bytes"]),
            (r#"{"s": "AB"}"#, &[r#"Invalid spec.s: Invalid value: "AB": spec.s in body should match '^[a-z]+$'"#]),
            (
                r#"{"s": "A"}"#,
                &[r#"Invalid spec.s: Invalid value: "A": spec.s in body should be at least 2 chars long"#],
            ),
            (r#"{"s": "éèê"}"#, &[r#"Invalid spec.s: Invalid value: "éèê": spec.s in body should match '^[a-z]+$'"#]),
            (
                r#"{"s": "abc", "e": "blue"}"#,
                &[r#"NotSupported spec.e: Unsupported value: "blue": supported values: "red", "green""#],
            ),
            (
                r#"{"s": "abc", "e": 1}"#,
                &[
                    r#"TypeInvalid spec.e: Invalid value: "integer": spec.e in body must be of type string: "integer""#,
                    r#"NotSupported spec.e: Unsupported value: 1: supported values: "red", "green""#,
                ],
            ),
            (
                r#"{"s": "abc", "ei": 2}"#,
                &[r#"NotSupported spec.ei: Unsupported value: 2: supported values: "1", "3""#],
            ),
            (r#"{"s": "abc", "ei": 3.0}"#, &[]),
            (
                r#"{"s": "abc", "b": "true"}"#,
                &[r#"TypeInvalid spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string""#],
            ),
        ],
    );
}

#[test]
fn errors_of_numbers_match() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "i": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
        "n": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true},
        "half": {"type": "number", "multipleOf": 0.5}, "ihalf": {"type": "integer", "multipleOf": 0.5},
        "big": {"type": "number", "maximum": 1000000}, "e": {"type": "number", "enum": [123456789.125, 1e20]},
        "u64": {"type": "number", "maximum": 18446744073709551615}, "beyond": {"type": "number", "minimum": 1e20},
        "i32": {"type": "integer", "format": "int32"}, "f": {"type": "number", "format": "float"}}}"#,
    );
    check(
        &schema,
        &[
            (
                r#"{"e": 3}"#,
                &[
                    r#"NotSupported spec.e: Unsupported value: 3: supported values: "123456789.125", "100000000000000000000""#,
                ],
            ),
            // Beyond all integers, a bound of an integer becomes the least of them.
            (
                r#"{"u64": 1}"#,
                &[
                    "Invalid spec.u64: Invalid value: 1: spec.u64 in body should be less than or equal to -9223372036854775808",
                ],
            ),
            (r#"{"u64": 1.5}"#, &[]),
            (r#"{"beyond": 1}"#, &[]),
            (r#"{"i": 0}"#, &["Invalid spec.i: Invalid value: 0: spec.i in body should be greater than or equal to 1"]),
            (r#"{"i": 12}"#, &["Invalid spec.i: Invalid value: 12: spec.i in body should be less than or equal to 10"]),
            (r#"{"i": 3}"#, &["Invalid spec.i: Invalid value: 3: spec.i in body should be a multiple of 2"]),
            (
                r#"{"i": "4"}"#,
                &[r#"TypeInvalid spec.i: Invalid value: "string": spec.i in body must be of type integer: "string""#],
            ),
            (r#"{"i": 4.0}"#, &[]),
            (
                r#"{"i": 4.5}"#,
                &[
                    r#"TypeInvalid spec.i: Invalid value: "number": spec.i in body must be of type integer: "number""#,
                    r#"Invalid <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.i"#,
                    "Invalid spec.i: Invalid value: 4.5: spec.i in body should be a multiple of 2",
                ],
            ),
            (r#"{"n": 0}"#, &["Invalid spec.n: Invalid value: 0: spec.n in body should be greater than 0"]),
            (r#"{"n": 1}"#, &["Invalid spec.n: Invalid value: 1: spec.n in body should be less than 1"]),
            (r#"{"n": 1.5}"#, &["Invalid spec.n: Invalid value: 1.5: spec.n in body should be less than 1"]),
            (r#"{"half": 1.5}"#, &[]),
            (
                r#"{"half": 1.2}"#,
                &["Invalid spec.half: Invalid value: 1.2: spec.half in body should be a multiple of 0.5"],
            ),
            (
                r#"{"half": -2}"#,
                &["Invalid spec.half: Invalid value: 0: factor MultipleOf declared for spec.half must be positive: 0"],
            ),
            (
                r#"{"ihalf": 2}"#,
                &[
                    r#"Invalid <nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in spec.ihalf"#,
                ],
            ),
            (
                r#"{"big": 2000000.5}"#,
                &[
                    "Invalid spec.big: Invalid value: 2.0000005e+06: spec.big in body should be less than or equal to 1e+06",
                ],
            ),
            (
                r#"{"big": 2000000}"#,
                &["Invalid spec.big: Invalid value: 2000000: spec.big in body should be less than or equal to 1000000"],
            ),
            (
                r#"{"i32": 3000000000}"#,
                &[
                    r#"Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32"#,
                ],
            ),
            (
                r#"{"i32": true}"#,
                &[r#"TypeInvalid spec.i32: Invalid value: "": spec.i32 in body must be of type int32: """#],
            ),
            (
                r#"{"f": 1e39}"#,
                &[
                    r#"Invalid <nil>: Invalid value: "": Checked value must be of type number with format float in spec.f"#,
                ],
            ),
        ],
    );
}

#[test]
fn errors_of_lists_and_objects_match() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "a": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1, "maxItems": 3},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
            "required": ["x", "y"]},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2, "minProperties": 1},
        "closed": {"type": "object", "additionalProperties": false},
        "unique": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "one": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "name"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}}}}}"#,
    );
    check(
        &schema,
        &[
            (r#"{"a": []}"#, &["Invalid spec.a: Invalid value: 0: spec.a in body should have at least 1 items"]),
            (r#"{"a": ["a", "b", "c", "d"]}"#, &["TooMany spec.a: Too many: 4: must have at most 3 items"]),
            (
                r#"{"a": ["a", "toolong", 3]}"#,
                &[
                    "TooLong spec.a[1]: Too long: may not be more than 3 bytes",
                    r#"TypeInvalid spec.a[2]: Invalid value: "integer": spec.a[2] in body must be of type string: "integer""#,
                ],
            ),
            (
                r#"{"a": "x"}"#,
                &[r#"TypeInvalid spec.a: Invalid value: "string": spec.a in body must be of type array: "string""#],
            ),
            (r#"{"o": {}}"#, &["Required spec.o.x: Required value", "Required spec.o.y: Required value"]),
            (
                r#"{"o": {"x": "y", "y": "1"}}"#,
                &[
                    r#"TypeInvalid spec.o.x: Invalid value: "string": spec.o.x in body must be of type integer: "string""#,
                ],
            ),
            (
                r#"{"o": []}"#,
                &[r#"TypeInvalid spec.o: Invalid value: "array": spec.o in body must be of type object: "array""#],
            ),
            (
                r#"{"m": {"a": "1"}}"#,
                &[
                    r#"TypeInvalid spec.m.a: Invalid value: "string": spec.m.a in body must be of type integer: "string""#,
                ],
            ),
            (r#"{"m": {}}"#, &["Invalid spec.m: Invalid value: 0: spec.m in body should have at least 1 properties"]),
            (r#"{"m": {"a": 1, "b": 2, "c": 3}}"#, &["TooMany spec.m: Too many: 3: must have at most 2 items"]),
            (
                r#"{"closed": {"k": 1}}"#,
                &[r#"Invalid spec.closed: Invalid value: "k": spec.closed.k in body is a forbidden property"#],
            ),
            (
                r#"{"unique": [1, 2, 1]}"#,
                &[r#"Invalid spec.unique: Invalid value: "": spec.unique in body shouldn't contain duplicates"#],
            ),
            (r#"{"set": ["x", "y", "x", "x"]}"#, &[r#"Duplicate spec.set[2]: Duplicate value: "x""#]),
            (
                r#"{"one": [{"name": "d"}, {"name": "d"}, {}, {}]}"#,
                &[
                    r#"Duplicate spec.one[1]: Duplicate value: {"name":"d"}"#,
                    "Duplicate spec.one[3]: Duplicate value: {}",
                ],
            ),
            (
                r#"{"two": [{"port": 1, "name": "a"}, {"port": 1}, {"name": "a", "port": 1}]}"#,
                &[r#"Duplicate spec.two[2]: Duplicate value: {"name":"a","port":1}"#],
            ),
        ],
    );
}

#[test]
fn errors_of_alternatives_match() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "one": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "any": {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-preserve-unknown-fields": true,
            "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
        "all": {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^x"}]},
        "no": {"type": "string", "not": {"enum": ["bad", "worse"]}},
        "nope": {"type": "object", "not": {"required": ["a", "b"]}},
        "nested": {"type": "object", "properties": {"p": {"type": "object", "properties": {"q": {"type": "string"}}}},
            "anyOf": [{"properties": {"p": {"properties": {"q": {"enum": ["x"]}}}}},
                {"properties": {"p": {"required": ["q"]}}}]},
        "num": {"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": -10}]}}}"#,
    );
    let one = r#""spec.one" must validate one and only one schema (oneOf)"#;
    let remark = |why: &str| format!(r#"Invalid <nil>: Invalid value: "": {why}"#);
    let cases: [(&str, Vec<String>); 18] = [
        (r#"{"one": {"a": 1}}"#, vec![]),
        (
            r#"{"one": {}}"#,
            vec![remark(&format!("{one}. Found none valid")), "Required spec.one.a: Required value".into()],
        ),
        (r#"{"one": {"a": 1, "b": 2}}"#, vec![remark(&format!("{one}. Found 2 valid alternatives"))]),
        (
            r#"{"one": {"a": "x"}}"#,
            vec![
                r#"TypeInvalid spec.one.a: Invalid value: "string": spec.one.a in body must be of type integer: "string""#
                    .into(),
            ],
        ),
        (r#"{"any": {"a": 1}}"#, vec![]),
        (
            r#"{"any": {"b": 1}}"#,
            vec![
                remark(r#""spec.any" must validate at least one schema (anyOf)"#),
                "Required spec.any.a: Required value".into(),
            ],
        ),
        (r#"{"any": {"b": 1, "c": 2}}"#, vec![]),
        (r#"{"all": "xyz"}"#, vec![]),
        (
            r#"{"all": "x"}"#,
            vec![
                r#"Invalid spec.all: Invalid value: "x": spec.all in body should be at least 3 chars long"#.into(),
                remark(r#""spec.all" must validate all the schemas (allOf)"#),
            ],
        ),
        (
            r#"{"all": "ab"}"#,
            vec![
                r#"Invalid spec.all: Invalid value: "ab": spec.all in body should be at least 3 chars long"#.into(),
                r#"Invalid spec.all: Invalid value: "ab": spec.all in body should match '^x'"#.into(),
                remark(r#""spec.all" must validate all the schemas (allOf). None validated"#),
            ],
        ),
        (r#"{"no": "good"}"#, vec![]),
        (r#"{"no": "bad"}"#, vec![remark(r#""spec.no" must not validate the schema (not)"#)]),
        (r#"{"nope": {"a": 1}}"#, vec![]),
        (r#"{"nope": {"a": 1, "b": 2}}"#, vec![remark(r#""spec.nope" must not validate the schema (not)"#)]),
        (r#"{"nested": {"p": {}}}"#, vec![]),
        (r#"{"nested": {"p": {"q": "x"}}}"#, vec![]),
        (
            r#"{"num": 5}"#,
            vec![
                remark(r#""spec.num" must validate at least one schema (anyOf)"#),
                "Invalid spec.num: Invalid value: 5: spec.num in body should be greater than or equal to 10".into(),
            ],
        ),
        (r#"{"num": -11}"#, vec![]),
    ];
    for (spec, expected) in cases {
        assert_eq!(found(&schema, &format!(r#"{{"spec": {spec}}}"#)), expected, "{spec}");
    }
}

#[test]
fn errors_of_formats_and_nulls_match() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "date": {"type": "string", "format": "date"}, "when": {"type": "string", "format": "date-time"},
        "odd": {"type": "string", "format": "unknown-format"}, "nul": {"type": "string", "nullable": true},
        "lst": {"type": "array", "items": {"type": "integer", "nullable": true}},
        "raw": {"x-kubernetes-preserve-unknown-fields": true}}}"#,
    );
    check(
        &schema,
        &[
            (
                r#"{"date": "2023-02-29"}"#,
                &[
                    r#"TypeInvalid spec.date: Invalid value: "2023-02-29": spec.date in body must be of type date: "2023-02-29""#,
                ],
            ),
            (
                r#"{"when": "2024-01-01"}"#,
                &[
                    r#"TypeInvalid spec.when: Invalid value: "2024-01-01": spec.when in body must be of type date-time: "2024-01-01""#,
                ],
            ),
            (
                r#"{"date": 1}"#,
                &[r#"TypeInvalid spec.date: Invalid value: "int64": spec.date in body must be of type date: "int64""#],
            ),
            (r#"{"date": []}"#, &[]),
            (r#"{"odd": "x", "nul": null, "lst": [1, null]}"#, &[]),
            (
                r#"{"lst": [1, "x", null]}"#,
                &[
                    r#"TypeInvalid spec.lst[1]: Invalid value: "string": spec.lst[1] in body must be of type integer: "string""#,
                ],
            ),
            (r#"{"raw": [1, "a", null, {"b": 2.5}]}"#, &[]),
            (r#"{"raw": null}"#, &[]),
        ],
    );
}

#[test]
fn errors_of_integers_or_strings_and_embedded_objects_match() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "p": {"x-kubernetes-int-or-string": true},
        "q": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%$", "maximum": 100},
        "ps": {"type": "array", "items": {"x-kubernetes-int-or-string": true}},
        "e": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "es": {"type": "object", "x-kubernetes-embedded-resource": true, "required": ["spec"],
            "properties": {"spec": {"type": "object", "properties": {"r": {"type": "integer"}}}}}}}"#,
    );
    let wrong = |place: &str, of: &str| {
        format!(r#"TypeInvalid {place}: Invalid value: "{of}": {place} in body must be of type integer,string: "{of}""#)
    };
    check(
        &schema,
        &[
            (r#"{"p": 5, "q": 50}"#, &[]),
            (r#"{"p": "5%", "q": "7%"}"#, &[]),
            (r#"{"p": 5.5}"#, &[&wrong("spec.p", "number")]),
            (r#"{"p": true}"#, &[&wrong("spec.p", "boolean")]),
            (r#"{"p": {}}"#, &[&wrong("spec.p", "object")]),
            (
                r#"{"q": 101}"#,
                &["Invalid spec.q: Invalid value: 101: spec.q in body should be less than or equal to 100"],
            ),
            (r#"{"q": "x"}"#, &[r#"Invalid spec.q: Invalid value: "x": spec.q in body should match '^[0-9]+%$'"#]),
            (r#"{"ps": [1, "a", false]}"#, &[&wrong("spec.ps[2]", "boolean")]),
            (
                r#"{"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": 1}}"#,
                &[],
            ),
            (r#"{"e": {"kind": "Pod"}}"#, &["Required spec.e.apiVersion: Required value"]),
            (r#"{"e": {}}"#, &["Required spec.e.apiVersion: Required value", "Required spec.e.kind: Required value"]),
            (
                r#"{"e": {"apiVersion": "a/b/c", "kind": "Pod"}}"#,
                &[r#"Invalid spec.e.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#],
            ),
            (
                r#"{"e": {"apiVersion": "v1", "kind": "9x!"}}"#,
                &[
                    r#"Invalid spec.e.kind: Invalid value: "9x!": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
                ],
            ),
            (r#"{"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Not Valid"}}}"#, &[]),
            (
                r#"{"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"bad key!": "v"}}}}"#,
                &[
                    r#"Invalid spec.e.metadata.labels: Invalid value: "bad key!": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
                ],
            ),
            (r#"{"es": {"apiVersion": "v1", "kind": "X"}}"#, &["Required spec.es.spec: Required value"]),
        ],
    );
}

#[test]
fn embedded_objects_are_decoded() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "e": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "m": {"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-embedded-resource": true}}}}"#,
    );
    let coerced = |spec: &str| {
        let mut object = parse(&format!(r#"{{"spec": {spec}}}"#));
        let unknown = coerce::coerce(&schema, &mut object).map_err(|error| error.to_string());
        (object.at(&["spec"]).clone(), unknown)
    };
    let (spec, unknown) =
        coerced(r#"{"e": {"metadata": {"unknownMeta": 1, "name": "x"}}, "m": {"k": {"metadata": {"y": 1}}}}"#);
    assert_eq!(spec, parse(r#"{"e": {"metadata": {"name": "x"}}, "m": {"k": {"metadata": {}}}}"#));
    assert_eq!(unknown.unwrap(), ["spec.e.metadata.unknownMeta", "spec.m[k].metadata.y"]);
    assert_eq!(
        coerced(r#"{"e": {"metadata": "x"}}"#).1.unwrap_err(),
        r#"spec.e.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta"#
    );
    assert_eq!(
        coerced(r#"{"e": {"apiVersion": 1}}"#).1.unwrap_err(),
        "spec.e.apiVersion: Invalid value: 1: must be a string"
    );
}

#[test]
fn unchanged_errors_are_tolerated() {
    let schema = of_spec(
        r#"{"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 3}, "b": {"type": "string", "enum": ["ok"]},
        "n": {"type": "integer", "maximum": 5},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 2}},
        "k": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "properties": {"id": {"type": "string"},
                "v": {"type": "string", "pattern": "^v"}}}},
        "o": {"type": "object", "required": ["y"], "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
        "alt": {"type": "integer", "anyOf": [{"maximum": 1}]},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}"#,
    );
    let old = r#"{"spec": {"a": "toolong", "b": "bad", "n": 9, "l": ["abc", "x"],
        "k": [{"id": "1", "v": "x"}, {"id": "2", "v": "v"}], "o": {"x": "1"}, "alt": 2}}"#;
    let with = |member: &str, value: &str| {
        let mut object = parse(old);
        object.set_at(&["spec", member], parse(value));
        changed(&schema, old, &String::from_utf8(json::to_vec(&object)).unwrap())
    };
    assert!(changed(&schema, old, old).is_empty());
    assert!(with("a", r#""abc""#).is_empty());
    assert_eq!(with("a", r#""again too long""#), ["TooLong spec.a: Too long: may not be more than 3 bytes"]);
    assert_eq!(with("b", r#""worse""#), [r#"NotSupported spec.b: Unsupported value: "worse": supported values: "ok""#]);
    assert_eq!(with("n", "8"), ["Invalid spec.n: Invalid value: 8: spec.n in body should be less than or equal to 5"]);
    assert_eq!(with("l", r#"["abc", "y"]"#), ["TooLong spec.l[0]: Too long: may not be more than 2 bytes"]);
    assert!(with("l", r#"["y"]"#).is_empty());
    assert!(with("k", r#"[{"id": "2", "v": "v2"}, {"id": "1", "v": "x"}]"#).is_empty());
    assert_eq!(
        with("k", r#"[{"id": "1", "v": "z"}]"#),
        [r#"Invalid spec.k[0].v: Invalid value: "z": spec.k[0].v in body should match '^v'"#]
    );
    assert_eq!(with("o", r#"{"x": "2"}"#), ["Required spec.o.y: Required value"]);
    assert_eq!(with("alt", "3").len(), 2);
    assert_eq!(with("set", r#"["x", "x"]"#), [r#"Duplicate spec.set[1]: Duplicate value: "x""#]);
    let twice = r#"{"spec": {"set": ["x", "x"]}}"#;
    assert!(changed(&schema, twice, r#"{"spec": {"set": ["x", "x", "y", "y"]}}"#).is_empty());
}

#[test]
fn a_write_of_the_status_checks_only_the_status() {
    let status = r#"{"type": "object", "properties": {"status": {"type": "object",
        "anyOf": [{"required": ["ready"]}], "properties": {"ready": {"type": "boolean"}}}}}"#;
    let schema = Structural::of(&parse(status));
    let mut errors = Errors::default();
    validate_status_update(&schema, &parse(r#"{"status": {"ready": 1}}"#), &parse("{}"), &mut errors);
    assert_eq!(
        messages(errors),
        [r#"TypeInvalid status.ready: Invalid value: "integer": ready in body must be of type boolean: "integer""#]
    );
    let mut errors = Errors::default();
    validate_status_update(&schema, &parse(r#"{"status": {}}"#), &parse("{}"), &mut errors);
    assert_eq!(
        messages(errors),
        [
            r#"Invalid status: Invalid value: "": "" must validate at least one schema (anyOf)"#,
            "Required status.ready: Required value",
        ]
    );
}

#[test]
fn the_size_of_very_many_errors_is_bounded() {
    let schema =
        of_spec(r#"{"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}"#);
    let (key, items) = ("k".repeat(100_000), vec!["1"; 2_000].join(","));
    let errors = {
        let mut errors = Errors::default();
        validate::validate(&schema, &parse(&format!(r#"{{"spec": {{"{key}": [{items}]}}}}"#)), &mut errors);
        errors
    };
    assert!(!errors.is_empty());
    let bytes: usize = errors.0.iter().map(|error| error.field.len() + error.detail.len()).sum();
    assert!(bytes < 2 << 20, "{bytes} bytes of {} errors", errors.0.len());
}
