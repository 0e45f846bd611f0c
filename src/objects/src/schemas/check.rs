//! Checks a value against its schema: types, bounds, members, items.
//!
//! All parts of a schema are checked, in a fixed order, even after one of them found an error. The checks also count
//! how many of them the value passes: where no alternative of `anyOf` or `oneOf` holds, the errors of the alternative
//! with the highest count are shown.

use std::cell::Cell;
use std::collections::HashSet;

use flotilla_proto::json;
use flotilla_proto::structural::{Additional, Structural, ValueType, ValueValidations};
use flotilla_proto::value::{Map, Value};

use super::correlate::Pair;
use super::format;
use super::lists::identity;
use super::number::is_whole;
use crate::field::{ErrorKind, ErrorSize, Errors, FieldError, Path, quote, shown_sorted};

/// A value to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckedValue<'a> {
    /// The value.
    pub value: &'a Value,
    /// The value before the change. Errors of unchanged parts are dropped. `None` if the object is new.
    pub old: Option<&'a Value>,
    /// The path of the value within its object; empty for whole objects.
    pub at: &'a str,
}

/// Checks a value against a schema.
pub fn check(schema: &Structural, checked: CheckedValue<'_>, errors: &mut Errors) {
    let mut walk = Walk { path: String::new(), at: checked.at, size: Cell::default() };
    let pair = checked.old.map(|old| Pair { schema, new: checked.value, old });
    let outcome = walk.value(schema, checked.value, pair);
    let mut seen = HashSet::with_capacity(outcome.errors.len());
    let mut is_new = |error: &FieldError| seen.insert((error.field.clone(), error.body()));
    errors.append(outcome.errors.into_iter().filter(|error| is_new(error)));
}

/// The result of checking a value.
#[derive(Debug, Default)]
pub(super) struct CheckOutcome {
    /// The errors, up to the bound on their size.
    pub(super) errors: Vec<FieldError>,
    /// Whether any check failed, even if its error was left out.
    is_broken: bool,
    /// How many checks passed.
    pub(super) matches: usize,
}

impl CheckOutcome {
    pub(super) fn is_valid(&self) -> bool {
        !self.is_broken
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        self.errors.append(&mut other.errors);
        self.is_broken |= other.is_broken;
        self.matches += other.matches;
    }
}

/// A walk through a value.
pub(super) struct Walk<'a> {
    /// The path of the current value, as messages spell it.
    pub(super) path: String,
    at: &'a str,
    /// The size of the errors that were found and not dropped again.
    size: Cell<ErrorSize>,
}

