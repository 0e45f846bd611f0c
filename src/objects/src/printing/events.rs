//! Cells of events, in the form of the core group and in that of `events.k8s.io`: the same object under different
//! names.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::age::{self, UNKNOWN};
use super::cell::{self, text};

/// The names of the members in one form of an event.
struct Names {
    message: &'static str,
    about: &'static str,
    source: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    controller: &'static str,
}

const CORE: Names = Names {
    message: "message",
    about: "involvedObject",
    source: "source",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    controller: "reportingComponent",
};

const EVENTS: Names = Names {
    message: "note",
    about: "regarding",
    source: "deprecatedSource",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    controller: "reportingController",
};

/// Last seen, type, reason, object; subobject, source; message; first seen, count, name, of an event in either form.
pub fn event(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let names = if object.get(CORE.about).is_some() { &CORE } else { &EVENTS };
    let (first, last) = seen(object, names, now);
    let count = match (object.at(&["series"]), cell::number(object, &[names.count])) {
        (Value::Object(_), _) => cell::number(object, &["series", "count"]),
        (_, 0) => 1,
        (_, count) => count,
    };
    let about = object.at(&[names.about]);
    cells.extend([
        last.into(),
        text(object, &["type"]),
        text(object, &["reason"]),
        target(about).into(),
        text(about, &["fieldPath"]),
        source(object, names),
        object.str_at(&[names.message]).trim().into(),
        first.into(),
        Value::Int(count),
        cell::name(object),
    ]);
}

/// Returns how long ago the event was seen first and last.
fn seen(object: &Value, names: &Names, now: Timestamp) -> (Str, Str) {
    let since = |time: &Value| age::time(time).map(|time| age::human(age::between(time, now)));
    let or_unknown = |text: Option<Str>| text.unwrap_or(Str::const_new(UNKNOWN));
    let first = or_unknown(since(object.at(&[names.first])).or_else(|| since(object.at(&["eventTime"]))));
    let last = match object.at(&["series"]) {
        Value::Object(_) => or_unknown(since(object.at(&["series", "lastObservedTime"]))),
        _ => since(object.at(&[names.last])).unwrap_or_else(|| first.clone()),
    };
    (first, last)
}

fn target(about: &Value) -> Str {
    let kind = about.str_at(&["kind"]).to_lowercase();
    match about.str_at(&["name"]) {
        "" => kind.into(),
        name => cell::join([&kind, name], "/"),
    }
}

/// Returns the component and, if known, the host or instance.
fn source(object: &Value, names: &Names) -> Value {
    let first = |old: &str, new: &str| match object.str_at(&[names.source, old]) {
        "" => Str::from(object.str_at(&[new])),
        text => Str::from(text),
    };
    let component = first("component", names.controller);
    let instance = first("host", "reportingInstance");
    if instance.is_empty() { component.into() } else { cell::join([&*component, &*instance], ", ").into() }
}
