//! Cells of small kinds of the core group and of leases.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Map, Value};

use super::cell;
use super::table::Printer;

/// How many servers a StorageVersion shows.
const SERVERS_SHOWN: usize = 3;

/// The printer of kinds that show only name and time of creation.
pub const PLAIN: Printer = Printer { null_when_empty: true, ..Printer::of(name_and_creation) };

/// Name and age, which is all that several kinds show.
pub fn name_and_age(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), cell::age(object, now)]);
}

/// Name and time of creation, for kinds without columns of their own.
pub fn name_and_creation(object: &Value, _now: Timestamp, cells: &mut Vec<Value>) {
    let created = cell::text_or(object, &["metadata", "creationTimestamp"], "0001-01-01T00:00:00Z");
    cells.extend([cell::name(object), created]);
}

/// Name, number of entries, age.
pub fn config_map(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let entries: usize = ["data", "binaryData"].iter().filter_map(|key| object.map_at(&[key])).map(Map::len).sum();
    let entries = Value::Int(i64::try_from(entries).unwrap_or(i64::MAX));
    cells.extend([cell::name(object), entries, cell::age(object, now)]);
}

/// Name, type, number of entries, age.
pub fn secret(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let kind = cell::text(object, &["type"]);
    cells.extend([cell::name(object), kind, cell::count(object, &["data"]), cell::age(object, now)]);
}

/// Name, status, age.
pub fn namespace(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), cell::text(object, &["status", "phase"]), cell::age(object, now)]);
}

/// Name, holder, age.
pub fn lease(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), cell::text(object, &["spec", "holderIdentity"]), cell::age(object, now)]);
}

/// Name, lease, versions of the program, age.
pub fn lease_candidate(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.push(cell::name(object));
    let fields = ["leaseName", "binaryVersion", "emulationVersion"];
    cells.extend(fields.map(|field| cell::text(object, &["spec", field])));
    cells.push(cell::age(object, now));
}

/// Name, common version, versions of the first servers, age.
pub fn storage_version(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let common = cell::pointer_or(object, &["status", "commonEncodingVersion"], "<unset>");
    let servers = object.list_at(&["status", "storageVersions"]).iter();
    let versions =
        servers.map(|server| format!("{}={}", server.str_at(&["apiServerID"]), server.str_at(&["encodingVersion"])));
    let versions: Vec<String> = versions.collect();
    let (mut shown, more) = cell::first_few(versions.iter().map(String::as_str), SERVERS_SHOWN);
    if shown.is_empty() {
        shown.push_str("<unset>");
    }
    if more > 0 {
        shown.push_str(&format!(" + {more} more..."));
    }
    cells.extend([cell::name(object), common, shown.into(), cell::age(object, now)]);
}

/// Name, requests, limits, age: each resource as `name: used/hard`.
pub fn resource_quota(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let mut resources: Vec<(&str, &Value)> =
        object.map_at(&["status", "hard"]).into_iter().flat_map(Map::iter).collect();
    resources.sort_unstable_by_key(|(resource, _)| *resource);
    let (mut requests, mut limits) = (String::new(), String::new());
    for (resource, hard) in resources {
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        if !column.is_empty() {
            column.push_str(", ");
        }
        let used = object.at(&["status", "used", resource]).as_str().unwrap_or("0");
        *column += &format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"));
    }
    cells.extend([cell::name(object), requests.into(), limits.into(), cell::age(object, now)]);
}
