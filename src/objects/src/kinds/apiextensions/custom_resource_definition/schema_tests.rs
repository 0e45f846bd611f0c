use flotilla_proto::value;

use super::*;

const STRICT: SchemaChecks =
    SchemaChecks { known_types: true, pruned_defaults: true, atomic_sets: true, certain_keys: true };

fn complaints(schema: &Value, status: bool, rules: SchemaChecks) -> Vec<String> {
    let mut errors = Errors::default();
    let stated = Stated { schema, version: "v1", status };
    validate(stated, rules, &Stored::default(), &Path::root("v"), &mut errors);
    errors.0.iter().map(|error| error.to_string().replace("v.openAPIV3Schema", "")).collect()
}

/// Returns the complaints about a schema for `spec` in an object.
fn of_spec(spec: &Value) -> Vec<String> {
    let spec = spec.clone();
    let complaints = complaints(&value!({"type": "object", "properties": {"spec": spec}}), false, STRICT);
    complaints.into_iter().map(|complaint| complaint.replace(".properties[spec]", "")).collect()
}

fn check(cases: &[(Value, &[&str])], complaints: impl Fn(&Value) -> Vec<String>) {
    for (schema, expected) in cases {
        assert_eq!(complaints(schema), *expected, "of {}", crate::field::shown(schema));
    }
}

#[test]
fn a_root_is_an_object_that_does_not_restrict_metadata() {
    let metadata = ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but \
                    metadata is implicitly specified";
    let cases: &[(Value, &[&str])] = &[
        (value!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), &[]),
        (value!({"type": "string"}), &[".type: Invalid value: \"string\": must be object at the root"]),
        (value!({}), &[".type: Required value: must not be empty at the root"]),
        (value!({"type": "object", "nullable": true}), &[".nullable: Forbidden: nullable cannot be true at the root"]),
        (
            value!({"type": "object", "additionalProperties": {"type": "string"}}),
            &[".additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            value!({"type": "object", "properties": {"apiVersion": {"type": "integer"}}}),
            &[".properties[apiVersion].type: Invalid value: \"integer\": must be string"],
        ),
        (
            value!({"type": "object", "properties": {"metadata": {"type": "string"}}}),
            &[".properties[metadata].type: Invalid value: \"string\": must be object"],
        ),
        (
            value!({"type": "object", "properties": {"metadata": {"type": "object",
                "properties": {"name": {"type": "string", "pattern": "^a"}}}}}),
            &[],
        ),
        (
            value!({"type": "object", "properties": {"metadata": {"type": "object",
                "properties": {"labels": {"type": "object"}}}}}),
            &[metadata],
        ),
        (value!({"type": "object", "properties": {"metadata": {"type": "object", "description": "d"}}}), &[metadata]),
        (
            value!({"type": "object", "properties": {"metadata": {"type": "object", "additionalProperties": false}}}),
            &[metadata],
        ),
        (
            value!({"type": "object", "properties": {"metadata": {"type": "object",
                "properties": {"name": {"type": "string", "default": "x"}}}}}),
            &[".properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"],
        ),
    ];
    check(cases, |schema| complaints(schema, false, STRICT));
}

