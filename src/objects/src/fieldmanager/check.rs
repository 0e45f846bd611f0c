//! Checks whether a configuration fits its type. The texts are those with which apply refuses it.

use std::collections::HashSet;

use flotilla_proto::schema::{List, Type};
use flotilla_proto::value::{Map, Str, Value};

use super::element;
use super::form::{Form, Members, Scalar};
use crate::field::quote;
use crate::limits;
use crate::patch::go_text;

/// Describes in one text everything that does not fit. `None` when everything fits. `duplicates` allows items that have
/// the same identity.
pub fn complaints(of: &Type, object: &Value, duplicates: bool) -> Option<String> {
    let mut check = Check { duplicates, path: Vec::new(), found: Vec::new(), room: limits::ERROR_BYTES };
    check.value(Form::of_type(of), object);
    match &check.found[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("errors:\n  {}", several.join("\n  "))),
    }
}

struct Check<'v> {
    duplicates: bool,
    path: Vec<ValueStep<'v>>,
    found: Vec<String>,
    /// How many more bytes the complaints may have.
    room: usize,
}

/// A step of the path to the current value. It is formatted only for complaints.
enum ValueStep<'v> {
    Member(&'v str),
    Item(Str),
    Index(usize),
}

impl<'v> Check<'v> {
    /// Adds a complaint about the current value, unless the complaints have reached their bound.
    fn complain(&mut self, what: impl FnOnce() -> String) {
        if self.room == 0 {
            return;
        }
        let what = what();
        let steps = self.path.iter().map(|step| match step {
            ValueStep::Member(name) => format!(".{name}"),
            ValueStep::Item(element) => element::shown(element),
            ValueStep::Index(index) => format!("[{index}]"),
        });
        let path: String = steps.collect();
        let complaint = if path.is_empty() { what } else { format!("{path}: {what}") };
        self.room = self.room.saturating_sub(complaint.len() + size_of::<String>());
        self.found.push(complaint);
    }

    /// Checks a part of the current value.
    fn below(&mut self, step: ValueStep<'v>, form: Form<'_>, value: &'v Value) {
        self.path.push(step);
        self.value(form, value);
        self.path.pop();
    }

    fn value(&mut self, form: Form<'_>, value: &'v Value) {
        if value.is_null() {
            return;
        }
        match form {
            Form::Scalar(scalar) => self.scalar(scalar, value),
            Form::Struct { .. } | Form::Map(_) => match value {
                Value::Object(map) => self.members(form, map),
                other => self.complain(|| format!("expected map, got &{{{}}}", go_text::value(other))),
            },
            Form::List(list) => match value {
                Value::Array(items) => self.items(list, items),
                other => self.complain(|| format!("expected list, got &{{{}}}", go_text::value(other))),
            },
            Form::Deduced | Form::Opaque => {}
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let container = matches!(value, Value::Object(_) | Value::Array(_));
        match (scalar, value) {
            (Scalar::Numeric, Value::Int(_) | Value::Float(_))
            | (Scalar::Text, Value::Str(_))
            | (Scalar::Boolean, Value::Bool(_)) => {}
            (Scalar::Untyped, _) if !container => {}
            (Scalar::Numeric, other) => {
                self.complain(|| format!("expected numeric (int or float), got {}", go_text::type_of(other)));
            }
            (Scalar::Text, other) => {
                self.complain(|| format!("expected string, got &value.valueUnstructured{{Value:{}}}", literal(other)));
            }
            (Scalar::Boolean, other) => {
                self.complain(|| format!("expected boolean, got &{{{}}}", go_text::value(other)));
            }
            (Scalar::Untyped, other) => {
                self.complain(|| format!("expected any scalar, got &{{{}}}", go_text::value(other)));
            }
        }
    }

    fn members(&mut self, form: Form<'_>, map: &'v Map) {
        let mut known = Members::of(form);
        let fixed = matches!(form, Form::Struct { of, .. } if !of.open);
        for (key, value) in map.iter() {
            let declared = known.declared(key);
            if fixed && declared.is_none() {
                self.path.push(ValueStep::Member(key));
                self.complain(|| "field not declared in schema".to_owned());
                self.path.pop();
                return;
            }
            self.below(ValueStep::Member(key), declared.unwrap_or_else(|| known.any(key)), value);
        }
    }

    fn items(&mut self, list: &List, items: &'v [Value]) {
        let form = Form::of_shape(&list.item);
        if Form::List(list).atomic() {
            for (n, item) in items.iter().enumerate() {
                self.below(ValueStep::Index(n), form, item);
            }
            return;
        }
        let mut seen = HashSet::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            let element = match element::of_item(list, item) {
                Ok(element) => element,
                Err(error) => return self.complain(|| format!("element {n}: {error}")),
            };
            if !seen.insert(element.clone()) && !self.duplicates {
                self.complain(|| format!("duplicate entries for key {}", element::shown(&element)));
            }
            self.below(ValueStep::Item(element), form, item);
        }
    }
}

/// Formats a value as Go's `%#v` prints it inside an interface.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Str(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}:{}", quote(key), literal(value))).collect();
            entries.sort_unstable();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => go_text::value(other),
    }
}
