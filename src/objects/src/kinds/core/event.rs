//! Events of the core group and of `events.k8s.io`: one table, two sets of rules. Events are stored in the form of the
//! core group.

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::printing::{Printer, events};
use crate::rules::{Conversion, Dependents, Generation, NameRule, Strategy, metadata, names};

const SHORT_BYTES_MAX: usize = 128;
const NOTE_BYTES_MAX: usize = 1024;

/// Rules of `events` of the core group.
pub static STRATEGY: Strategy = Strategy {
    repeats_metadata: false,
    known_finalizers: false,
    metadata_last: true,
    name: NameRule::PathSegment,
    generation: Generation::ClientOwned,
    create_on_update: true,
    dependents: Dependents::Unsupported,
    validate: |object, errors| validate_core(object, "reportingComponent", errors),
    validate_update: |object, _, errors| validate_core(object, "reportingComponent", errors),
    selectable: &[
        ("involvedObject.kind", |object| object.str_at(&["involvedObject", "kind"]).to_owned()),
        ("involvedObject.namespace", |object| object.str_at(&["involvedObject", "namespace"]).to_owned()),
        ("involvedObject.name", |object| object.str_at(&["involvedObject", "name"]).to_owned()),
        ("involvedObject.uid", |object| object.str_at(&["involvedObject", "uid"]).to_owned()),
        ("involvedObject.apiVersion", |object| object.str_at(&["involvedObject", "apiVersion"]).to_owned()),
        ("involvedObject.resourceVersion", |object| object.str_at(&["involvedObject", "resourceVersion"]).to_owned()),
        ("involvedObject.fieldPath", |object| object.str_at(&["involvedObject", "fieldPath"]).to_owned()),
        ("reason", |object| object.str_at(&["reason"]).to_owned()),
        ("reportingComponent", |object| object.str_at(&["reportingComponent"]).to_owned()),
        ("source", source),
        ("type", |object| object.str_at(&["type"]).to_owned()),
    ],
    conversions: &[
        Conversion { from: ("", "v1"), to: ("events.k8s.io", "v1"), change: to_new },
        Conversion { from: ("events.k8s.io", "v1"), to: ("", "v1"), change: to_core },
    ],
    printer: Some(Printer::of(events::event)),
    ..Strategy::DEFAULT
};

/// Rules of `events` of `events.k8s.io`.
pub static STRATEGY_V1: Strategy = Strategy {
    repeats_metadata: true,
    name: NameRule::Subdomain,
    known_finalizers: true,
    validate: validate_new,
    validate_update: validate_new_update,
    selectors: SELECTORS,
    stored_as: Some(("", "v1", "Event")),
    ..STRATEGY
};

/// Members of an event: the name in the core group and the name in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Fields that selectors of `events.k8s.io` may name, and their names in the core group.
const SELECTORS: &[(&str, &str)] = &[
    ("reason", "reason"),
    ("regarding.apiVersion", "involvedObject.apiVersion"),
    ("regarding.fieldPath", "involvedObject.fieldPath"),
    ("regarding.kind", "involvedObject.kind"),
    ("regarding.name", "involvedObject.name"),
    ("regarding.namespace", "involvedObject.namespace"),
    ("regarding.resourceVersion", "involvedObject.resourceVersion"),
    ("regarding.uid", "involvedObject.uid"),
    ("reportingController", "reportingComponent"),
    ("type", "type"),
];

/// Converts a core event to `events.k8s.io`.
fn to_new(event: &mut Value) {
    for (core, new) in NAMES {
        rename(event, core, new);
    }
}

/// Converts an event of `events.k8s.io` to the core group.
fn to_core(event: &mut Value) {
    for (core, new) in NAMES {
        rename(event, new, core);
    }
}

fn rename(event: &mut Value, from: &str, to: &str) {
    if let Some(member) = event.remove_at(&[from]) {
        event.set_at(&[to], member);
    }
}

fn source(object: &Value) -> String {
    let component = object.str_at(&["source", "component"]);
    if component.is_empty() { object.str_at(&["reportingComponent"]) } else { component }.to_owned()
}

