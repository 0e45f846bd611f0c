//! The frame around rows.

use flotilla_proto::json;
use flotilla_proto::schema::Column;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::config;
use super::scale::SCALE_COLUMNS;
use super::table::{Encoded, Includer, ListMeta, Printer, Table, Version};

fn text(out: &[u8]) -> &str {
    std::str::from_utf8(out).unwrap()
}

#[test]
fn lists_have_metadata_columns_and_rows() {
    let objects = [value!({"metadata": {"name": "b"}}), value!({"metadata": {"name": "a"}})];
    let columns = [Column {
        name: "Name".into(),
        kind: "string".into(),
        format: "name".into(),
        priority: 1,
        description: "<x>".into(),
    }];
    let rows = Printer::of(|object, _, cells| cells.push(object.at(&["metadata", "name"]).clone()));
    let now = Timestamp { seconds: 0, nanos: 0 };
    let mut table = Table::new(&rows, &columns, Version::V1Beta1, Includer::Metadata, now);
    let mut out = Vec::new();
    let meta = ListMeta { resource_version: "7", continue_token: "t", remaining: Some(3) };
    table.begin(&meta, &mut out);
    table.row(&objects[0], Encoded { metadata: Some(br#"{"name":"B"}"#), object: None, stored: None }, &mut out);
    table.row(&objects[1], Encoded::default(), &mut out);
    table.end(&mut out);
    assert_eq!(
        text(&out),
        concat!(
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","#,
            r#""metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"#,
            r#""columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"\u003cx\u003e","priority":1}],"#,
            r#""rows":[{"cells":["b"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{"name":"B"}}},"#,
            r#"{"cells":["a"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{"name":"a"}}}]}"#,
        )
    );
}

#[test]
fn rows_include_the_requested_part_of_the_object() {
    let rows = Printer::of(config::secret);
    let object = value!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "dg=="}});
    let end = value!({"kind": "Secret", "metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}});
    for (includer, object, want) in [
        (Includer::None, &object, Value::Null),
        (Includer::Object, &object, object.clone()),
        (Includer::Object, &end, end.clone()),
        (Includer::None, &end, {
            let metadata = end.at(&["metadata"]).clone();
            value!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
        }),
    ] {
        let mut out = Vec::new();
        let now = Timestamp { seconds: 0, nanos: 0 };
        let mut table = Table::new(&rows, SCALE_COLUMNS, Version::V1, includer, now);
        table.single(object, Encoded::default(), &mut out);
        assert_eq!(*json::parse(&out).unwrap().list_at(&["rows"])[0].at(&["object"]), want);
    }
    assert_eq!(Includer::from_query(None).unwrap(), Includer::Metadata);
    assert_eq!(Includer::from_query(Some("None")).unwrap(), Includer::None);
    assert_eq!(
        Includer::from_query(Some("Nonsense")).unwrap_err().message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Nonsense\": must be 'Metadata', \
         'Object', 'None', or empty"
    );
}