#[test]
fn a_root_has_few_keywords_if_the_status_is_a_subresource() {
    let cases: &[(Value, &[&str])] = &[
        (value!({"type": "object", "description": "d", "required": ["spec"]}), &[]),
        (
            value!({"type": "array", "items": {"type": "string"}}),
            &[
                ".type: Invalid value: \"array\": only \"object\" is allowed as the type at the root of the schema if the \
                 status subresource is enabled",
                ".type: Invalid value: \"array\": must be object at the root",
            ],
        ),
    ];
    check(cases, |schema| complaints(schema, true, STRICT));
    let found = complaints(&value!({"type": "object", "maxProperties": 3, "nullable": false}), true, STRICT);
    let begin =
        r#": Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"#;
    assert!(found[0].starts_with(begin), "{}", found[0]);
    assert!(found[0].contains(r#""MaxProperties":3,"MinProperties":null,"#), "{}", found[0]);
    let end = "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs \
               Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the \
               status subresource is enabled";
    assert!(found[0].ends_with(end), "{}", found[0]);
}

#[test]
fn every_value_has_a_type() {
    let cases: &[(Value, &[&str])] = &[
        (value!({}), &[".type: Required value: must not be empty for specified object fields"]),
        (
            value!({"type": "object", "properties": {"a": {"description": "no type"}}}),
            &[".properties[a].type: Required value: must not be empty for specified object fields"],
        ),
        (value!({"type": "array"}), &[".items: Required value: must be specified"]),
        (
            value!({"type": "array", "items": {}}),
            &[".items.type: Required value: must not be empty for specified array items"],
        ),
        (
            value!({"type": "nothing"}),
            &[".type: Unsupported value: \"nothing\": supported values: \"array\", \"boolean\", \"integer\", \
               \"number\", \"object\", \"string\""],
        ),
        (value!({"x-kubernetes-int-or-string": true, "type": "integer"}), &[]),
        (value!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}), &[]),
        (
            value!({"x-kubernetes-int-or-string": true,
                "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"type": "string"}]}),
            &[".allOf[1].type: Forbidden: must be empty to be structural"],
        ),
        (
            value!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
            &[".x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if \
               x-kubernetes-int-or-string is true"],
        ),
        (value!({"type": "string", "x-kubernetes-preserve-unknown-fields": true}), &[]),
        (
            value!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            &[".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            value!({"type": "string", "x-kubernetes-embedded-resource": true}),
            &[
                ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without \
                 x-kubernetes-preserve-unknown-fields",
                ".type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is true",
            ],
        ),
    ];
    check(cases, of_spec);
}

#[test]
fn schemas_under_junctors_define_no_structure() {
    let with = |keyword: &str, value: Value| {
        let mut spec = value!({"type": "object", "properties": {"a": {"type": "string"}}});
        spec.set_at(&[keyword], value);
        spec
    };
    let cases: &[(Value, &[&str])] = &[
        (with("anyOf", value!([{"type": "object"}])), &[".anyOf[0].type: Forbidden: must be empty to be structural"]),
        (with("anyOf", value!([{"properties": {"b": {"minLength": 1}}}])), &[]),
        (
            with("allOf", value!([{"properties": {"a": {"default": "x"}}}])),
            &[".allOf[0].properties[a].default: Forbidden: must be undefined to be structural"],
        ),
        (
            with("oneOf", value!([{"description": "d", "required": ["a"]}])),
            &[".oneOf[0].description: Forbidden: must be empty to be structural"],
        ),
        (
            with("not", value!({"properties": {"a": {"nullable": true}}})),
            &[".not.properties[a].nullable: Forbidden: must be false to be structural"],
        ),
        (
            with("anyOf", value!([{"x-kubernetes-validations": [{"rule": "self.a == 1"}]}])),
            &[".anyOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"],
        ),
        (
            with("not", value!({"properties": {"metadata": {}}, "additionalProperties": true})),
            &[
                ".not.additionalProperties: Forbidden: must be undefined to be structural",
                ".not.properties[metadata]: Forbidden: must not be specified in a nested context",
            ],
        ),
    ];
    check(cases, of_spec);
    let root = value!({"type": "object", "anyOf": [{"properties": {"b": {"minLength": 1}}}]});
    assert_eq!(
        complaints(&root, false, STRICT),
        [".properties[b]: Required value: because it is defined in .anyOf[0].properties[b]"]
    );
}

#[test]
fn unsupported_keywords_are_refused() {
    let exclusive = ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive";
    let unique = ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes \
                  quadratic";
    let cases: &[(Value, &[&str])] = &[
        (
            value!({"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"}}),
            &[exclusive],
        ),
        (
            value!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            &[exclusive],
        ),
        (value!({"type": "string", "uniqueItems": true}), &[unique]),
        (value!({"type": "object", "$ref": "#/definitions/x"}), &[".$ref: Forbidden: $ref is not supported"]),
        (value!({"type": "object", "id": "x"}), &[".id: Forbidden: id is not supported"]),
        (
            value!({"type": "object", "$schema": "x"}),
            &[": Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"],
        ),
        (
            value!({"type": "array", "items": [{"type": "string"}]}),
            &[".items: Forbidden: items must be a schema object and not an array"],
        ),
        (
            value!({"type": "object", "dependencies": {}, "definitions": {"x": {"id": "y"}}}),
            &[
                ".definitions: Forbidden: definitions is not supported",
                ".dependencies: Forbidden: dependencies is not supported",
                ".definitions[x].id: Forbidden: id is not supported",
            ],
        ),
    ];
    check(cases, of_spec);
}

#[test]
fn lists_of_type_map_have_keys_that_are_always_set() {
    let list = |items: Value, keys: Value| value!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let item = value!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object"}}});
    let mut whole = item.clone();
    whole.set_at(&["required"], value!(["a", "b"]));
    let cases: &[(Value, &[&str])] = &[
        (list(whole.clone(), value!(["a"])), &[]),
        (
            list(item, value!(["a"])),
            &[".items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it \
               must have a default or be a required property"],
        ),
        (
            list(whole, value!(["b", "c", "b"])),
            &[
                ".items.properties[b].type: Invalid value: \"object\": must be a scalar type if parent array's \
                 x-kubernetes-list-type is map",
                ".x-kubernetes-list-map-keys: Invalid value: [\"b\",\"c\",\"b\"]: entries must all be names of item \
                 properties",
                ".items.properties[b].type: Invalid value: \"object\": must be a scalar type if parent array's \
                 x-kubernetes-list-type is map",
                ".x-kubernetes-list-map-keys: Invalid value: [\"b\",\"c\",\"b\"]: must not contain duplicate entries",
            ],
        ),
        (
            list(value!({"type": "string", "nullable": true}), value!([])),
            &[
                ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
                ".items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map",
                ".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            ],
        ),
        (
            value!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set",
                "x-kubernetes-list-map-keys": ["a"]}),
            &[
                ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
                 x-kubernetes-list-type=set",
                ".x-kubernetes-list-type: Invalid value: \"set\": must be map if x-kubernetes-list-map-keys is non-empty",
            ],
        ),
        (
            value!({"type": "object", "x-kubernetes-list-type": "bag", "x-kubernetes-map-type": "none"}),
            &[
                ".x-kubernetes-map-type: Unsupported value: \"none\": supported values: \"atomic\", \"granular\"",
                ".type: Invalid value: \"object\": must be array if x-kubernetes-list-type is specified",
                ".x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\"",
            ],
        ),
    ];
    check(cases, of_spec);
}

#[test]
fn defaults_of_objects_are_whole_objects() {
    let embedded = |default: Value| {
        value!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            "default": default})
    };
    let cases: &[(Value, &[&str])] = &[
        (embedded(value!({})), &[".default.apiVersion: Required value", ".default.kind: Required value"]),
        (
            embedded(value!({"apiVersion": "v1", "kind": "x", "metadata": {"name": 1}})),
            &[".default.metadata: Invalid value: {\"name\":1}: json: cannot unmarshal number into Go struct field \
               ObjectMeta.name of type string"],
        ),
        (embedded(value!({"apiVersion": "v1", "kind": "x"})), &[]),
    ];
    check(cases, of_spec);
}

