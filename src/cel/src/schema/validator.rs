//! Evaluates the rules of a schema on an object: each rule on every value that it applies to.

use std::fmt::Write as _;
use std::sync::Arc;

use flotilla_golang::strconv::quote;
use flotilla_proto::structural::Structural;
use flotilla_proto::value::{Map, Value as Tree};

use super::compiled::{Compiled, STORED_MINOR, compile};
use super::correlation::{Correlated, OldItems};
use super::declared::Declared;
use super::findings::{Findings, Stopped};
use super::limits::CALL_COST;
use super::structural::Schema;
use super::variables::Variables;
use super::violation::{Violation, ViolationKind, shown};
use crate::error::Error;
use crate::eval::Program;
use crate::limits::RULE_MESSAGE_BYTES_MAX;
use crate::value::{Shape, Value, escape};

const NO_BUDGET: &str = "validation failed due to running out of cost budget, no further validation rules will be run";

/// The compiled rules of a schema and of all schemas below it. The schema itself is not kept; the caller passes it to
/// each walk.
#[derive(Debug)]
pub struct Validator {
    kind: Box<str>,
    is_correlatable: bool,
    /// Whether it describes whole objects of the API.
    is_resource: bool,
    rules: Vec<Compiled>,
    /// Whether the schema has rules but no type in CEL.
    is_untyped: bool,
    uses_old_self: bool,
    properties: Vec<(Box<str>, Validator)>,
    additional: Option<Box<Validator>>,
    items: Option<Box<Validator>>,
}

/// The object of a walk.
#[derive(Clone, Copy, Debug)]
pub struct ValidatedObject<'a> {
    /// The schema of the rules.
    pub schema: &'a Structural,
    /// The object.
    pub new: &'a Tree,
    /// The stored object.
    pub old: Option<&'a Tree>,
    /// The field that contains it; empty for a whole object.
    pub at: &'a str,
}

/// A position of the walk, and its relation to the stored object.
#[derive(Clone, Copy)]
struct ValuePosition<'w, 'a> {
    schema: &'a Structural,
    new: &'a Tree,
    /// The value of `oldSelf`.
    old: Option<&'a Tree>,
    /// The correlated position, for ratcheting.
    here: Option<&'w Correlated<'a>>,
    /// The nearest enclosing correlated position.
    around: Option<&'w Correlated<'a>>,
}

impl<'w, 'a> ValuePosition<'w, 'a> {
    fn is_unchanged(&self) -> bool {
        self.here.or(self.around).is_some_and(Correlated::is_unchanged)
    }

    /// Returns the position of a member or an item. If this position does not correlate, those below do not either.
    fn below(
        &self,
        schema: &'a Structural,
        new: &'a Tree,
        old: Option<&'a Tree>,
        here: Option<&'w Correlated<'a>>,
    ) -> Self
    where
        'a: 'w,
    {
        let (here, around) = if self.here.is_some() { (here, self.here) } else { (None, self.around) };
        Self { schema, new, old: old.filter(|old| !old.is_null()), here, around }
    }
}

impl Validator {
    /// Compiles the rules of a schema of resources. `None` if it has none.
    pub fn new(schema: &Schema) -> Option<Self> {
        Self::at(schema, true)
    }

    /// Compiles the rules of a schema of resources or of parts of resources. `None` if it has none.
    pub fn at(schema: &Schema, is_resource: bool) -> Option<Self> {
        if !schema.has_rules() {
            return None;
        }
        Self::of(schema, is_resource, Declared::of(schema, is_resource).map(Arc::new))
    }

    fn of(schema: &Schema, is_resource: bool, declared: Option<Arc<Declared>>) -> Option<Self> {
        if !schema.has_rules() {
            return None;
        }
        let below = |schema: &Schema| {
            let declared = declared.as_ref().and_then(|declared| declared.element()).cloned();
            Self::of(schema, schema.embedded, declared).map(Box::new)
        };
        let property = |(name, schema): &(Box<str>, Schema)| {
            let of = match (escape(name), &declared) {
                (Some(escaped), Some(declared)) => declared.field(&escaped).cloned(),
                (Some(_), None) => None,
                (None, _) => Declared::of(schema, schema.embedded).map(Arc::new),
            };
            Self::of(schema, schema.embedded, Some(of?)).map(|validator| (name.clone(), validator))
        };
        let rules = declared.as_ref().map(|declared| compile(schema, declared, &|_| STORED_MINOR)).unwrap_or_default();
        Some(Self {
            kind: schema.kind.clone(),
            is_correlatable: schema.is_correlatable(),
            is_resource,
            is_untyped: declared.is_none() && !schema.rules.is_empty(),
            uses_old_self: rules.iter().any(|rule| rule.uses_old_self),
            rules,
            properties: schema.properties.iter().filter_map(property).collect(),
            additional: schema.additional.as_deref().and_then(below),
            items: schema.items.as_deref().and_then(below),
        })
    }

