//! Cells of custom resources: the columns that their definition states (`additionalPrinterColumns`).

use flotilla_proto::json;
use flotilla_proto::schema::Column;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::{Float, Str, Value};

use super::age;
use super::cell;
use super::jsonpath::Path;
use super::table::Rows;
use crate::field::float;

/// The columns of one version of a custom resource, and the sources of their cells.
#[derive(Debug, Clone)]
pub struct CustomTable {
    /// The name, and the columns of the definition.
    pub columns: Vec<Column>,
    /// The source of the cells of each column but the first.
    sources: Vec<(Path, CellType)>,
}

/// The type of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellType {
    Integer,
    Number,
    String,
    Boolean,
    Date,
    Other,
}

impl CustomTable {
    /// Returns the table of a version with this list of `additionalPrinterColumns`; without any, it shows the age.
    ///
    /// As in Kubernetes, the first column whose path cannot be parsed is omitted with all columns after it.
    pub fn new(printer_columns: &[Value]) -> Self {
        let age = [value!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": "Time since the object was created."})];
        let wanted = if printer_columns.is_empty() { &age[..] } else { printer_columns };
        let mut table = Self { columns: vec![name_column()], sources: Vec::new() };
        for column in wanted {
            let path = column.str_at(&["jsonPath"]);
            let Ok(parsed) = Path::parse(path) else { break };
            table.columns.push(Column {
                name: column.str_at(&["name"]).to_owned().into(),
                kind: column.str_at(&["type"]).to_owned().into(),
                format: column.str_at(&["format"]).to_owned().into(),
                priority: i32::try_from(cell::number(column, &["priority"])).unwrap_or(0),
                description: match column.str_at(&["description"]) {
                    "" => format!("The object's value at {path}.").into(),
                    text => text.to_owned().into(),
                },
            });
            table.sources.push((parsed, kind(column.str_at(&["type"]))));
        }
        table
    }
}

impl Rows for CustomTable {
    fn cells(&self, object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
        cells.push(cell::name(object));
        for (path, kind) in &self.sources {
            let found = path.find(object).unwrap_or_default();
            cells.push(found.first().map_or(Value::Null, |value| made(value, *kind, now)));
        }
    }
}

fn name_column() -> Column {
    Column {
        name: "Name".into(),
        kind: "string".into(),
        format: "name".into(),
        priority: 0,
        description: "Name of the object.".into(),
    }
}

fn kind(name: &str) -> CellType {
    match name {
        "integer" => CellType::Integer,
        "number" => CellType::Number,
        "string" => CellType::String,
        "boolean" => CellType::Boolean,
        "date" => CellType::Date,
        _ => CellType::Other,
    }
}

/// Returns the cell of a value; `null` when the value is not of the column's type.
fn made(value: &Value, kind: CellType, now: Timestamp) -> Value {
    match (kind, value) {
        (CellType::String, value) => text(value).into(),
        (CellType::Integer, Value::Int(number)) => Value::Int(*number),
        // Like Go's conversion, this one drops the fraction; unlike Go's, it clamps numbers that do not fit 64 bits.
        (CellType::Integer, Value::Float(number)) => Value::Int(number.get() as i64),
        (CellType::Number, Value::Int(number)) => Float::new(*number as f64).map_or(Value::Null, Value::Float),
        (CellType::Number, Value::Float(number)) => Value::Float(*number),
        (CellType::Boolean, Value::Bool(flag)) => Value::Bool(*flag),
        (CellType::Date, Value::Str(text)) => date(text, now).into(),
        _ => Value::Null,
    }
}

fn date(text: &str, now: Timestamp) -> Str {
    if !matches!(text, "" | "null") && Timestamp::parse(text).is_err() {
        return Str::const_new("<invalid>");
    }
    age::since(&text.into(), now)
}

/// Returns a value as text: strings and numbers as Go prints them, lists and objects as JSON with sorted keys.
fn text(value: &Value) -> Str {
    match value {
        Value::Null | Value::Hole(_) => Str::const_new("<no value>"),
        Value::Bool(flag) => Str::const_new(if *flag { "true" } else { "false" }),
        Value::Int(number) => number.to_string().into(),
        Value::Float(number) => float(number.get()).into(),
        Value::Str(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => {
            let mut sorted = value.clone();
            sorted.sort_members();
            String::from_utf8(json::to_vec(&sorted)).unwrap_or_default().into()
        }
    }
}
