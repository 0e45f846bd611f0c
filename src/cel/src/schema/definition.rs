//! What is wrong with the rules of a definition: expressions that do not compile, and such that cost too much.

use std::sync::Arc;

use flotilla_golang::strconv::quote;

use super::compiled::{Compiled, compile};
use super::declared::Declared;
use super::field_path;
use super::limits::{RULE_COST, SCHEMA_COST, Total, complaint};
use super::structural::{Rule, Schema};
use super::violation::{Kind, Violation};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with the rules of a schema that stands at `path`, and what all of them cost.
pub fn check(schema: &Schema, path: &str) -> (Vec<Violation>, u64) {
    let mut walk = Walk { total: Total::default(), found: Vec::new() };
    let around = Around { cardinality: Some(1), is_root: true, ..Around::default() };
    walk.visit(schema, path, &around);
    if let Some(dearest) = walk.total.too_dear() {
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        walk.found.extend(dearest.map(|place| Violation::new(place, Kind::Forbidden, "", why)));
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        walk.found.push(Violation::new(path, Kind::Forbidden, "", complaint(name, walk.total.cost, SCHEMA_COST)));
    }
    (walk.found, walk.total.cost)
}

/// What the schemas around one say of it.
#[derive(Clone, Default)]
struct Around {
    is_root: bool,
    /// How often values can stand in an object. None if nothing bounds it.
    cardinality: Option<u64>,
    /// Whether a schema around it has rules.
    has_rules: bool,
    /// Whether such a schema has no type that expressions know.
    is_untyped: bool,
    /// The nearest place around it whose parts cannot be told to be those of the object before.
    uncorrelated: Option<String>,
}

struct Walk {
    total: Total,
    found: Vec<Violation>,
}

/// A product that stays at the largest number.
fn times(cost: u64, count: u64) -> u64 {
    cost.saturating_mul(count)
}

/// How many values stand directly in one value at most.
fn elements_max(schema: &Schema) -> Option<u64> {
    let bound = |bound: Option<i64>| bound.map(|bound| bound.max(0).unsigned_abs());
    match &*schema.kind {
        "object" if schema.has_additional => bound(schema.max_properties),
        "array" => bound(schema.max_items),
        _ => Some(1),
    }
}

impl Walk {
    /// Looks at a schema and all below it. Returns whether rules are not even well formed.
    fn visit(&mut self, schema: &Schema, path: &str, around: &Around) -> bool {
        let has_rules = around.has_rules || !schema.rules.is_empty();
        let declared = if has_rules && !around.is_untyped {
            Declared::of(schema, around.is_root || schema.embedded).map(Arc::new)
        } else {
            None
        };
        let product = around.cardinality.zip(elements_max(schema)).map(|(count, most)| times(count, most));
        let mut below = Around {
            cardinality: product,
            has_rules,
            is_untyped: has_rules && declared.is_none(),
            uncorrelated: around.uncorrelated.clone(),
            is_root: false,
        };
        if !schema.is_correlatable() && below.uncorrelated.is_none() {
            below.uncorrelated = Some(path.to_owned());
        }
        let mut is_malformed = false;
        if let Some(values) = &schema.additional {
            is_malformed |= self.visit(values, &format!("{path}.additionalProperties"), &below);
        }
        for (name, property) in &schema.properties {
            is_malformed |= self.visit(property, &format!("{path}.properties[{name}]"), &below);
        }
        if let Some(items) = &schema.items {
            if &*schema.list_type != "map" && below.uncorrelated.is_none() {
                below.uncorrelated = Some(path.to_owned());
            }
            is_malformed |= self.visit(items, &format!("{path}.items"), &below);
        }
        let rules = format!("{path}.x-kubernetes-validations");
        for (index, rule) in schema.rules.iter().enumerate() {
            is_malformed |= self.form(rule, schema, &format!("{rules}[{index}]"));
        }
        if !schema.rules.is_empty() && !is_malformed {
            self.compile(schema, declared.as_ref(), &rules, around);
        }
        is_malformed
    }

