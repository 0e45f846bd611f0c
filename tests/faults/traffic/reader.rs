//! Readers: some get single objects, and some list.

use std::time::{Duration, Instant};

use rand::Rng as _;
use serde_json::Value;

use super::objects::{self, NAMESPACES};
use super::{Client, Record, Revisions, Traffic};
use crate::history::{Get, Interval, Key, List, RefusedPage, Revision, Scope, Seen, Table};
use crate::support::{Answer, PATIENCE};

/// The pauses between two reads of one reader.
const PAUSE: Duration = Duration::from_millis(5);
const LIST_PAUSE: Duration = Duration::from_millis(40);
/// One read in so many accepts any state instead of the most recent one.
const CACHED_ONE_IN: u32 = 4;
const PAGE: usize = 7;

/// Gets objects until the traffic stops.
pub fn get(traffic: &Traffic) -> Record {
    let (mut client, mut record, keys) = (Client::new(traffic), Record::default(), super::keys());
    while !traffic.stops() {
        let key = &keys[rand::rng().random_range(0..keys.len())];
        let is_recent = !rand::rng().random_ratio(1, CACHED_ONE_IN);
        let query = if is_recent { "" } else { "?resourceVersion=0" };
        let (at, answer) = client.call("GET", &format!("{}{query}", objects::path(key)), b"");
        if let Some(found) = found(traffic, key, answer) {
            record.gets.push(Get { key: key.clone(), at, is_recent, found });
        }
        std::thread::sleep(PAUSE);
    }
    record
}

/// Interprets the answer to a GET. Returns the object, or `Some(None)` for a 404. Returns `None` if the answer says
/// nothing about the object, or no answer came.
pub fn found(traffic: &Traffic, key: &Key, answer: Option<Answer>) -> Option<Option<Seen>> {
    let answer = answer?;
    match answer.status {
        200 => {
            let object = answer.json();
            let seen = objects::seen(&object);
            assert!(seen.is_some(), "{key}: {object}");
            if traffic
                .directory
                .get(key)
                .is_none_or(|known| Some(known.seen.revision) < seen.as_ref().map(|it| it.revision))
            {
                traffic.directory.put(key, object);
            }
            Some(seen)
        }
        404 => Some(None),
        _ => None,
    }
}

/// The form of a list request.
enum Form {
    Recent,
    Cached,
    Pages,
    Exact(Revision),
    NotOlderThan(Revision),
}

/// Lists until the traffic stops.
pub fn list(traffic: &Traffic) -> Record {
    let (mut client, mut record) = (Client::new(traffic), Record::default());
    while !traffic.stops() {
        let mut random = rand::rng();
        let table = Table::ALL[random.random_range(0..Table::ALL.len())];
        let namespace =
            random.random_bool(0.5).then(|| NAMESPACES[random.random_range(0..NAMESPACES.len())].to_owned());
        let form = match (random.random_range(0..5), traffic.directory.revision(table)) {
            (0, Some(revision)) => Form::Exact(revision),
            (4, Some(revision)) => Form::NotOlderThan(revision),
            (1, _) => Form::Cached,
            (2, _) => Form::Pages,
            _ => Form::Recent,
        };
        let scope = Scope { table, namespace };
        record.lists.extend(list_one(traffic, &mut client, scope, &form, &mut record.refused_pages));
        std::thread::sleep(LIST_PAUSE);
    }
    record
}

fn list_one(
    traffic: &Traffic,
    client: &mut Client,
    scope: Scope,
    form: &Form,
    refused: &mut Vec<RefusedPage>,
) -> Option<List> {
    let query = match form {
        Form::Recent => String::new(),
        Form::Cached => "?resourceVersion=0".to_owned(),
        Form::Pages => format!("?limit={PAGE}"),
        Form::Exact(revision) => format!("?resourceVersion={revision}&resourceVersionMatch=Exact"),
        Form::NotOlderThan(revision) => format!("?resourceVersion={revision}&resourceVersionMatch=NotOlderThan"),
    };
    let path = objects::collection(&scope);
    let (mut at, answer) = client.call("GET", &format!("{path}{query}"), b"");
    let mut page = page(traffic, answer)?;
    let is_recent = matches!(form, Form::Recent | Form::Pages);
    let mut list = List { scope, at, is_recent, revisions: Vec::new(), items: Vec::new(), is_final: false };
    loop {
        add_page(&mut list, &page);
        if let Form::NotOlderThan(revision) = form {
            assert!(list.revisions[0] >= *revision, "{query} is answered with {}", list.revisions[0]);
        }
        let token = page["metadata"]["continue"].as_str().unwrap_or_default();
        if token.is_empty() {
            break;
        }
        let query = format!("{path}?limit={PAGE}&continue={token}");
        let (interval, answer) = client.call("GET", &query, b"");
        if answer.as_ref().is_some_and(|answer| answer.status == 410) {
            let (scope, revision) = (list.scope.clone(), list.revisions[0]);
            refused.push(RefusedPage { scope, revision, delivered: at.returned, invoked: interval.invoked });
        }
        at.returned = interval.returned;
        page = self::page(traffic, answer)?;
    }
    list.at = Interval { invoked: list.at.invoked, returned: at.returned };
    Some(list)
}

fn page(traffic: &Traffic, answer: Option<Answer>) -> Option<Value> {
    let answer = answer?;
    assert_ne!(answer.status, 404, "a list of a served resource: {}", answer.text());
    if answer.status != 200 {
        traffic.count(format!("{} to a list: {}", answer.status, answer.json()["message"]));
        return None;
    }
    Some(answer.json())
}

fn add_page(list: &mut List, page: &Value) {
    let revision = page["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
    list.revisions.push(revision.unwrap_or_else(|| panic!("a list without resourceVersion: {page}")));
    for item in page["items"].as_array().into_iter().flatten() {
        if let (Some(key), Some(seen)) = (objects::key_of(list.scope.table, item), objects::seen(item)) {
            list.items.push((key, seen));
        }
    }
}

/// Returns the revision of each table, and records the lists that show them.
pub fn present_revisions(traffic: &Traffic, records: &mut Vec<Record>) -> Revisions {
    let (mut client, mut record) = (Client::new(traffic), Record::default());
    for table in Table::ALL {
        let (scope, refused) = (Scope { table, namespace: None }, &mut record.refused_pages);
        let list = insist(|| list_one(traffic, &mut client, scope.clone(), &Form::Recent, refused));
        record.lists.push(list);
    }
    let revisions = record.lists.iter().map(|list| (list.scope.table, (list.revisions[0], list.at.returned))).collect();
    records.push(record);
    revisions
}

/// Lists every table through every member, once all other operations have ended.
pub fn list_finally(traffic: &Traffic) -> Record {
    let (mut client, mut record) = (Client::new(traffic), Record::default());
    for (member, table) in
        (0..traffic.endpoints.members.len()).flat_map(|member| Table::ALL.map(|table| (member, table)))
    {
        let scope = Scope { table, namespace: None };
        let list = insist(|| {
            let (at, answer) = client.call_member(member, "GET", &objects::collection(&scope));
            let page = page(traffic, answer)?;
            let scope = scope.clone();
            let mut list =
                List { scope, at, is_recent: true, revisions: Vec::new(), items: Vec::new(), is_final: true };
            add_page(&mut list, &page);
            Some(list)
        });
        record.lists.push(list);
    }
    record
}

fn insist(mut attempt: impl FnMut() -> Option<List>) -> List {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(list) = attempt() {
            return list;
        }
        assert!(Instant::now() < deadline, "no list succeeds although no fault is active");
    }
}