#[test]
fn defaults_have_no_unknown_fields() {
    let unknown = ".default: Invalid value: {\"b\":\"x\",\"c\":\"y\"}: must not have unknown fields";
    let cases: &[(Value, &[&str])] = &[
        (
            value!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": "x", "c": "y"}}),
            &[unknown],
        ),
        (
            value!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": "x", "c": "y"},
                "x-kubernetes-preserve-unknown-fields": true}),
            &[],
        ),
        (value!({"type": "object", "additionalProperties": {"type": "string"}, "default": {"b": "x", "c": "y"}}), &[]),
    ];
    check(cases, of_spec);
    let old = value!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "default": {"x": 1}}}}}}]}});
    let kept = SchemaChecks::replacing(Some(&old));
    assert!(!kept.pruned_defaults && kept.known_types && kept.atomic_sets && kept.certain_keys);
    assert_eq!(
        complaints(old.list_at(&["spec", "versions"])[0].at(&["schema", "openAPIV3Schema"]), false, kept).len(),
        0
    );
}

#[test]
fn rules_have_texts_that_fit_on_a_line() {
    let of_rule = |rule: &Value| {
        let rule = rule.clone();
        let spec = value!({"type": "object", "properties": {"b": {"type": "string"}},
            "x-kubernetes-validations": [rule]});
        let complaints = of_spec(&spec);
        complaints.into_iter().map(|complaint| complaint.replace(".x-kubernetes-validations[0]", "")).collect()
    };
    let cases: &[(Value, &[&str])] = &[
        (value!({"rule": "self.b == 'a'", "message": "m", "fieldPath": ".b"}), &[]),
        (value!({"rule": "  "}), &[".rule: Required value: rule is not specified"]),
        (
            value!({"rule": "r", "message": "multi\nline"}),
            &[".message: Invalid value: \"multi\\nline\": must not contain line breaks"],
        ),
        (
            value!({"rule": "r", "message": "   "}),
            &[".message: Invalid value: \"   \": must be non-empty if specified"],
        ),
        (
            value!({"rule": "a ||\nb"}),
            &[".message: Required value: message must be specified if rule contains line breaks"],
        ),
        (
            value!({"rule": "r", "messageExpression": " "}),
            &[".messageExpression: Required value: messageExpression must be non-empty if specified"],
        ),
        (
            value!({"rule": "r", "reason": "Because"}),
            &[".reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\", \
               \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""],
        ),
        (value!({"rule": "r", "fieldPath": "b"}), &[".fieldPath: Invalid value: \"b\": must be a valid path"]),
        (value!({"rule": "r", "fieldPath": ".b[0]"}), &[".fieldPath: Invalid value: \".b[0]\": must be a valid path"]),
        (
            value!({"rule": "r", "fieldPath": ".b\n"}),
            &[
                ".fieldPath: Invalid value: \".b\\n\": must not contain line breaks",
                ".fieldPath: Invalid value: \".b\\n\": must be a valid path",
            ],
        ),
    ];
    check(cases, of_rule);
}

#[test]
fn rules_are_compiled_unless_their_schema_has_errors() {
    let spec = |of: &str| {
        value!({"type": "object", "properties": {"b": {"type": (of)}},
            "x-kubernetes-validations": [{"rule": "self.b == 1"}]})
    };
    let rule = r#"{"Rule":"self.b == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}"#;
    let why =
        "compilation failed: ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'";
    let text = format!(".x-kubernetes-validations[0].rule: Invalid value: {rule}: {why}\n | self.b == 1\n | .......^");
    assert_eq!(of_spec(&spec("string")), [text]);
    assert_eq!(of_spec(&spec("integer")), Vec::<String>::new());
    assert!(!of_spec(&spec("text")).is_empty());
    assert!(of_spec(&spec("text")).iter().all(|text| text.starts_with(".properties[b].type: Unsupported value")));
}

#[test]
fn the_cost_of_single_rules_in_unchanged_schemas_is_not_limited() {
    let spec = value!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.a.all(x, self.a.all(y, x == y))"}]});
    let schema = value!({"type": "object", "properties": {"spec": (spec)}});
    let object = value!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": (schema.clone())}}]}});
    let complaints = |old: Option<&Value>| {
        let mut errors = Errors::default();
        let stated = Stated { schema: &schema, version: "v1", status: false };
        validate(stated, STRICT, &Stored::of(&object, old), &Path::root("v"), &mut errors);
        errors.0.iter().map(|error| error.field.replace("v.openAPIV3Schema", "")).collect::<Vec<_>>()
    };
    let rule = ".properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!(complaints(None), [rule, rule, ""]);
    // The rules together may still cost too much.
    assert_eq!(complaints(Some(&object)), [rule, ""]);
}

#[test]
fn defaults_are_valid_by_their_own_schema() {
    check(
        &[
            (value!({"type": "string", "enum": ["x", "y"], "default": "x"}), &[]),
            (
                value!({"type": "string", "default": 5}),
                &[".default: Invalid value: \"integer\":  in body must be of type string: \"integer\""],
            ),
            (
                value!({"type": "integer", "maximum": 3, "default": 5}),
                &[".default: Invalid value: 5:  in body should be less than or equal to 3"],
            ),
            (
                value!({"type": "string", "enum": ["x", "y"], "default": "z"}),
                &[".default: Unsupported value: \"z\": supported values: \"x\", \"y\""],
            ),
            (
                value!({"type": "integer", "default": 5, "x-kubernetes-validations": [{"rule": "self < 5"}]}),
                &[".default: Invalid value: 5: failed rule: self < 5"],
            ),
        ],
        of_spec,
    );
}
