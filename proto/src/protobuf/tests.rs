//! Messages against bytes of the reference's own encoder, and round trips of every type.

use super::sample::{Random, sample};
use super::*;
use crate::catalogue;
use crate::conform;
use crate::limits::{JSON_READ_DEPTH_MAX, PROTOBUF_DEPTH_MAX, PROTOBUF_WRITE_DEPTH_MAX};
use crate::schema::Type;
use crate::value;
use crate::value::{Map, Value};

/// Types with an object as JSON and the bytes that Kubernetes' generated Go code makes of it.
const GOLDEN: [(&str, &str, &str); 14] = [
    (
        "core.v1.Taint",
        r#"{"key":"k","effect":"NoSchedule","timeAdded":"2024-02-29T12:34:56Z"}"#,
        "0a016b12001a0a4e6f5363686564756c65220808f0f381af061000",
    ),
    ("core.v1.HTTPGetAction", r#"{"path":"/x","port":"web"}"#, "0a022f781209080110001a037765621a002200"),
    ("core.v1.TCPSocketAction", r#"{"port":8080}"#, "0a07080010903f1a001200"),
    (
        "core.v1.ResourceRequirements",
        r#"{"limits":{"cpu":"500m","memory":"2Gi"}}"#,
        "0a0d0a0363707512060a043530306d0a0f0a066d656d6f727912050a03324769",
    ),
    (
        "coordination.v1.LeaseSpec",
        r#"{"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"2020-01-01T00:00:00.123456Z"}"#,
        "0a026d65100f220b0880c2aff005108094ef3a",
    ),
    (
        "authentication.v1.UserInfo",
        r#"{"username":"u","extra":{"a":["x","y"]}}"#,
        "0a01751200220b0a016112060a01780a0179",
    ),
    (
        "policy.v1.PodDisruptionBudgetStatus",
        r#"{"disruptedPods":{"p":"2020-01-01T00:00:00Z"},"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}"#,
        "0800120d0a017012080880c2aff00510001801200228013002",
    ),
    (
        "admissionregistration.v1.NamedRuleWithOperations",
        r#"{"resourceNames":["n"],"operations":["CREATE"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["*"]}"#,
        "0a016e12170a06435245415445120d0a0461707073120276311a012a",
    ),
    ("core.v1.Volume", r#"{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}"#, "0a0176120b12090a0012050a03314769"),
    (
        "batch.v1.PodFailurePolicyOnExitCodesRequirement",
        r#"{"operator":"In","values":[1,-2]}"#,
        "1202496e180118feffffffffffffffff01",
    ),
    ("resource.v1.DeviceAttribute", r#"{"int":-1}"#, "10ffffffffffffffffff01"),
    (
        "core.v1.Secret",
        r#"{"metadata":{},"immutable":false,"data":{"k":"AAH/"}}"#,
        "0a100a0012001a0022002a0032003800420012080a016b12030001ff1a002800",
    ),
    (
        "meta.v1.ManagedFieldsEntry",
        r#"{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}"#,
        "0a016d12054170706c791a0032084669656c647356313a0c0a0a7b22663a61223a7b7d7d4200",
    ),
    (
        "apiextensions.v1.JSONSchemaProps",
        r#"{"type":"object","default":{"a":1},"maximum":2.5,"enum":["x",null],"items":[{"type":"string"}],"properties":{"p":{"type":"integer"}},"additionalProperties":false,"dependencies":{"d":["e"]}}"#,
        concat!(
            "0a00120022002a066f626a65637432003a0042090a077b2261223a317d490000000000000440500060007a00900100a201050a03",
            "227822a20100c2012612240a00120022002a06737472696e6732003a00500060007a00900100a80200b80200c00200ea012a0a01",
            "7012250a00120022002a07696e746567657232003a00500060007a00900100a80200b80200c00200f2010208008202080a016412",
            "03120165a80200b80200c00200"
        ),
    ),
];

/// Returns the type whose published name has this ending.
fn of_type(name: &str) -> &'static Type {
    let ends = |of: &&&'static Type| of.openapi.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    catalogue::types().iter().find(ends).unwrap_or_else(|| panic!("{name} is a type"))
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn message(of: &Type, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(of, value, &mut out).unwrap_or_else(|error| panic!("{}: {error}", of.name));
    out
}

fn with_messages() -> impl Iterator<Item = &'static Type> {
    catalogue::types().iter().copied().filter(|of| !of.message.is_empty())
}

#[test]
fn messages_are_equal_to_the_reference() {
    for (name, json, bytes) in GOLDEN {
        let (of, bytes) = (of_type(name), unhex(bytes));
        let mut value = crate::json::parse(json.as_bytes()).expect("JSON");
        assert_eq!(conform::conform(of, &mut value), Ok(Vec::new()), "{name}");
        assert_eq!(message(of, &value), bytes, "{name}");
        let decoded = decode(of, &bytes).expect(name);
        assert_eq!(String::from_utf8_lossy(&crate::json::to_vec(&decoded)), json, "{name}");
    }
}

fn comes_back(of: &Type, value: Value) {
    let bytes = message(of, &value);
    let mut transcoded = Vec::new();
    let json = crate::json::to_vec(&value);
    Transcoder::default().transcode(of, &json, &mut transcoded).expect("JSON");
    assert_eq!(transcoded, bytes, "{}", of.name);
    // Text with spaces does not have the stored form, so the tape is used.
    let spaced = [b" ", &*json].concat();
    transcoded.clear();
    Transcoder::default().transcode(of, &spaced, &mut transcoded).expect("JSON");
    assert_eq!(transcoded, bytes, "{} with a space", of.name);
    let back = decode(of, &bytes).unwrap_or_else(|error| panic!("{}: {error}", of.name));
    assert_eq!(crate::json::to_vec(&back), json, "{}", of.name);
    assert_eq!(message(of, &back), bytes, "{}", of.name);
    let mut conformed = back.clone();
    assert_eq!(conform::conform(of, &mut conformed), Ok(Vec::new()));
    assert_eq!(crate::json::to_vec(&conformed), crate::json::to_vec(&back), "{} is not conformed", of.name);
}

#[test]
fn full_objects_of_every_type_come_back() {
    let mut random = Random(1);
    for of in with_messages() {
        comes_back(of, sample(of, &mut random, 100));
    }
}

#[test]
fn stored_members_are_transcoded_in_one_pass() {
    let (mut random, mut room) = (Random(3), forward::Room::default());
    let mut ways = [Vec::new(), Vec::new()];
    for of in with_messages() {
        let (json, mut out) = (crate::json::to_vec(&sample(of, &mut random, 50)), vec![1]);
        let written = forward::transcode(of, &json, &mut room, &mut out);
        assert!(written.is_some() || out == [1], "{}", of.name);
        ways[usize::from(written.is_some())].push(&*of.name);
    }
    let [otherwise, directly] = ways;
    assert!(otherwise.len() * 20 < directly.len(), "{otherwise:?}");
    assert!(["Pod", "Node", "Service", "EndpointSlice", "Lease"].iter().all(|name| directly.contains(name)));
}

#[test]
fn members_in_any_order_are_the_same_message() {
    let of = of_type("core.v1.Container");
    let texts = [
        r#"{"name":"a","image":"i","env":[{"name":"x","value":"\"y\""}],"tty":true}"#,
        r#"{"tty":true,"env":[{"value":"\u0022y\u0022","name":"x"}],"image":"i","name":"a"}"#,
        r#"{"name":"a","image":"i","unknown":[1,{"a":"}"}],"env":[{"name":"x","value":"\"y\""}],"tty":true}"#,
        r#" { "name" : "a", "image":"i","env":[{"name":"x","value":"\"y\""}],"tty":true }"#,
    ];
    let messages = texts.map(|text| {
        let mut out = Vec::new();
        Transcoder::default().transcode(of, text.as_bytes(), &mut out).expect("JSON");
        out
    });
    assert!(messages.iter().all(|message| *message == messages[0]));
    assert_eq!(messages[0], message(of, &crate::json::parse(texts[0].as_bytes()).expect("JSON")));
}

#[test]
fn damaged_text_causes_no_panic_in_any_conversion() {
    let of = of_type("core.v1.Pod");
    let mut random = Random(11);
    let whole = crate::json::to_vec(&sample(of, &mut random, 20));
    let mut transcoder = Transcoder::default();
    for _ in 0..3000 {
        let mut text = whole.clone();
        let at = random.below(text.len() as u64) as usize;
        match random.below(3) {
            0 => text[at] = b"\"{}[],:\\n1 "[random.below(11) as usize],
            1 => text.truncate(at),
            _ => text.insert(at, b"\"{}[],:\\n1 "[random.below(11) as usize]),
        }
        let mut out = vec![1];
        match transcoder.transcode(of, &text, &mut out) {
            Ok(()) => assert_eq!(out[0], 1),
            Err(_) => assert_eq!(out, [1]),
        }
    }
}

#[test]
fn partial_objects_of_every_type_come_back() {
    for round in 1..=12 {
        let mut random = Random(round);
        for of in with_messages() {
            comes_back(of, sample(of, &mut random, 4 * round));
        }
    }
}

#[test]
fn empty_objects_are_the_zero_value_and_back() {
    for of in with_messages() {
        let zero = conform::zero(of);
        assert_eq!(message(of, &zero), message(of, &Value::object()), "{}", of.name);
        assert_eq!(decode(of, &[]).as_ref().map(crate::json::to_vec), Ok(crate::json::to_vec(&zero)), "{}", of.name);
    }
}

#[test]
fn garbage_is_refused_or_ignored_without_a_panic() {
    let mut random = Random(7);
    let kinds =
        ["core.v1.Pod", "apiextensions.v1.JSONSchemaProps", "coordination.v1.Lease", "resource.v1.ResourceSlice"];
    for name in kinds {
        let of = of_type(name);
        let whole = message(of, &sample(of, &mut random, 30));
        for _ in 0..3000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, random.next() as u8),
                }
            }
            if let Ok(value) = decode(of, &bytes) {
                let mut conformed = value.clone();
                // Times outside of four-digit years do not parse again.
                let _ = conform::conform(of, &mut conformed);
                message(of, &conformed);
            }
            let _ = open(&bytes);
        }
    }
}

