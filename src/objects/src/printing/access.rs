//! Cells of role bindings and certificate requests.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::age;
use super::cell::{self, text};

/// Name, role, age; users, groups, service accounts.
pub fn binding(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let role = object.at(&["roleRef"]);
    let role = cell::join([role.str_at(&["kind"]), role.str_at(&["name"])], "/");
    cells.extend([cell::name(object), role.into(), cell::age(object, now)]);
    let subjects = object.list_at(&["subjects"]);
    let of = |kind: &'static str| subjects.iter().filter(move |subject| subject.str_at(&["kind"]) == kind);
    for kind in ["User", "Group"] {
        cells.push(cell::join(of(kind).map(|subject| subject.str_at(&["name"])), ", ").into());
    }
    let accounts: Vec<Str> = of("ServiceAccount")
        .map(|subject| cell::join([subject.str_at(&["namespace"]), subject.str_at(&["name"])], "/"))
        .collect();
    cells.push(cell::join(accounts.iter().map(Str::as_str), ", ").into());
}

/// Name, age, signer, requestor, requested duration, condition.
pub fn certificate_request(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let duration = match object.int_at(&["spec", "expirationSeconds"]) {
        Some(seconds) => age::human(seconds.saturating_mul(1_000_000_000)),
        None => Str::const_new("<none>"),
    };
    cells.extend([
        cell::name(object),
        cell::age(object, now),
        cell::text_or(object, &["spec", "signerName"], "<none>"),
        text(object, &["spec", "username"]),
        duration.into(),
        condition(object).into(),
    ]);
}

/// Returns the condition cell: a denial outweighs an approval; the status of these conditions is ignored.
fn condition(object: &Value) -> String {
    let has = |kind| cell::condition(object, kind).is_some();
    let mut text = String::from(match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    });
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !object.str_at(&["status", "certificate"]).is_empty() {
        text.push_str(",Issued");
    }
    text
}
