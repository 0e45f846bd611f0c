//! Checks the rules of a definition: expressions that do not compile, and costs that exceed the limits.

use std::sync::Arc;

use flotilla_golang::strconv::quote;

use super::compiled::{Compiled, MINOR, MinorOf, compile};
use super::declared::Declared;
use super::limits::{RULE_COST, SCHEMA_COST, Total, complaint};
use super::structural::{Rule, Schema};
use super::violation::{Violation, ViolationKind};
use crate::limits::VIOLATIONS_BYTES_MAX;
use crate::value::escape;

const NOT_EMPTY: &str = "must be non-empty if specified";
const NO_LINES: &str = "must not contain line breaks";
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Parameters of the check of a schema's rules.
#[derive(Clone, Copy)]
pub struct Judgement<'a> {
    /// The version of Kubernetes whose environment an expression may use.
    pub minor_of: MinorOf<'a>,
    /// Whether the schema is unchanged, so that the cost limit of a single expression does not apply.
    pub is_unchanged: bool,
    /// The fields that have other errors, sorted. Their rules, and those of the schemas around them, are not compiled.
    pub faults: &'a [String],
}

impl Default for Judgement<'_> {
    fn default() -> Self {
        Self { minor_of: &|_| MINOR, is_unchanged: false, faults: &[] }
    }
}

impl Judgement<'_> {
    /// Returns whether there is an error at a field or below it.
    fn is_faulty(&self, place: &str) -> bool {
        let after = self.faults.partition_point(|fault| fault.as_str() < place);
        let below =
            |fault: &String| fault.strip_prefix(place).map(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        // Fields that only have the same prefix may come in between.
        self.faults[after..].iter().map_while(below).any(|is_below| is_below)
    }
}

/// Returns the faults of the rules of a schema at `path`, and their total cost. [`form`] has already checked their
/// form.
pub fn check(schema: &Schema, path: &str, judgement: Judgement<'_>) -> (Vec<Violation>, u64) {
    let mut walk = DefinitionWalk { judgement, total: Total::default(), found: Vec::new(), bytes: 0 };
    let around = Enclosing { cardinality: Some(1), is_root: true, ..Enclosing::default() };
    walk.visit(schema, path, &around);
    if let Some(most_expensive) = walk.total.too_expensive() {
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        walk.found.extend(most_expensive.map(|place| Violation::new(place, ViolationKind::Forbidden, "", why)));
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        walk.found.push(Violation::new(
            path,
            ViolationKind::Forbidden,
            "",
            complaint(name, walk.total.cost, SCHEMA_COST),
        ));
    }
    (walk.found, walk.total.cost)
}

/// Returns the faults of a rule at `place` that can be found without compilation. `is_path` returns whether a field
/// path leads to a field.
pub fn form(rule: &Rule, place: &str, is_path: &dyn Fn(&str) -> bool) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut tell = |field: &str, kind: ViolationKind, shown: String, detail: &str| {
        found.push(Violation::new(&format!("{place}.{field}"), kind, shown, detail));
    };
    let (text, message, field) = (rule.rule.trim(), rule.message.trim(), &rule.field_path);
    let none = String::new;
    if text.is_empty() {
        tell("rule", ViolationKind::Required, none(), "rule is not specified");
    } else if !rule.message.is_empty() && message.is_empty() {
        tell("message", ViolationKind::Invalid, quote(&rule.message), NOT_EMPTY);
    } else if has_lines(message) {
        tell("message", ViolationKind::Invalid, quote(&rule.message), NO_LINES);
    } else if has_lines(text) && message.is_empty() {
        tell("message", ViolationKind::Required, none(), "message must be specified if rule contains line breaks");
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        tell("messageExpression", ViolationKind::Required, none(), why);
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
        let known = REASONS.map(quote).join(", ");
        tell("reason", ViolationKind::NotSupported, quote(reason), &format!("supported values: {known}"));
    }
    if !field.is_empty() && field.trim().is_empty() {
        tell("fieldPath", ViolationKind::Invalid, quote(field), NOT_EMPTY);
    }
    if has_lines(field) {
        tell("fieldPath", ViolationKind::Invalid, quote(field), NO_LINES);
    }
    if !field.is_empty() && !is_path(field) {
        tell("fieldPath", ViolationKind::Invalid, quote(field), "must be a valid path");
    }
    found
}

fn has_lines(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Facts about a schema that follow from the schemas around it.
#[derive(Clone, Default)]
struct Enclosing {
    is_root: bool,
    /// How many values an object can have here. `None` if their number is unbounded.
    cardinality: Option<u64>,
    /// Whether a schema around it has rules.
    has_rules: bool,
    /// Whether a schema around it has rules but no type in CEL.
    is_untyped: bool,
    /// Its declared type, if known.
    declared: Option<Arc<Declared>>,
    /// The nearest enclosing path whose parts do not correlate with those of the stored object.
    uncorrelated: Option<String>,
}

struct DefinitionWalk<'a> {
    judgement: Judgement<'a>,
    total: Total,
    /// The errors, as long as they fit into [`VIOLATIONS_BYTES_MAX`].
    found: Vec<Violation>,
    bytes: usize,
}