#[test]
fn fields_are_merged_skipped_and_bounded() {
    let of = of_type("core.v1.ConfigMap");
    // metadata in two parts, a key twice, and an unknown field 99.
    let bytes = [
        &[0x0a, 3, 0x0a, 1, b'n', 0x0a, 3, 0x1a, 1, b's'][..],
        &[0x12, 6, 0x0a, 1, b'k', 0x12, 1, b'1', 0x12, 6, 0x0a, 1, b'k', 0x12, 1, b'2', 0x98, 0x06, 7],
    ]
    .concat();
    let value = decode(of, &bytes).expect("a message");
    assert_eq!(value, value!({"metadata": {"name": "n", "namespace": "s"}, "data": {"k": "2"}}));
    let field = "Metadata".to_owned();
    assert_eq!(decode(of, &[0x08, 1]), Err(Error::WireType { found: 0, field }));
    assert_eq!(decode(of, &[0x0a, 5, 1]), Err(Error::UnexpectedEnd));

    let schema = of_type("apiextensions.v1.JSONSchemaProps");
    let nest = |depth: usize| (0..depth).fold(Value::object(), |inner, _| value!({"not": inner}));
    let mut out = vec![1];
    assert_eq!(encode(schema, &nest(PROTOBUF_WRITE_DEPTH_MAX), &mut out), Err(Error::TooDeep));
    assert!(encode(schema, &nest(PROTOBUF_WRITE_DEPTH_MAX - 1), &mut Vec::new()).is_ok());
    assert_eq!(out, [1]);
    let deepest = message(schema, &nest(PROTOBUF_DEPTH_MAX - 1));
    assert!(decode(schema, &deepest).is_ok());
    let mut deeper = vec![0xda, 0x01];
    wire::push_varint(deepest.len() as u64, &mut deeper);
    deeper.extend(deepest);
    assert_eq!(decode(schema, &deeper), Err(Error::TooDeep));
    assert!(matches!(encode(of_type("meta.v1.Table"), &Value::object(), &mut out), Err(Error::JsonOnly(_))));
}