    fn invalid(&mut self, field: String, shown: String, detail: impl Into<String>) {
        self.found.push(Violation::new(&field, Kind::Invalid, shown, detail));
    }

    fn required(&mut self, field: String, detail: &str) {
        self.found.push(Violation::new(&field, Kind::Required, "", detail));
    }

    /// Looks at what does not need an expression to be compiled. Returns whether something is wrong.
    fn form(&mut self, rule: &Rule, schema: &Schema, place: &str) -> bool {
        let before = self.found.len();
        let has_lines = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.rule.trim(), rule.message.trim());
        if text.is_empty() {
            self.required(format!("{place}.rule"), "rule is not specified");
        } else if !rule.message.is_empty() && message.is_empty() {
            self.invalid(format!("{place}.message"), quote(&rule.message), "must be non-empty if specified");
        } else if has_lines(message) {
            self.invalid(format!("{place}.message"), quote(&rule.message), "must not contain line breaks");
        } else if has_lines(text) && message.is_empty() {
            self.required(format!("{place}.message"), "message must be specified if rule contains line breaks");
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let place = format!("{place}.messageExpression");
            self.required(place, "messageExpression must be non-empty if specified");
        }
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            let known = REASONS.map(quote).join(", ");
            let detail = format!("supported values: {known}");
            self.found.push(Violation::new(&format!("{place}.reason"), Kind::NotSupported, quote(reason), detail));
        }
        let field = || format!("{place}.fieldPath");
        if !rule.field_path.is_empty() && rule.field_path.trim().is_empty() {
            self.invalid(field(), quote(&rule.field_path), "must be non-empty if specified");
        }
        if has_lines(&rule.field_path) {
            self.invalid(field(), quote(&rule.field_path), "must not contain line breaks");
        }
        if !rule.field_path.is_empty() && field_path::normalize(&rule.field_path, schema).is_err() {
            self.invalid(field(), quote(&rule.field_path), "must be a valid path");
        }
        self.found.len() > before
    }

    fn compile(&mut self, schema: &Schema, declared: Option<&Arc<Declared>>, rules: &str, around: &Around) {
        let Some(declared) = declared else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                       unable to convert structural schema to CEL declarations";
            return self.found.push(Violation::new(rules, Kind::Internal, "", why));
        };
        let count = around.cardinality.unwrap_or_else(|| declared.cardinality_max());
        for (index, compiled) in compile(schema, declared).iter().enumerate() {
            self.price(compiled, count, &format!("{rules}[{index}]"));
            self.correlate(compiled, around, &format!("{rules}[{index}]"));
        }
    }

    fn price(&mut self, compiled: &Compiled, count: u64, place: &str) {
        let (rule, message) = (format!("{place}.rule"), format!("{place}.messageExpression"));
        let cost = times(compiled.cost, count);
        if cost > RULE_COST {
            let why = complaint("estimated rule cost", cost, RULE_COST);
            self.found.push(Violation::new(&rule, Kind::Forbidden, "", why));
        }
        self.total.add(&rule, cost);
        if let Some(error) = &compiled.error {
            self.invalid(rule, compiled.rule.shown(), error);
        }
        if let Some(error) = &compiled.message_error {
            self.invalid(message, compiled.rule.shown(), error);
        } else if compiled.message.is_some() {
            if compiled.message_cost > RULE_COST {
                let why = complaint("estimated messageExpression cost", compiled.message_cost, RULE_COST);
                self.found.push(Violation::new(&message, Kind::Forbidden, "", why));
            }
            self.total.add(&message, compiled.message_cost);
        }
    }

    fn correlate(&mut self, compiled: &Compiled, around: &Around, place: &str) {
        if compiled.uses_old_self {
            if let Some(path) = &around.uncorrelated {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {path}");
                self.invalid(format!("{place}.rule"), quote(&compiled.rule.rule), why);
            }
        } else if let Some(flag) = compiled.rule.optional_old_self {
            let why = "may not be set if oldSelf is not used in rule";
            self.invalid(format!("{place}.optionalOldSelf"), flag.to_string(), why);
        }
    }
}