/// Returns the product; saturates.
fn times(cost: u64, count: u64) -> u64 {
    cost.saturating_mul(count)
}

/// Returns the largest number of direct elements of one value. `None` if their number is unbounded.
fn elements_max(schema: &Schema) -> Option<u64> {
    let bound = |bound: Option<i64>| bound.map(|bound| bound.max(0).unsigned_abs());
    match &*schema.kind {
        "object" if schema.has_additional => bound(schema.max_properties),
        "array" => bound(schema.max_items),
        _ => Some(1),
    }
}

impl DefinitionWalk<'_> {
    /// Checks a schema and all schemas below it.
    fn visit(&mut self, schema: &Schema, path: &str, around: &Enclosing) {
        if !schema.has_rules() {
            return;
        }
        let has_rules = around.has_rules || !schema.rules.is_empty();
        let declare = || Declared::of(schema, around.is_root || schema.embedded).map(Arc::new);
        let declared = if has_rules && !around.is_untyped { around.declared.clone().or_else(declare) } else { None };
        let product = around.cardinality.zip(elements_max(schema)).map(|(count, most)| times(count, most));
        let mut below = Enclosing {
            cardinality: product,
            has_rules,
            is_untyped: has_rules && declared.is_none(),
            declared: declared.as_ref().and_then(|declared| declared.element()).cloned(),
            uncorrelated: around.uncorrelated.clone(),
            is_root: false,
        };
        if !schema.is_correlatable() && below.uncorrelated.is_none() {
            below.uncorrelated = Some(path.to_owned());
        }
        if let Some(values) = &schema.additional {
            self.visit(values, &format!("{path}.additionalProperties"), &below);
        }
        for (name, property) in &schema.properties {
            let field = |declared: &Arc<Declared>| declared.field(&escape(name)?).cloned();
            let below = Enclosing { declared: declared.as_ref().and_then(field), ..below.clone() };
            self.visit(property, &format!("{path}.properties[{name}]"), &below);
        }
        if let Some(items) = &schema.items {
            if &*schema.list_type != "map" && below.uncorrelated.is_none() {
                below.uncorrelated = Some(path.to_owned());
            }
            self.visit(items, &format!("{path}.items"), &below);
        }
        if !schema.rules.is_empty() && !self.judgement.is_faulty(path) {
            self.compile(schema, declared.as_ref(), &format!("{path}.x-kubernetes-validations"), around);
        }
    }

    fn invalid(&mut self, field: String, shown: String, detail: impl Into<String>) {
        self.tell(Violation::new(&field, ViolationKind::Invalid, shown, detail));
    }

    fn tell(&mut self, violation: Violation) {
        if self.bytes < VIOLATIONS_BYTES_MAX {
            self.bytes += violation.bytes();
            self.found.push(violation);
        }
    }

    fn compile(&mut self, schema: &Schema, declared: Option<&Arc<Declared>>, rules: &str, around: &Enclosing) {
        let Some(declared) = declared else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                       unable to convert structural schema to CEL declarations";
            return self.tell(Violation::new(rules, ViolationKind::Internal, "", why));
        };
        let count = around.cardinality.unwrap_or_else(|| declared.cardinality_max());
        for (index, compiled) in compile(schema, declared, self.judgement.minor_of).iter().enumerate() {
            self.price(compiled, count, &format!("{rules}[{index}]"));
            self.correlate(compiled, around, &format!("{rules}[{index}]"));
        }
    }

    fn price(&mut self, compiled: &Compiled, count: u64, place: &str) {
        let (rule, message) = (format!("{place}.rule"), format!("{place}.messageExpression"));
        let cost = times(compiled.cost, count);
        if cost > RULE_COST && !self.judgement.is_unchanged {
            let why = complaint("estimated rule cost", cost, RULE_COST);
            self.tell(Violation::new(&rule, ViolationKind::Forbidden, "", why));
        }
        self.total.add(&rule, cost);
        if let Some(error) = &compiled.error {
            self.invalid(rule, compiled.rule.shown(), error);
        }
        if let Some(error) = &compiled.message_error {
            self.invalid(message, compiled.rule.shown(), error);
        } else if compiled.message.is_some() {
            if compiled.message_cost > RULE_COST && !self.judgement.is_unchanged {
                let why = complaint("estimated messageExpression cost", compiled.message_cost, RULE_COST);
                self.tell(Violation::new(&message, ViolationKind::Forbidden, "", why));
            }
            self.total.add(&message, compiled.message_cost);
        }
    }

    fn correlate(&mut self, compiled: &Compiled, around: &Enclosing, place: &str) {
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
