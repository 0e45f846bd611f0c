//! What a schema says of a value: types, bounds, members, items.
//!
//! Every part of a schema is checked, whatever the others found, in a fixed order. Besides errors the checks count what
//! fits: of the alternatives of `anyOf` and `oneOf` the errors of the one that fits best are shown.

use std::cell::Cell;
use std::collections::HashSet;

use flotilla_proto::structural::{Additional, Rules, Structural, ValueType};
use flotilla_proto::value::{Map, Value};

use super::correlate::Pair;
use super::format;
use super::number::is_whole;
use crate::field::{ErrorKind, Errors, FieldError, Path, quote, shown_sorted};

/// Most bytes of places that errors name.
const TOLD_BYTES_MAX: usize = 1 << 20;

/// What is checked.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The value.
    pub value: &'a Value,
    /// What it was; errors of what did not change are dropped.
    pub old: Option<&'a Value>,
    /// The field in which it stands; empty for whole objects.
    pub at: &'a str,
}

/// Checks a value against a schema.
pub fn check(schema: &Structural, subject: Subject<'_>, errors: &mut Errors) {
    let mut walk = Walk { path: String::new(), at: subject.at, told: Cell::default() };
    let pair = subject.old.map(|old| Pair { schema, new: subject.value, old });
    let outcome = walk.value(schema, subject.value, pair);
    let mut seen = HashSet::with_capacity(outcome.errors.0.len());
    let mut is_new = |error: &FieldError| seen.insert((error.field.clone(), error.body()));
    errors.0.extend(outcome.errors.0.into_iter().filter(|error| is_new(error)));
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) errors: Errors,
    /// How many checks fit.
    pub(super) matches: usize,
}

impl Outcome {
    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    fn merge(&mut self, mut other: Self) {
        self.errors.0.append(&mut other.errors.0);
        self.matches += other.matches;
    }
}

/// A walk through a value.
pub(super) struct Walk<'a> {
    /// The current place, as messages name it.
    pub(super) path: String,
    at: &'a str,
    /// How many bytes of paths were told.
    told: Cell<usize>,
}

