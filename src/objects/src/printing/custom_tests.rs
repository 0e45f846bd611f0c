//! Compares columns of custom resources with those that Kubernetes 1.36 shows.

use flotilla_proto::json;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::custom::CustomTable;
use super::jsonpath::{Error, Path};
use super::table::Rows;

/// Columns (type and path), and objects with the cells that Kubernetes answered.
const RECORDED: &str = include_str!("testdata/custom.json");

#[test]
fn cells_are_those_of_kubernetes() {
    let recorded = json::parse(RECORDED.as_bytes()).unwrap();
    let columns: Vec<Value> = recorded
        .list_at(&["columns"])
        .iter()
        .map(|column| {
            let [kind, path] = column.as_array().unwrap() else { panic!("not a pair") };
            let (kind, name, path) = (kind.clone(), path.clone(), path.clone());
            value!({"name": name, "type": kind, "jsonPath": path})
        })
        .collect();
    let table = CustomTable::new(&columns);
    assert_eq!(table.columns.len(), columns.len() + 1);
    let mut wrong = Vec::new();
    for row in recorded.list_at(&["rows"]) {
        let mut cells = Vec::new();
        let now = Timestamp { seconds: row.int_at(&["now"]).unwrap(), nanos: 0 };
        table.cells(row.at(&["object"]), now, &mut cells);
        let want = row.list_at(&["cells"]);
        assert_eq!(cells.len(), want.len());
        for ((cell, want), column) in cells.iter().zip(want).zip(&table.columns) {
            if json::to_vec(cell) != json::to_vec(want) {
                wrong.push(format!("{} {}: {cell:?} is not {want:?}", column.kind, column.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_age_is_shown_if_there_are_no_columns() {
    let table = CustomTable::new(&[]);
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_ref()).collect();
    assert_eq!(names, ["Name", "Age"]);
    let mut cells = Vec::new();
    let object = value!({"metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"}});
    table.cells(&object, Timestamp { seconds: 1_704_067_205, nanos: 0 }, &mut cells);
    assert_eq!(cells, [Value::from("a"), Value::from("5s")]);
}

#[test]
fn columns_end_at_a_path_that_cannot_be_parsed() {
    let columns = [
        value!({"name": "A", "type": "string", "jsonPath": ".a", "description": "an a", "priority": 1}),
        value!({"name": "B", "type": "string", "jsonPath": ".b["}),
        value!({"name": "C", "type": "string", "jsonPath": ".c"}),
    ];
    let table = CustomTable::new(&columns);
    assert_eq!(table.columns.len(), 2);
    assert_eq!((table.columns[1].description.as_ref(), table.columns[1].priority), ("an a", 1));
}

#[test]
fn texts_that_are_no_paths_are_refused() {
    let deep = format!(".a{}", "[?(@".repeat(50));
    for (text, want) in [
        (".a[", Error::Unterminated("array")),
        (".a[x]", Error::Index("x".into())),
        (".a[1:2:3:4]", Error::Index("1:2:3:4".into())),
        (".a[?(@.b]", Error::Unterminated("filter")),
        ("\"a", Error::Unterminated("quoted string")),
        (".a}", Error::Character('}')),
        ("....", Error::Recursion),
        ("1.2.3", Error::Number("1.2.3".into())),
        (&deep, Error::Unterminated("filter")),
    ] {
        assert_eq!(Path::parse(text), Err(want), "{text}");
    }
}

#[test]
fn paths_that_multiply_values_fail() {
    let items: Vec<Value> = (0..400).map(|_| value!({"a": [1, 2]})).collect();
    let object = value!({"list": items});
    let few = Path::parse(".list[0:400].a[1]").unwrap();
    let wide = Path::parse(&format!(".list[{}]", vec!["0:400"; 1000].join(","))).unwrap();
    assert!(few.find(&object).is_ok_and(|found| found.len() == 400));
    assert!(wide.find(&object).is_err());
}
