use flotilla_proto::{catalogue, value};

use super::*;

fn object(text: &str) -> Value {
    text::parse(text.as_bytes()).expect("test data is JSON")
}

fn patched(format: Format, current: &str, patch: &str) -> Result<Value, (u16, String)> {
    let of = &catalogue::kind("apps", "v1", "Deployment").expect("a built-in kind").of;
    let refuse = |error: ApiError| (error.code, error.message);
    Patch::parse(format, patch.as_bytes(), true)
        .and_then(|patch| patch.apply(Some(of), object(current)))
        .map_err(refuse)
}

fn check(format: Format, cases: &[(&str, &str, &str)]) {
    for (current, patch, expected) in cases {
        assert_eq!(patched(format, current, patch), Ok(object(expected)), "{patch} on {current}");
    }
}

fn refused(format: Format, current: &str, patch: &str) -> (u16, String) {
    patched(format, current, patch).expect_err(patch)
}

#[test]
fn json_patch_follows_the_reference() {
    check(
        Format::Json,
        &[
            (r#"{"a":{"b":1}}"#, r#"[{"op":"replace","path":"/a/absent","value":2}]"#, r#"{"a":{"b":1,"absent":2}}"#),
            (
                r#"{"a":1}"#,
                r#"[{"op":"test","path":"/x","value":null},{"op":"add","path":"/b"}]"#,
                r#"{"a":1,"b":null}"#,
            ),
            (
                r#"{"a":[1,2]}"#,
                r#"[{"op":"add","path":"/a/-","value":3},{"op":"add","path":"/a/0","value":0}]"#,
                r#"{"a":[0,1,2,3]}"#,
            ),
            (
                r#"{"a":[1,2]}"#,
                r#"[{"op":"remove","path":"/a/-1"},{"op":"add","path":"/a/-1","value":9}]"#,
                r#"{"a":[1,9]}"#,
            ),
            (r#"{"a/b":{"c~d":1}}"#, r#"[{"op":"move","from":"/a~1b/c~0d","path":"/e"}]"#, r#"{"a/b":{},"e":1}"#),
            (r#"{"a":{"b":1}}"#, r#"[{"op":"copy","from":"/a","path":"/a/c"}]"#, r#"{"a":{"b":1,"c":{"b":1}}}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{"b":2}}]"#, r#"{"b":2}"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"ignored/b","value":2}]"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1}"#, "null", r#"{"a":1}"#),
        ],
    );
    for patch in [
        r#"[{"op":"remove","path":"/x"}]"#,
        r#"[{"op":"test","path":"/a","value":1.0}]"#,
        r#"[{"op":"test","path":"/l","value":null}]"#,
        r#"[{"op":"add","path":"/x/y","value":1}]"#,
        r#"[{"op":"add","path":"/l/9","value":1}]"#,
        r#"[{"op":"add","path":"nowhere","value":1}]"#,
        r#"[{"op":"frobnicate","path":"/a"}]"#,
        r#"[{"path":"/a"}]"#,
        r#"[{"op":"add","value":1}]"#,
        r#"[null]"#,
    ] {
        assert_eq!(refused(Format::Json, r#"{"a":1,"l":[1]}"#, patch).0, 422, "{patch}");
    }
    let (code, message) = refused(Format::Json, "{}", r#"{"op":"add"}"#);
    assert_eq!(
        (code, message.as_str()),
        (400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp")
    );
}

#[test]
fn numbers_keep_their_text_except_in_strategic_patches() {
    let with = |number: &str| format!(r#"{{"spec":{{"replicas":{number}}}}}"#);
    let written = |format, patch: &str| {
        let made = patched(format, r#"{"spec":{}}"#, patch).expect(patch);
        String::from_utf8(text::to_vec(&made)).expect("JSON")
    };
    for number in ["1e3", "1.50", "18446744073709551616"] {
        let json = format!(r#"[{{"op":"add","path":"/spec/replicas","value":{number}}}]"#);
        assert_eq!(written(Format::Json, &json), with(number));
        assert_eq!(written(Format::Merge, &with(number)), with(number));
    }
    assert_eq!(written(Format::Strategic, &with("1e3")), with("1000"));
    assert_eq!(written(Format::Strategic, &with("1e20")), with("0"), "the low bits of the smallest integer");
    let surge = |number: &str| format!(r#"{{"spec":{{"strategy":{{"rollingUpdate":{{"maxSurge":{number}}}}}}}}}"#);
    assert_eq!(written(Format::Strategic, &surge("15e0")), surge("15"));
}

#[test]
fn json_patch_is_bounded() {
    let many =
        format!("[{}]", vec![r#"{"op":"test","path":"/a"}"#; crate::limits::JSON_PATCH_OPERATIONS + 1].join(","));
    assert_eq!(refused(Format::Json, "{}", &many).0, 413);
    // Nests the object into its own innermost object again and again.
    let mut nest = Vec::new();
    for n in 0..14 {
        let path = "/a".repeat(1 << n);
        nest.push(format!(r#"{{"op":"copy","from":"/a","path":"{path}/a"}}"#));
    }
    assert_eq!(refused(Format::Json, r#"{"a":{}}"#, &format!("[{}]", nest.join(","))).0, 422);
    let wide = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    let copies: Vec<String> = (0..4).map(|n| format!(r#"{{"op":"copy","from":"/a","path":"/b{n}"}}"#)).collect();
    assert_eq!(refused(Format::Json, &wide, &format!("[{}]", copies.join(","))).0, 422);
}

#[test]
fn strict_decoding_checks_the_patch_itself() {
    let body = br#"[{"op":"add","op":"test","path":"/a","extra":1}]"#;
    let complaints = Patch::parse(Format::Json, body, true).expect("a patch").complaints;
    assert_eq!(complaints, [r#"json patch duplicate field "[0].op""#, r#"json patch unknown field "[0].extra""#]);
    assert!(Patch::parse(Format::Json, body, false).expect("a patch").complaints.is_empty());
}

#[test]
fn merge_patch_follows_rfc_7386() {
    // The examples of the RFC's appendix whose document and patch are objects, and its null handling in lists.
    check(
        Format::Merge,
        &[
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            ("{}", r#"{"a":[null,{"b":null}]}"#, r#"{"a":[null,{}]}"#),
        ],
    );
    for (body, message) in [
        ("null", "Invalid JSON Patch"),
        ("[]", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("{bad", "error decoding patch: invalid character 'b' looking for beginning of object key string"),
    ] {
        assert_eq!(refused(Format::Merge, "{}", body), (400, message.to_owned()));
    }
}

/// Returns a deployment whose pod template has this spec.
fn with(spec: &str) -> String {
    format!(r#"{{"spec":{{"template":{{"spec":{spec}}}}}}}"#)
}

#[test]
fn strategic_merge_follows_the_reference() {
    let cases = [
        // Named items merge, new ones come first.
        (
            r#"{"containers":[{"name":"c","image":"i"}]}"#,
            r#"{"containers":[{"name":"e","image":"k"}]}"#,
            r#"{"containers":[{"name":"e","image":"k"},{"name":"c","image":"i"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]}"#,
            r#"{"containers":[{"name":"c","env":[{"name":"C","value":"3"},{"name":"A","value":"9"}]}]}"#,
            r#"{"containers":[{"name":"c","env":[{"name":"C","value":"3"},{"name":"A","value":"9"},{"name":"B","value":"2"}]}]}"#,
        ),
        (
            r#"{"containers":[{"name":"c"},{"name":"d"}]}"#,
            r#"{"containers":[{"name":"c","$patch":"delete"},{"name":"x","$patch":"delete"}]}"#,
            r#"{"containers":[{"name":"d"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"c"},{"name":"d"}]}"#,
            r#"{"containers":[{"$patch":"replace"},{"name":"only"}]}"#,
            r#"{"containers":[{"name":"only"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"c"},{"name":"d"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"name":"c","image":"o"}]}"#,
            r#"{"containers":[{"name":"d"},{"name":"c","image":"o"}]}"#,
        ),
        (
            r#"{"volumes":[{"name":"v","emptyDir":{}}]}"#,
            r#"{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]}"#,
            r#"{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}"#,
        ),
        (
            r#"{"volumes":[{"name":"v","emptyDir":{}}]}"#,
            r#"{"volumes":[{"name":"v","emptyDir":null,"hostPath":{"path":"/x"}}]}"#,
            r#"{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}"#,
        ),
        // Lists without a merge key, and maps with a directive.
        (r#"{"tolerations":[{"key":"k"}]}"#, r#"{"tolerations":[{"key":"l"}]}"#, r#"{"tolerations":[{"key":"l"}]}"#),
        (
            r#"{"nodeSelector":{"x":"y","z":"w"}}"#,
            r#"{"nodeSelector":{"x":null,"n":"m"}}"#,
            r#"{"nodeSelector":{"z":"w","n":"m"}}"#,
        ),
        (
            r#"{"nodeSelector":{"x":"y"}}"#,
            r#"{"nodeSelector":{"$patch":"replace","n":"m"}}"#,
            r#"{"nodeSelector":{"n":"m"}}"#,
        ),
        (r#"{"nodeSelector":{"x":"y"}}"#, r#"{"nodeSelector":{"$patch":"delete"}}"#, r#"{"nodeSelector":{}}"#),
        ("{}", r#"{"nodeSelector":{"$patch":"replace","n":"m"}}"#, "{}"),
        (
            "{}",
            r#"{"containers":[{"name":"c","command":null,"env":[{"$patch":"delete","name":"x"}]}]}"#,
            r#"{"containers":[{"name":"c","env":[]}]}"#,
        ),
    ];
    for (current, patch, expected) in cases {
        check(Format::Strategic, &[(&with(current), &with(patch), &with(expected))]);
    }
    check(
        Format::Strategic,
        &[
            (
                r#"{"metadata":{"finalizers":["a"]}}"#,
                r#"{"metadata":{"finalizers":["b","c"]}}"#,
                r#"{"metadata":{"finalizers":["b","c","a"]}}"#,
            ),
            (
                r#"{"metadata":{"finalizers":["b","c","a"]}}"#,
                r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","n"]}}"#,
                r#"{"metadata":{"finalizers":["b","c"]}}"#,
            ),
            (
                r#"{"metadata":{"finalizers":["b","c"]}}"#,
                r#"{"metadata":{"$setElementOrder/finalizers":["c","b"]}}"#,
                r#"{"metadata":{"finalizers":["c","b"]}}"#,
            ),
        ],
    );
}

#[test]
fn malformed_strategic_patches_get_the_errors_of_the_reference() {
    let current = with(r#"{"containers":[{"name":"only","image":"one"}]}"#);
    for (patch, code, message) in [
        (
            r#"{"containers":[{"image":"nokey"}]}"#,
            500,
            "map: map[image:nokey] does not contain declared merge key: name",
        ),
        (
            r#"{"containers":["text"]}"#,
            500,
            "list element types are not identical: [[map[image:one name:only]] [text]]",
        ),
        (
            r#"{"containers":[{"name":"only","$patch":"sideways"}]}"#,
            500,
            "unknown patch type: sideways in map: map[$patch:sideways name:only]",
        ),
        (
            r#"{"containers":[{"name":"only","$patch":"merge"}]}"#,
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            r#"{"$setElementOrder/containers":[{"name":"d"}],"containers":[{"name":"c"}]}"#,
            500,
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:d]]\n",
        ),
        (r#"{"$setElementOrder/x":[]}"#, 500, "unable to find api field in struct PodSpec for the json field \"x\""),
        (r#"{"$retainKeys":["x"],"y":1}"#, 400, "invalid patch format of retainKeys"),
        (r#"{"$deleteFromPrimitiveList":[]}"#, 400, "invalid patch format of primitive list"),
        (r#"{"containers":[["x"]]}"#, 500, "list element types are not identical: [[map[image:one name:only]] [[x]]]"),
    ] {
        assert_eq!(refused(Format::Strategic, &current, &with(patch)), (code, message.to_owned()), "{patch}");
    }
}

#[test]
fn errors_show_the_value_that_cannot_be_decoded() {
    let of = &catalogue::kind("apps", "v1", "Deployment").expect("a built-in kind").of;
    let patch = Patch::parse(Format::Strategic, br#"{"spec":{"replicas":"many"}}"#, true).expect("a patch");
    let result = patch.apply(Some(of), value!({"kind": "Deployment"})).expect("it merges");
    let error = patch.undecodable(Some(of), &Value::Null, &result, "unused");
    assert_eq!(
        error.message,
        r#" "" is invalid: patch: Invalid value: "map[spec:map[replicas:many]]": unrecognized type: int32"#
    );
    for (spec, why) in [
        (
            r#"{"revisionHistoryLimit":"x","strategy":{"rollingUpdate":{"maxSurge":{"x":1}}}}"#,
            "json: cannot unmarshal object into Go value of type int32",
        ),
        (r#"{"replicas":"x","strategy":{"rollingUpdate":{"maxSurge":{"x":1}}}}"#, "unrecognized type: int32"),
    ] {
        let body = format!(r#"{{"spec":{spec}}}"#);
        let patch = Patch::parse(Format::Strategic, body.as_bytes(), true).expect("a patch");
        let result = patch.apply(Some(of), value!({"kind": "Deployment"})).expect("it merges");
        let message = patch.undecodable(Some(of), &Value::Null, &result, "unused").message;
        assert!(message.ends_with(&format!(": {why}")), "{message}");
    }
    let patch = Patch::parse(Format::Merge, br#"{"b":{"z":1,"a":5,"l":[{"y":1,"x":2}]}}"#, true).expect("a patch");
    let result = patch.apply(Some(of), value!({"kind": "x", "b": {"q": 1}})).expect("it merges");
    let error = patch.undecodable(Some(of), &Value::Null, &result, "why");
    assert_eq!(
        error.message,
        r#" "" is invalid: patch: Invalid value: "{\"b\":{\"a\":5,\"l\":[{\"x\":2,\"y\":1}],\"q\":1,\"z\":1},\"kind\":\"x\"}": why"#
    );
}

#[test]
fn errors_do_not_show_the_applied_part_of_a_strategic_patch() {
    let of = &catalogue::kind("apps", "v1", "Deployment").expect("a built-in kind").of;
    let current = value!({"spec": {"strategy": {"type": "Recreate"}, "template": {"spec": {"containers": [
        {"name": "c", "ports": [{"containerPort": 80}]}]}}}});
    let shown = |spec: &str| {
        let body = format!(r#"{{"spec":{{"replicas":"many",{spec}}}}}"#);
        let patch = Patch::parse(Format::Strategic, body.as_bytes(), true).expect("a patch");
        let result = patch.apply(Some(of), current.clone()).expect("it merges");
        let message = patch.undecodable(Some(of), &current, &result, "unused").message;
        let shown = message.split('"').find(|part| part.starts_with("map[")).expect("the patch").to_owned();
        shown.replace("map[spec:map[replicas:many ", "").trim_end_matches(']').to_owned()
    };
    for (patch, rest) in [
        (
            r#""template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"c","image":"j"}]}}"#,
            "template:map[spec:map[",
        ),
        (
            r#""template":{"spec":{"containers":[{"name":"c","$setElementOrder/ports":[],"tty":true}]}}"#,
            "template:map[spec:map[containers:[map[name:c tty:true",
        ),
        (r#""strategy":{"$retainKeys":["type"],"type":"RollingUpdate"}"#, "strategy:map[type:RollingUpdate"),
        (r#""strategy":{"$patch":"replace","type":"RollingUpdate"}"#, "strategy:map[type:RollingUpdate"),
        (
            r#""template":{"spec":{"affinity":{"nodeAffinity":{"$patch":"replace"}}}}"#,
            "template:map[spec:map[affinity:map[",
        ),
        (
            r#""template":{"spec":{"volumes":[{"name":"v","$retainKeys":["name"]}]}}"#,
            "template:map[spec:map[volumes:[map[$retainKeys:[name] name:v",
        ),
    ] {
        assert_eq!(shown(patch), rest, "{patch}");
    }
}

/// A small deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn value(&mut self, depth: u32) -> Value {
        const KEYS: [&str; 12] = [
            "name",
            "containers",
            "env",
            "spec",
            "template",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/containers",
            "value",
            "nodeSelector",
            "finalizers",
        ];
        match self.roll(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(true),
            2 => Value::Int(1),
            3 => value!("delete"),
            4 => value!("c"),
            5 | 6 => Value::Array((0..self.roll(3)).map(|_| self.value(depth - 1)).collect()),
            _ => (0..self.roll(4))
                .map(|_| (KEYS[usize::try_from(self.roll(12)).unwrap_or(0)], self.value(depth - 1)))
                .collect::<Map>()
                .into(),
        }
    }
}

#[test]
fn any_patch_of_any_object_ends_without_a_panic() {
    let of = &catalogue::kind("", "v1", "Pod").expect("a built-in kind").of;
    let (mut dice, mut merged) = (Dice(7), 0);
    for _ in 0..20_000 {
        let (target, patch) = (dice.value(5), dice.value(5));
        for format in [Format::Merge, Format::Strategic, Format::Json] {
            if let Ok(patch) = Patch::parse(format, &text::to_vec(&patch), true) {
                merged += usize::from(patch.apply(Some(of), target.clone()).is_ok());
            }
        }
        // Merge patches are idempotent.
        let once = merge::apply(target, &patch);
        assert_eq!(merge::apply(once.clone(), &patch), once);
    }
    assert!(merged > 1000, "most rolls must reach the merge");
}