impl Walk<'_> {
    fn value(&mut self, schema: &Structural, value: &Value, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = self.judge(schema, value, pair);
        if !outcome.is_valid() && pair.is_some_and(Pair::is_equal) {
            outcome.errors.0.clear();
        }
        outcome
    }

    fn judge(&mut self, schema: &Structural, value: &Value, pair: Option<Pair<'_>>) -> Outcome {
        let (rules, format) = (schema.rules(), format::checked(schema));
        let mut out = Outcome::default();
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
        // One for each of the checks of values, of alternatives and of enumerations, and one for all together.
        out.matches += if matches!(value, Value::Bool(_)) { 3 } else { 4 };
        out
    }

    /// The current place, as long as not too much was told of places: a body may make paths of many more bytes than it
    /// has.
    pub(super) fn named(&self) -> &str {
        if self.told.get() > TOLD_BYTES_MAX {
            return "";
        }
        self.told.set(self.told.get() + self.path.len());
        &self.path
    }

    /// The field of a place, as errors name it.
    fn field(&self, path: &str) -> String {
        match (self.at, path.strip_prefix('.').unwrap_or(path)) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (at, "") => at.to_owned(),
            (at, path) => format!("{at}.{path}"),
        }
    }

    /// An error of the current place; `what` follows its name in the message.
    pub(super) fn error(&self, kind: ErrorKind, shown: String, what: &str) -> FieldError {
        let path = self.named();
        FieldError { kind, field: self.field(path), shown, detail: format!("{path} in body {what}") }
    }

    /// An error whose message says all.
    pub(super) fn remark(&self, detail: String) -> FieldError {
        FieldError { kind: ErrorKind::Invalid, field: self.field(""), shown: quote(""), detail }
    }

    fn wrong_type(&self, wanted: &str, found: &str) -> FieldError {
        let found = quote(found);
        self.error(ErrorKind::TypeInvalid, found.clone(), &format!("must be of type {wanted}: {found}"))
    }

    fn type_of(&self, schema: &Structural, format: &str, value: &Value, out: &mut Outcome) {
        match mismatch(schema, format, value) {
            Some((wanted, found)) => out.errors.0.push(self.wrong_type(wanted, found)),
            None => out.matches += 1,
        }
    }

    /// `enum`.
    fn enumeration(&self, rules: &Rules, value: &Value, out: &mut Outcome) {
        let allowed = &rules.enumeration;
        if allowed.is_empty() || allowed.iter().any(|allowed| is_same(value, allowed)) {
            return;
        }
        let names: Vec<String> = allowed
            .iter()
            .map(|value| match value {
                Value::Str(text) => quote(text),
                other => quote(&shown_sorted(other)),
            })
            .collect();
        out.errors.0.push(FieldError {
            kind: ErrorKind::NotSupported,
            field: self.field(self.named()),
            shown: shown_sorted(value),
            detail: format!("supported values: {}", names.join(", ")),
        });
    }

    /// Lengths and pattern, of which the first that is broken is told, and the format.
    fn string(&self, rules: &Rules, format: &str, text: &str, out: &mut Outcome) {
        let length = text.chars().count() as i64;
        if let Some(max) = rules.max_length.filter(|max| length > *max) {
            out.errors.too_long(&Path::root(&self.field(self.named())), size(max));
        } else if let Some(min) = rules.min_length.filter(|min| length < *min) {
            let what = format!("should be at least {min} chars long");
            out.errors.0.push(self.error(ErrorKind::Invalid, quote(text), &what));
        } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
            let what = format!("should match '{}'", pattern.text());
            out.errors.0.push(self.error(ErrorKind::Invalid, quote(text), &what));
        }
        if format::is_of_strings(format) {
            if !format::holds(format, text) {
                out.errors.0.push(self.wrong_type(format, text));
            }
            out.matches += 1;
        }
    }

    fn items(&mut self, schema: &Structural, items: &[Value], pair: Option<Pair<'_>>, out: &mut Outcome) {
        let length = self.path.len();
        let old = pair.and_then(Pair::items);
        if let Some(of) = schema.items.as_deref() {
            for (index, item) in items.iter().enumerate() {
                self.path.push_str(&format!("[{index}]"));
                out.merge(self.value(of, item, old.as_ref().and_then(|old| old.pair(item))));
                self.path.truncate(length);
            }
        }
        let (rules, count) = (schema.rules(), items.len() as i64);
        if let Some(min) = rules.min_items.filter(|min| count < *min) {
            let what = format!("should have at least {min} items");
            out.errors.0.push(self.error(ErrorKind::Invalid, count.to_string(), &what));
        }
        if let Some(max) = rules.max_items.filter(|max| count > *max) {
            out.errors.too_many(&Path::root(&self.field(self.named())), items.len(), size(max));
        }
        let repeats = |(index, item): (usize, &Value)| items[..index].contains(item);
        if rules.unique_items && items.iter().enumerate().any(repeats) {
            out.errors.0.push(self.error(ErrorKind::Invalid, quote(""), "shouldn't contain duplicates"));
        }
        out.matches += 1;
    }

    fn object(&mut self, schema: &Structural, map: &Map, pair: Option<Pair<'_>>, out: &mut Outcome) {
        let (rules, count) = (schema.rules(), map.len() as i64);
        if let Some(min) = rules.min_properties.filter(|min| count < *min) {
            let what = format!("should have at least {min} properties");
            out.errors.0.push(self.error(ErrorKind::Invalid, count.to_string(), &what));
        }
        if let Some(max) = rules.max_properties.filter(|max| count > *max) {
            out.errors.too_many(&Path::root(&self.field(self.named())), map.len(), size(max));
        }
        self.additional(schema, map, pair, out);
        let length = self.path.len();
        for (name, of) in &schema.properties {
            let Some(value) = map.get(name) else { continue };
            let versioned = length == 0 && matches!(name.as_str(), "apiVersion" | "kind");
            let pair = pair.filter(|_| !versioned).and_then(|pair| pair.member(name));
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            out.merge(self.value(of, value, pair));
            self.path.truncate(length);
        }
        for name in rules.required.iter().filter(|name| !map.contains_key(name)) {
            out.errors.required(&Path::root(&self.field(&format!("{}.{name}", self.named()))), "");
        }
    }

    /// The members that are no properties.
    fn additional(&mut self, schema: &Structural, map: &Map, pair: Option<Pair<'_>>, out: &mut Outcome) {
        let length = self.path.len();
        let others = || map.iter().filter(|(name, _)| schema.property(name).is_none());
        match &schema.additional {
            Additional::Absent | Additional::Any(true) => {}
            Additional::Any(false) => {
                for (name, _) in others() {
                    let mut error = self.error(ErrorKind::Invalid, quote(name), "");
                    error.detail = format!("{}.{name} in body is a forbidden property", self.named());
                    out.errors.0.push(error);
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

    /// `anyOf`, `oneOf`, `allOf`, `not`. What did not change in them counts as all else.
    fn alternatives(&mut self, rules: &Rules, value: &Value, out: &mut Outcome) {
        let place = quote(self.named());
        if !rules.any_of.is_empty() {
            let found = self.best(&rules.any_of, value, true);
            if found.valid == 0 {
                out.errors.0.push(self.remark(format!("{place} must validate at least one schema (anyOf)")));
            }
            out.merge(found.best);
        }
        if !rules.one_of.is_empty() {
            let found = self.best(&rules.one_of, value, false);
            match found.valid {
                1 => out.merge(found.best),
                valid => {
                    let why = if valid == 0 { "none valid".into() } else { format!("{valid} valid alternatives") };
                    let why = format!("{place} must validate one and only one schema (oneOf). Found {why}");
                    out.errors.0.push(self.remark(why));
                    if valid == 0 {
                        out.merge(found.best);
                    }
                }
            }
        }
        let mut valid = 0;
        for schema in &rules.all_of {
            let outcome = self.value(schema, value, None);
            valid += usize::from(outcome.is_valid());
            out.merge(outcome);
        }
        if valid < rules.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            out.errors.0.push(self.remark(format!("{place} must validate all the schemas (allOf){none}")));
        }
        if let Some(schema) = &rules.not
            && self.value(schema, value, None).is_valid()
        {
            out.errors.0.push(self.remark(format!("{place} must not validate the schema (not)")));
        }
        out.matches += 1;
    }

    /// How many alternatives hold, and the first of them, or else the one that fits best.
    fn best(&mut self, schemas: &[Structural], value: &Value, first_only: bool) -> Alternatives {
        let mut found = Alternatives { valid: 0, best: Outcome::default() };
        for (index, schema) in schemas.iter().enumerate() {
            let outcome = self.value(schema, value, None);
            if outcome.is_valid() {
                found.valid += 1;
                if found.valid == 1 {
                    found.best = outcome;
                }
                if first_only {
                    break;
                }
            } else if found.valid == 0 && (index == 0 || outcome.matches > found.best.matches) {
                found.best = outcome;
            }
        }
        found
    }
}

struct Alternatives {
    valid: usize,
    best: Outcome,
}

/// A bound of counts, which definitions state as a number that is not negative.
fn size(bound: i64) -> usize {
    usize::try_from(bound).unwrap_or(0)
}

fn has_type(schema: &Structural) -> bool {
    schema.int_or_string || schema.of.is_some()
}

/// Whether a schema takes values of a type.
fn takes(schema: &Structural, of: ValueType) -> bool {
    if schema.int_or_string { matches!(of, ValueType::Integer | ValueType::String) } else { schema.of == Some(of) }
}

/// The type that a value must have and the one that it has, if it is the wrong one.
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
    // Lists pass where a schema of strings has a format.
    let numeric = takes(schema, ValueType::Number) || takes(schema, ValueType::Integer);
    (numeric && !fits).then_some((wanted, of.name()))
}

/// Whether a value is one that an enumeration names, in the type of the latter.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "Go converts numbers likewise")]
fn is_same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(value), Value::Float(allowed)) => *value as f64 == allowed.get(),
        (Value::Float(value), Value::Int(allowed)) => value.get() as i64 == *allowed,
        (value, allowed) => value == allowed,
    }
}