#[test]
fn text_that_is_not_json_is_refused() {
    let (of, mut transcoder) = (of_type("core.v1.ConfigMap"), Transcoder::default());
    let mut out = vec![1];
    for text in ["", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1}", "{\"data\":{\"a\":\"b}", "{} {}", "\"\\"] {
        assert!(matches!(transcoder.transcode(of, text.as_bytes(), &mut out), Err(Error::Json(_))), "{text}");
    }
    let levels = JSON_READ_DEPTH_MAX + 2;
    let deep = "[".repeat(levels) + &"]".repeat(levels);
    assert_eq!(transcoder.transcode(of, deep.as_bytes(), &mut out), Err(Error::Json(crate::json::Error::TooDeep)));
    assert_eq!(out, [1]);
    let spaced = " { \"data\" : { \"k\\u0031\" : \"\\\"v\" , \"a\" : \"\" } } ";
    transcoder.transcode(of, spaced.as_bytes(), &mut out).expect("JSON");
    assert_eq!(decode(of, &out[1..]).expect("a message").at(&["data"]), &value!({"a": "", "k1": "\"v"}));
}

#[test]
fn only_the_owned_fields_of_the_object_itself_are_taken_as_text() {
    let owned =
        r#"{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"}\"]":{}}}},{"time":null}],"uid":"u"}"#;
    let text = format!(r#"{{"metadata":{owned},"spec":{{"fieldsV1":{{"a":1}},"template":{{"metadata":{owned}}}}}}}"#);
    let of = of_type("apps.v1.Deployment");
    let mut transcoded = Vec::new();
    Transcoder::default().transcode(of, text.as_bytes(), &mut transcoded).expect("JSON");
    assert_eq!(transcoded, message(of, &crate::json::parse(text.as_bytes()).expect("JSON")));

    let of = of_type("apiextensions.v1.CustomResourceDefinition");
    let schema = r#"{"properties":{"fieldsV1":{"type":"object","properties":{"metadata":{"type":"string"}}}}}"#;
    let text = format!(r#"{{"metadata":{owned},"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#);
    let mut transcoded = Vec::new();
    Transcoder::default().transcode(of, text.as_bytes(), &mut transcoded).expect("JSON");
    assert_eq!(transcoded, message(of, &crate::json::parse(text.as_bytes()).expect("JSON")));
}

#[test]
fn packed_and_repeated_numbers_are_the_same() {
    let of = of_type("batch.v1.PodFailurePolicyOnExitCodesRequirement");
    let packed = decode(of, &[0x1a, 3, 1, 0x80, 0x01]).expect("a message");
    assert_eq!(packed.list_at(&["values"]), [Value::Int(1), Value::Int(128)]);
    assert_eq!(Ok(packed), decode(of, &[0x18, 1, 0x18, 0x80, 0x01]));
}

#[test]
fn envelopes_state_kind_and_version() {
    let of = of_type("core.v1.ConfigMap");
    let mut out = Vec::new();
    let value = value!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    encode_object(of, "v1", "ConfigMap", &value, &mut out).expect("fits");
    assert!(out.starts_with(b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12"));
    assert!(out.ends_with(&[0x1a, 0, 0x22, 0]));
    let envelope = open(&out).expect("an envelope");
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("v1", "ConfigMap"));
    let decoded = decode_object(of, &envelope).expect("a ConfigMap");
    let json = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}"#;
    assert_eq!(String::from_utf8_lossy(&crate::json::to_vec(&decoded)), json);

    assert_eq!(open(b""), Err(Error::EmptyData));
    assert_eq!(open(b"k8s\0"), Err(Error::EmptyBody));
    assert_eq!(open(b"k8s\0\xff\xff\xff"), Err(Error::UnexpectedEnd));
    let wanted = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(open(b"k8s").unwrap_err().to_string(), wanted);
}

#[test]
fn streamed_lists_are_those_encoded_at_once() {
    let (list, item, meta) =
        (of_type("core.v1.ConfigMapList"), of_type("core.v1.ConfigMap"), of_type("meta.v1.ListMeta"));
    let items: Vec<Value> = (0..40).map(|n| value!({"metadata": {"name": (format!("m{n}"))}})).collect();
    let metadata = value!({"resourceVersion": "7"});
    let mut whole = Map::new();
    whole.insert("metadata", metadata.clone());
    whole.insert("items", items.clone());
    let mut at_once = Vec::new();
    encode_object(list, "v1", "ConfigMapList", &Value::Object(whole), &mut at_once).expect("fits");

    let messages: Vec<Vec<u8>> = items.iter().map(|value| message(item, value)).collect();
    let mut streamed = Vec::new();
    let lengths = messages.iter().map(Vec::len);
    write_list_head("v1", "ConfigMapList", &message(meta, &metadata), lengths, &mut streamed);
    for message in &messages {
        write_item_head(message.len(), &mut streamed);
        streamed.extend_from_slice(message);
    }
    write_tail(&mut streamed);
    assert_eq!(streamed, at_once);
}

#[test]
fn watch_frames_hold_an_event_with_an_enveloped_object() {
    let mut object = Vec::new();
    encode_object(of_type("core.v1.ConfigMap"), "v1", "ConfigMap", &Value::object(), &mut object).expect("fits");
    let mut frame = Vec::new();
    write_event("ADDED", &object, &mut frame);
    let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
    assert_eq!(length, frame.len() - 4);
    assert!(frame[4..].starts_with(b"\x0a\x05ADDED\x12"));
    assert!(frame.ends_with(&object));
}