/// Checks the rules that both groups share. `controller` is the name that the group gives the field of the reporting
/// controller.
fn validate_core(object: &Value, controller: &str, errors: &mut Errors) {
    let namespace = object.str_at(&["metadata", "namespace"]);
    let involved = object.str_at(&["involvedObject", "namespace"]);
    let timed = !object.at(&["eventTime"]).is_null();
    let matches = match (timed, involved.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == involved,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !matches {
        let path = Path::root("involvedObject.namespace");
        errors.invalid_str(&path, involved, "does not match event.namespace");
    }
    if timed {
        let (path, name) = (Path::root(controller), object.str_at(&["reportingComponent"]));
        if name.is_empty() {
            errors.required(&path, "");
        }
        names::check(&path, name, names::qualified_name, errors);
        for field in ["reportingInstance", "action", "reason"] {
            let (path, text) = (Path::root(field), object.str_at(&[field]));
            if text.is_empty() {
                errors.required(&path, "");
            }
            limit(&path, text, SHORT_BYTES_MAX, errors);
        }
        limit(&Path::root("message"), object.str_at(&["message"]), NOTE_BYTES_MAX, errors);
    }
    names::check(&Path::root("namespace"), namespace, names::dns1123_subdomain, errors);
}

fn limit(path: &Path<'_>, text: &str, max: usize, errors: &mut Errors) {
    if text.len() > max {
        errors.invalid_str(path, "", format!("can have at most {max} characters"));
    }
}

fn validate_new(object: &Value, errors: &mut Errors) {
    validate_core(object, "reportingController", errors);
    metadata::validate_create(NameRule::Subdomain, true, object, errors);
    metadata::validate_finalizer_names(object, errors);
    validate_series(object, errors);
    if object.at(&["eventTime"]).is_null() {
        errors.required(&Path::root("eventTime"), "");
    }
    let kind = object.str_at(&["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid_str(&Path::root("type"), "", format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let value = object.at(&[field]);
        let set = match value {
            Value::Object(source) => source.values().any(|text| text.as_str() != Some("")),
            Value::Int(count) => *count != 0,
            other => !other.is_null(),
        };
        if set {
            errors.invalid_str(&Path::root(field), "", "needs to be unset");
        }
    }
}

fn validate_series(object: &Value, errors: &mut Errors) {
    let series = object.at(&["series"]);
    if series.is_null() {
        return;
    }
    if series.int_at(&["count"]).unwrap_or(0) < 2 {
        errors.invalid_str(&Path::root("series.count"), "", "should be at least 2");
    }
    if series.at(&["lastObservedTime"]).is_null() {
        errors.required(&Path::root("series.lastObservedTime"), "");
    }
}

fn validate_new_update(object: &Value, old: &Value, errors: &mut Errors) {
    validate_core(object, "reportingController", errors);
    if object.at(&["series"]) != old.at(&["series"]) {
        validate_series(object, errors);
    }
    let fields = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("reason", "reason"), // twice, since the reference reports a changed reason twice
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingComponent"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (shown, field) in fields {
        let (new, before) = (object.at(&[field]), old.at(&[field]));
        if new == before {
            continue;
        }
        let value = match (field, new) {
            ("involvedObject" | "related", Value::Object(reference)) => reference_shown(reference),
            ("source", Value::Object(source)) => source_shown(source),
            ("count", Value::Null) => 0.into(),
            ("reason" | "message" | "type" | "action" | "reportingComponent" | "reportingInstance", Value::Null) => {
                "".into()
            }
            _ => new.clone(),
        };
        errors.invalid(&Path::root(shown), &value, metadata::IMMUTABLE);
    }
}

/// Formats an object reference for messages: every field, under its name in Go.
fn reference_shown(reference: &Map) -> Value {
    let fields = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    all_fields(reference, &fields)
}

fn source_shown(source: &Map) -> Value {
    all_fields(source, &[("Component", "component"), ("Host", "host")])
}

fn all_fields(map: &Map, fields: &[(&str, &str)]) -> Value {
    let text = |name: &str| map.get(name).cloned().unwrap_or_else(|| "".into());
    fields.iter().map(|(shown, name)| ((*shown).to_owned(), text(name))).collect::<Map>().into()
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn broken(check: fn(&Value, &mut Errors), event: &Value) -> Vec<String> {
        let mut errors = Errors::default();
        check(event, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_new_group_requires_more_fields() {
        let bare = value!({"metadata": {"name": "e", "namespace": "n"}});
        assert_eq!(
            broken(validate_new, &bare),
            [
                "involvedObject.namespace: Invalid value: \"\": does not match event.namespace",
                "eventTime: Required value",
                "type: Invalid value: \"\": has invalid value: ",
            ]
        );
        let core = value!({"metadata": {"namespace": "n"}, "involvedObject": {"namespace": "n"}, "source": {}});
        assert!(broken(STRATEGY.validate, &core).is_empty());
    }

    #[test]
    fn metadata_is_checked_after_the_event_and_in_the_new_group_with_its_rules() {
        assert!(STRATEGY.metadata_last);
        let event = value!({"metadata": {"name": "N_", "namespace": "n"}, "involvedObject": {"namespace": "o"}});
        let fields =
            |check| broken(check, &event).iter().map(|error| error.split(':').next().unwrap().to_owned()).collect();
        let (core, new): (Vec<String>, Vec<String>) = (fields(STRATEGY.validate), fields(STRATEGY_V1.validate));
        assert_eq!(core, ["involvedObject.namespace"]);
        assert_eq!(new[..2], ["involvedObject.namespace", "metadata.name"]);
    }

    #[test]
    fn the_new_group_does_not_change_events() {
        let old = value!({"metadata": {"namespace": "n"}, "involvedObject": {"namespace": "n"}, "reason": "A"});
        let mut new = old.clone();
        new.set_at(&["reason"], "B");
        let mut errors = Errors::default();
        validate_new_update(&new, &old, &mut errors);
        assert_eq!(errors.0.len(), 2);
        assert_eq!(errors.0[0].to_string(), "reason: Invalid value: \"B\": field is immutable");
    }
}