    /// Evaluates the rules on an object. Those that use `oldSelf` also see the stored object.
    pub fn validate(&self, object: ValidatedObject<'_>, budget: i64) -> Findings {
        self.walk(object, None, budget)
    }

    /// Evaluates the rules as [`Validator::validate`] does, but violations in unchanged values are warnings.
    pub fn validate_change(&self, object: ValidatedObject<'_>, budget: i64) -> Findings {
        let correlated = object.old.map(|old| Correlated::new(object.new, old, object.schema));
        self.walk(object, correlated.as_ref(), budget)
    }

    fn walk<'a>(&'a self, object: ValidatedObject<'a>, here: Option<&Correlated<'a>>, budget: i64) -> Findings {
        let mut found = Findings::within(budget);
        let old = object.old.filter(|old| !old.is_null());
        let position = ValuePosition { schema: object.schema, new: object.new, old, here, around: None };
        if self.visit(position, true, &mut object.at.to_owned(), &mut found).is_err() {
            found.remaining = -1;
        }
        found
    }

    fn visit<'a>(
        &'a self,
        position: ValuePosition<'_, 'a>,
        is_root: bool,
        path: &mut String,
        found: &mut Findings,
    ) -> Result<(), Stopped> {
        if position.new.is_null() {
            return Ok(());
        }
        self.evaluate(position, path, found)?;
        match position.new {
            Tree::Array(items) => self.visit_items(items, position, path, found),
            Tree::Object(members) => self.visit_members(members, position, is_root, path, found),
            _ => Ok(()),
        }
    }

    fn visit_items<'a>(
        &'a self,
        items: &'a [Tree],
        position: ValuePosition<'_, 'a>,
        path: &mut String,
        found: &mut Findings,
    ) -> Result<(), Stopped> {
        let (Some(validator), Some(of)) = (&self.items, position.schema.items.as_deref()) else { return Ok(()) };
        let old = OldItems::of(position.schema, position.old);
        for (index, item) in items.iter().enumerate() {
            let length = path.len();
            let _ = write!(path, "[{index}]");
            let here = position.here.and_then(|here| here.item(index));
            validator.visit(position.below(of, item, old.get(item), here.as_ref()), false, path, found)?;
            path.truncate(length);
        }
        Ok(())
    }

    fn visit_members<'a>(
        &'a self,
        members: &'a Map,
        position: ValuePosition<'_, 'a>,
        is_root: bool,
        path: &mut String,
        found: &mut Findings,
    ) -> Result<(), Stopped> {
        if self.additional.is_none() && self.properties.is_empty() {
            return Ok(());
        }
        for (name, member) in members.iter() {
            let old = position.old.filter(|_| self.is_correlatable).and_then(|old| old.get(name));
            let own = self.property(name);
            let (all, one) = (position.schema.additional.schema(), position.schema.property(name));
            for (validator, of, is_key) in [(self.additional.as_deref(), all, true), (own, one, false)] {
                let (Some(validator), Some(of)) = (validator, of) else { continue };
                let length = path.len();
                match is_key {
                    true => path.extend(["[", name, "]"]),
                    false if path.is_empty() => path.push_str(name),
                    false => path.extend([".", name]),
                }
                let here = position.here.and_then(|here| here.member(name));
                let mut below = position.below(of, member, old, here.as_ref());
                // Both objects have been converted to one version, so a change of these cannot be seen: violations in
                // them are always errors.
                if is_root && position.here.is_some() && matches!(name, "apiVersion" | "kind") {
                    (below.here, below.around) = (None, None);
                }
                validator.visit(below, false, path, found)?;
                path.truncate(length);
            }
        }
        Ok(())
    }

    fn property(&self, name: &str) -> Option<&Self> {
        let found = self.properties.binary_search_by(|(property, _)| (**property).cmp(name));
        found.ok().map(|position| &self.properties[position].1)
    }

    /// Evaluates the rules at one position.
    fn evaluate<'a>(
        &'a self,
        position: ValuePosition<'_, 'a>,
        path: &str,
        found: &mut Findings,
    ) -> Result<(), Stopped> {
        let invalid = |detail: String| Violation::new(path, ViolationKind::Invalid, quote(&self.kind), detail);
        if self.is_untyped {
            let why = "failed to convert to declType for CEL validation rules";
            return found.error(invalid(format!("rule compiler initialization error: {why}")));
        }
        if self.rules.is_empty() {
            return Ok(());
        }
        if found.remaining <= 0 {
            found.error(invalid(NO_BUDGET.to_owned()))?;
            return Err(Stopped);
        }
        let variables = Variables::new(
            Shape::at(position.schema, self.is_resource),
            position.new,
            position.old,
            self.uses_old_self,
        );
        for compiled in &self.rules {
            if let Some(error) = &compiled.error {
                found.error(invalid(format!("rule compile error: {error}")))?;
                continue;
            }
            let Some(program) = &compiled.program else { continue };
            let is_optional = compiled.rule.has_optional_old_self();
            if compiled.uses_old_self && position.old.is_none() && !is_optional {
                continue;
            }
            let evaluation = program.evaluate(&variables.with(is_optional), CALL_COST);
            found.remaining = match found.remaining.checked_sub_unsigned(evaluation.cost).filter(|left| *left >= 0) {
                Some(left) => left,
                None => {
                    found.error(invalid(NO_BUDGET.to_owned()))?;
                    return Err(Stopped);
                }
            };
            match evaluation.outcome {
                Ok(Value::Bool(true)) => {}
                Ok(_) => self.complain(compiled, position, &variables, path, found)?,
                Err(error) => {
                    let is_final = error == Error::CostLimit;
                    found.error(invalid(failure(&error, compiled.rule.name())))?;
                    if is_final {
                        return Err(Stopped);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the error that a value breaks a rule.
    fn complain<'a>(
        &'a self,
        compiled: &'a Compiled,
        position: ValuePosition<'_, 'a>,
        variables: &Variables<'a>,
        path: &str,
        found: &mut Findings,
    ) -> Result<(), Stopped> {
        let separator = if path.is_empty() || compiled.place.is_empty() { "" } else { "." };
        let field = format!("{path}{separator}{}", compiled.place);
        let is_told_only = !compiled.uses_old_self && position.is_unchanged();
        let tell = |found: &mut Findings, violation: Violation| match is_told_only {
            true => {
                found.warn(violation);
                Ok(())
            }
            false => found.error(violation),
        };
        let detail = match &compiled.message {
            None => compiled.rule.message(),
            Some(program) => match message(program, compiled, variables, &mut found.remaining) {
                Ok(message) => message.unwrap_or_else(|| compiled.rule.message()),
                Err(why) => {
                    tell(found, Violation::new(&field, ViolationKind::Invalid, quote(&self.kind), why))?;
                    return Err(Stopped);
                }
            },
        };
        let is_shown = !matches!(&*self.kind, "object" | "array");
        let shown = if is_shown { shown(position.new) } else { String::new() };
        let violation = match compiled.rule.reason.as_deref() {
            Some("FieldValueForbidden") => Violation::new(&field, ViolationKind::Forbidden, "", detail),
            Some("FieldValueRequired") => Violation::new(&field, ViolationKind::Required, "", detail),
            Some("FieldValueDuplicate") => Violation::new(&field, ViolationKind::Duplicate, shown, ""),
            _ => Violation::new(&field, ViolationKind::Invalid, shown, detail),
        };
        tell(found, violation)
    }
}

/// Returns the message about a failed evaluation.
fn failure(error: &Error, rule: &str) -> String {
    let text = error.to_string();
    if *error == Error::CostLimit {
        return format!(
            "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
        );
    }
    if text.starts_with("no such overload") {
        let why = "call arguments did not match a supported operator, function or macro signature";
        return format!("'{text}': {why} for rule: {rule}");
    }
    format!("{text} evaluating rule: {rule}")
}

/// Returns the message that an expression computes. `None` if the result is not usable. `Err` if its cost exceeds the
/// budget, or the limit of one evaluation. As in the reference, `oldSelf` is not an optional even if the rule says so.
fn message(
    program: &Program,
    compiled: &Compiled,
    variables: &Variables<'_>,
    remaining: &mut i64,
) -> Result<Option<String>, String> {
    let evaluation = program.evaluate(&variables.with(false), CALL_COST);
    let left = remaining.checked_sub_unsigned(evaluation.cost).filter(|left| *left >= 0);
    let Some(left) = left else {
        let why = "messageExpression evaluation failed due to running out of cost budget";
        return Err(format!("{why}, no further validation rules will be run"));
    };
    if evaluation.outcome.as_ref().is_err_and(|error| *error == Error::CostLimit) {
        let expression = quote(&compiled.rule.message_expression);
        let why = "no further validation rules will be run due to call cost exceeds limit";
        return Err(format!("{why} for messageExpression: {expression}"));
    }
    *remaining = left;
    let Ok(Value::String(text)) = evaluation.outcome else { return Ok(None) };
    let text = text.trim();
    let can_be_told = !text.is_empty() && text.len() <= RULE_MESSAGE_BYTES_MAX && !text.contains('\n');
    Ok(can_be_told.then(|| text.to_owned()))
}
