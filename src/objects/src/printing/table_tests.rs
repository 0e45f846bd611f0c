//! Rows against what Kubernetes 1.36 shows for the same objects, and the frame around them.

use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::schema::Column;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::registry::{SCALE_COLUMNS, printer, subresource_printer};
use super::table::{Encoded, Includer, ListMeta, Printer, Rows, Table, Version};

/// One line per row: an object, the cells and conditions that Kubernetes answered, and the time of the answer.
const RECORDED: &str = include_str!("testdata/cells.jsonl");

fn printer_of(line: &Value) -> &'static Printer {
    let (group, resource) = (line.str_at(&["group"]), line.str_at(&["resource"]));
    let found = match resource.split_once('/') {
        Some((resource, subresource)) => subresource_printer(group, resource, subresource),
        None => printer(group, resource),
    };
    found.unwrap_or_else(|| panic!("{group}/{resource} has no printer"))
}

fn table_of(rows: &dyn Rows, includer: Includer, seconds: i64) -> Table<'_> {
    Table::new(rows, SCALE_COLUMNS, Version::V1, includer, Timestamp { seconds, nanos: 0 })
}

fn text(out: &[u8]) -> &str {
    std::str::from_utf8(out).unwrap()
}

/// Returns whether a line has an autoscaler of version 1 whose row differs: version 1 loses the order of metrics and
/// which amounts are missing, but Kubernetes prints the stored object.
fn is_lossy(line: &Value) -> bool {
    let object = line.at(&["object"]);
    let name = object.str_at(&["metadata", "name"]);
    object.str_at(&["apiVersion"]) == "autoscaling/v1"
        && matches!(name, "h-util" | "h-unknown" | "h-obj-odd" | "h-pods")
}

#[test]
fn rows_are_those_of_kubernetes() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in RECORDED.lines() {
        let line = json::parse(line.as_bytes()).unwrap();
        if is_lossy(&line) {
            continue;
        }
        let mut out = Vec::new();
        let mut table = table_of(printer_of(&line), Includer::None, line.int_at(&["now"]).unwrap());
        // The members that the printer declares are all that it reads.
        let object = json::parse_part(&json::to_vec(line.at(&["object"])), table.reads(), 0..0).unwrap();
        table.row(&object, Encoded::default(), &mut out);
        let row = json::parse(&out[1..]).unwrap();
        for part in ["cells", "conditions"] {
            if row.at(&[part]) != line.at(&[part]) {
                wrong.push(format!("{} is not {}", json_text(row.at(&[part])), json_text(line.at(&[part]))));
            }
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 250, "{checked}");
}

fn json_text(value: &Value) -> String {
    String::from_utf8(json::to_vec(value)).unwrap()
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
fn empty_lists_have_no_rows_or_null() {
    for (group, resource, want) in
        [("", "secrets", "[]}"), ("", "limitranges", "null}"), ("apps", "deployments", "[]}")]
    {
        let mut out = Vec::new();
        let mut table = table_of(printer(group, resource).unwrap(), Includer::None, 0);
        table.begin(&ListMeta::default(), &mut out);
        table.end(&mut out);
        assert!(text(&out).ends_with(&format!(r#""rows":{want}"#)), "{}", text(&out));
        assert!(text(&out).contains(r#""metadata":{},"#));
    }
}

#[test]
fn only_the_first_event_states_the_columns() {
    let object = value!({"kind": "Secret", "metadata": {"name": "a", "resourceVersion": "5"}});
    for (group, resource, repeats) in [("", "secrets", false), ("apiregistration.k8s.io", "apiservices", true)] {
        let mut table = table_of(printer(group, resource).unwrap(), Includer::None, 0);
        for has_columns in [true, repeats, repeats] {
            let mut out = Vec::new();
            table.single(&object, Encoded::default(), &mut out);
            let event = json::parse(&out).unwrap();
            assert_eq!(!event.at(&["columnDefinitions"]).is_null(), has_columns);
            assert_eq!(event.str_at(&["metadata", "resourceVersion"]), "5");
            assert_eq!(event.list_at(&["rows"]).len(), 1);
        }
    }
}

#[test]
fn rows_include_the_requested_part_of_the_object() {
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
        table_of(printer("", "secrets").unwrap(), includer, 0).single(object, Encoded::default(), &mut out);
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

#[test]
fn flow_schemas_are_sorted_by_precedence() {
    let mut items: Vec<Value> = [("a", 9), ("b", 1), ("c", 9)]
        .map(|(name, rank)| value!({"metadata": {"name": name}, "spec": {"matchingPrecedence": rank}}))
        .into();
    table_of(printer("flowcontrol.apiserver.k8s.io", "flowschemas").unwrap(), Includer::None, 0)
        .sort(&mut items, |item| item);
    let names: Vec<&str> = items.iter().map(|item| item.str_at(&["metadata", "name"])).collect();
    assert_eq!(names, ["b", "a", "c"]);
}

#[test]
fn every_listable_resource_fills_its_columns() {
    for resource in catalogue::resources().filter(|resource| !resource.list_kind.is_empty()) {
        let place = format!("{}/{}", resource.group, resource.name);
        let found = printer(&resource.group, &resource.name).unwrap_or_else(|| panic!("{place} has no printer"));
        let mut cells = Vec::new();
        found.cells(&value!({"metadata": {"name": "a"}}), Timestamp { seconds: 0, nanos: 0 }, &mut cells);
        // Kubernetes fills in an age for which addresses have no column.
        let extra = usize::from(place == "networking.k8s.io/ipaddresses");
        assert_eq!(cells.len(), resource.columns.len() + extra, "{place}");
    }
}