impl Walk<'_> {
    pub(super) fn value(&mut self, schema: &Structural, value: &Value, pair: Option<Pair<'_>>) -> CheckOutcome {
        let mut outcome = self.judge(schema, value, pair);
        if !outcome.is_valid() && pair.is_some_and(Pair::is_equal) {
            self.forget(std::mem::take(&mut outcome.errors));
            outcome.is_broken = false;
        }
        outcome
    }

    /// Records that a check failed. Adds its error unless the errors already have the size that is allowed.
    pub(super) fn tell(&self, out: &mut CheckOutcome, error: impl FnOnce() -> FieldError) {
        out.is_broken = true;
        let mut size = self.size.get();
        if !size.is_enough() {
            let error = error();
            size.count(&error);
            self.size.set(size);
            out.errors.push(error);
        }
    }

    /// Drops errors that were found.
    pub(super) fn forget(&self, errors: Vec<FieldError>) {
        let mut size = self.size.get();
        errors.iter().for_each(|error| size.forget(error));
        self.size.set(size);
    }

    fn judge(&mut self, schema: &Structural, value: &Value, pair: Option<Pair<'_>>) -> CheckOutcome {
        let (rules, format) = (schema.rules(), format::checked(schema));
        let mut out = CheckOutcome::default();
        if value.is_null() {
            self.type_of(schema, format, value, &mut out);
            self.enumeration(rules, value, &mut out);
            return out;
        }
        if has_type(schema) || !format.is_empty() {
            self.type_of(schema, format, value, &mut out);
            out.matches += 1;
        }
        self.alternatives(rules, value, &mut out);
        match value {
            Value::Str(text) => self.string(rules, format, text, &mut out),
            Value::Int(_) | Value::Float(_) => self.number(schema, format, value, &mut out),
            Value::Array(items) => self.items(schema, items, pair, &mut out),
            Value::Null | Value::Bool(_) | Value::Object(_) | Value::Hole(_) => {}
        }
        self.enumeration(rules, value, &mut out);
        if let Value::Object(map) = value {
            self.object(schema, map, pair, &mut out);
        }
        // The checks of the value, of alternatives and of `enum` count one each, and all of them together one more.
        out.matches += if matches!(value, Value::Bool(_)) { 3 } else { 4 };
        out
    }

    /// Returns a path as errors spell it in `field`.
    fn field(&self, path: &str) -> String {
        match (self.at, path.strip_prefix('.').unwrap_or(path)) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (at, "") => at.to_owned(),
            (at, path) => format!("{at}.{path}"),
        }
    }

    /// Returns an error of the current path; `what` follows the path in the message.
    pub(super) fn error(&self, kind: ErrorKind, shown: String, what: &str) -> FieldError {
        let path = &self.path;
        FieldError { kind, field: self.field(path), shown, detail: format!("{path} in body {what}") }
    }

    /// Returns an error that consists of its message alone.
    pub(super) fn remark(&self, detail: String) -> FieldError {
        FieldError { kind: ErrorKind::Invalid, field: self.field(""), shown: quote(""), detail }
    }

    fn wrong_type(&self, wanted: &str, found: &str) -> FieldError {
        let found = quote(found);
        self.error(ErrorKind::TypeInvalid, found.clone(), &format!("must be of type {wanted}: {found}"))
    }

    fn type_of(&self, schema: &Structural, format: &str, value: &Value, out: &mut CheckOutcome) {
        match mismatch(schema, format, value) {
            Some((wanted, found)) => self.tell(out, || self.wrong_type(wanted, found)),
            None => out.matches += 1,
        }
    }

    /// Checks `enum`.
    fn enumeration(&self, rules: &ValueValidations, value: &Value, out: &mut CheckOutcome) {
        let allowed = rules.enumeration();
        if allowed.is_empty() || allowed.names(value) {
            return;
        }
        self.tell(out, || {
            let names = allowed.values().iter().map(|value| match value {
                Value::Str(text) => quote(text),
                Value::Float(_) => quote(&String::from_utf8_lossy(&json::to_vec(value))),
                other => quote(&shown_sorted(other)),
            });
            FieldError {
                kind: ErrorKind::NotSupported,
                field: self.field(&self.path),
                shown: shown_sorted(value),
                detail: format!("supported values: {}", names.collect::<Vec<_>>().join(", ")),
            }
        });
    }

    /// Checks the lengths and the pattern, and reports the first of them that does not hold. Then checks the format.
    fn string(&self, rules: &ValueValidations, format: &str, text: &str, out: &mut CheckOutcome) {
        let length = text.chars().count() as i64;
        let invalid = |what: String| self.error(ErrorKind::Invalid, quote(text), &what);
        if let Some(max) = rules.max_length().filter(|max| length > *max) {
            self.tell(out, || self.of_path(|path, errors| errors.too_long(path, size(max))));
        } else if let Some(min) = rules.min_length().filter(|min| length < *min) {
            self.tell(out, || invalid(format!("should be at least {min} chars long")));
        } else if let Some(pattern) = rules.pattern().filter(|pattern| !pattern.matches(text)) {
            self.tell(out, || invalid(format!("should match '{}'", pattern.text())));
        }
        if format::is_of_strings(format) {
            if !format::holds(format, text) {
                self.tell(out, || self.wrong_type(format, text));
            }
            out.matches += 1;
        }
    }

    /// Returns the error that a general rule states about the current path.
    fn of_path(&self, state: impl FnOnce(&Path<'_>, &mut Errors)) -> FieldError {
        let mut errors = Errors::default();
        state(&Path::root(&self.field(&self.path)), &mut errors);
        errors.0.pop().unwrap_or_else(|| self.remark(String::new()))
    }

    /// Checks that a count lies within its bounds; `of` names the counted things.
    fn count(&self, count: usize, (min, max): (Option<i64>, Option<i64>), of: &str, out: &mut CheckOutcome) {
        if let Some(min) = min.filter(|min| (count as i64) < *min) {
            let what = || format!("should have at least {min} {of}");
            self.tell(out, || self.error(ErrorKind::Invalid, count.to_string(), &what()));
        }
        if let Some(max) = max.filter(|max| count as i64 > *max) {
            self.tell(out, || self.of_path(|path, errors| errors.too_many(path, count, size(max))));
        }
    }

    fn items(&mut self, schema: &Structural, items: &[Value], pair: Option<Pair<'_>>, out: &mut CheckOutcome) {
        let length = self.path.len();
        let old = pair.and_then(Pair::items);
        if let Some(of) = schema.items.as_deref() {
            for (index, item) in items.iter().enumerate() {
                self.path.push_str(&format!("[{index}]"));
                out.merge(self.value(of, item, old.as_ref().and_then(|old| old.pair(item))));
                self.path.truncate(length);
            }
        }
        let rules = schema.rules();
        self.count(items.len(), (rules.min_items(), rules.max_items()), "items", out);
        let mut seen = HashSet::new();
        if rules.unique_items() && !items.iter().all(|item| seen.insert(identity(item))) {
            self.tell(out, || self.error(ErrorKind::Invalid, quote(""), "shouldn't contain duplicates"));
        }
        out.matches += 1;
    }

    fn object(&mut self, schema: &Structural, map: &Map, pair: Option<Pair<'_>>, out: &mut CheckOutcome) {
        let rules = schema.rules();
        self.count(map.len(), (rules.min_properties(), rules.max_properties()), "properties", out);
        self.additional(schema, map, pair, out);
        let length = self.path.len();
        for (name, of, value) in schema.stated(map) {
            let versioned = length == 0 && matches!(name.as_str(), "apiVersion" | "kind");
            let pair = pair.filter(|_| !versioned).and_then(|pair| pair.member(name));
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            out.merge(self.value(of, value, pair));
            self.path.truncate(length);
        }
        for name in rules.required().iter().filter(|name| !map.contains_key(name)) {
            let field = || self.field(&format!("{}.{name}", self.path));
            self.tell(out, || FieldError {
                kind: ErrorKind::Required,
                field: field(),
                shown: String::new(),
                detail: String::new(),
            });
        }
    }

    /// Checks the members that `properties` does not list.
    fn additional(&mut self, schema: &Structural, map: &Map, pair: Option<Pair<'_>>, out: &mut CheckOutcome) {
        let length = self.path.len();
        let others = || map.iter().filter(|(name, _)| schema.property(name).is_none());
        match &schema.additional {
            Additional::Absent | Additional::Any(true) => {}
            Additional::Any(false) => {
                for (name, _) in others() {
                    let detail = || format!("{}.{name} in body is a forbidden property", self.path);
                    let error = || self.error(ErrorKind::Invalid, quote(name), "");
                    self.tell(out, || FieldError { detail: detail(), ..error() });
                }
            }
            Additional::Of(of) => {
                for (name, value) in others() {
                    self.path.push('.');
                    self.path.push_str(name);
                    out.merge(self.value(of, value, pair.and_then(|pair| pair.member(name))));
                    self.path.truncate(length);
                }
            }
        }
    }
}

