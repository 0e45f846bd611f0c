//! Compares rows of Tables with those that Kubernetes 1.36 shows for the same objects.

use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::strategy;
use crate::printing::{Encoded, Includer, ListMeta, Printer, Rows, SCALE_COLUMNS, Table, Version};

/// One line per row: an object, the cells and conditions that Kubernetes answered, and the time of the answer.
const RECORDED: &str = include_str!("../printing/testdata/cells.jsonl");

fn printer(group: &str, resource: &str) -> Option<&'static Printer> {
    strategy(group, resource).printer.as_ref()
}

fn printer_of(line: &Value) -> &'static Printer {
    let (group, resource) = (line.str_at(&["group"]), line.str_at(&["resource"]));
    let found = match resource.split_once('/') {
        Some((_, "scale")) => printer("autoscaling", "scale"),
        parts => printer(group, parts.map_or(resource, |(resource, _)| resource)),
    };
    found.unwrap_or_else(|| panic!("{group}/{resource} has no printer"))
}

fn table_of(rows: &dyn Rows, seconds: i64) -> Table<'_> {
    Table::new(rows, SCALE_COLUMNS, Version::V1, Includer::None, Timestamp { seconds, nanos: 0 })
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
        let mut table = table_of(printer_of(&line), line.int_at(&["now"]).unwrap());
        // The printer reads only the members that it declares.
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
fn empty_lists_have_no_rows_or_null() {
    for (group, resource, want) in
        [("", "secrets", "[]}"), ("", "limitranges", "null}"), ("apps", "deployments", "[]}")]
    {
        let mut out = Vec::new();
        let mut table = table_of(printer(group, resource).unwrap(), 0);
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
        let mut table = table_of(printer(group, resource).unwrap(), 0);
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
fn flow_schemas_are_sorted_by_precedence() {
    let mut items: Vec<Value> = [("a", 9), ("b", 1), ("c", 9)]
        .map(|(name, rank)| value!({"metadata": {"name": name}, "spec": {"matchingPrecedence": rank}}))
        .into();
    table_of(printer("flowcontrol.apiserver.k8s.io", "flowschemas").unwrap(), 0).sort(&mut items, |item| item);
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