/// Converts a bound of counts, which is never negative in a valid definition.
fn size(bound: i64) -> usize {
    usize::try_from(bound).unwrap_or(0)
}

fn has_type(schema: &Structural) -> bool {
    schema.int_or_string || schema.of.is_some()
}

/// Returns whether a schema allows values of a type.
fn takes(schema: &Structural, of: ValueType) -> bool {
    if schema.int_or_string { matches!(of, ValueType::Integer | ValueType::String) } else { schema.of == Some(of) }
}

/// Returns the type that the schema asks for and the type of the value. `None` if the value has an allowed type.
fn mismatch<'a>(schema: &Structural, format: &'a str, value: &Value) -> Option<(&'a str, &'static str)> {
    let wanted = match schema.of {
        _ if schema.int_or_string => "integer,string",
        of => of.map_or("", ValueType::name),
    };
    let (of, native) = match value {
        Value::Null => return (has_type(schema) && !schema.nullable).then_some((wanted, "null")),
        Value::Bool(_) => (ValueType::Boolean, ""),
        Value::Int(_) => (ValueType::Integer, "int64"),
        Value::Float(_) | Value::Hole(_) => (ValueType::Number, "float64"),
        Value::Str(_) => (ValueType::String, ""),
        Value::Array(_) => (ValueType::Array, ""),
        Value::Object(_) => (ValueType::Object, ""),
    };
    let fits = takes(schema, of)
        || match value {
            Value::Int(_) => takes(schema, ValueType::Number),
            Value::Float(number) => takes(schema, ValueType::Integer) && is_whole(number.get()),
            _ => false,
        };
    if format.is_empty() {
        return (!fits).then_some((wanted, of.name()));
    }
    if !matches!(value, Value::Str(_) | Value::Array(_)) {
        return (!fits).then_some((format, native));
    }
    // If a schema of strings has a format, strings and arrays are not compared with the type of the schema.
    let numeric = takes(schema, ValueType::Number) || takes(schema, ValueType::Integer);
    (numeric && !fits).then_some((wanted, of.name()))
}
