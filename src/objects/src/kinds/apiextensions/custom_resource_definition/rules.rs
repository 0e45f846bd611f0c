//! CEL rules in schemas (`x-kubernetes-validations`; "Validation rules").

use std::collections::HashSet;

use flotilla_cel::schema::compiled::{Expression, MINOR, STORED_MINOR};
use flotilla_cel::schema::definition::{self, Judgement};
use flotilla_cel::schema::structural::{Rule, Schema};
use flotilla_cel::with_room;
use flotilla_proto::value::Value;

use super::field_path;
use super::parts::{self, RULES};
use crate::field::{Errors, FieldError, Path};

/// The rules, messages and schemas of the stored definition. They stay valid in an update, even if new ones would be
/// refused.
#[derive(Debug, Default)]
pub struct Stored<'a> {
    rules: HashSet<&'a str>,
    messages: HashSet<&'a str>,
    /// Names of the versions whose schemas the update does not change.
    unchanged: HashSet<&'a str>,
}

impl<'a> Stored<'a> {
    /// Collects the rules of the stored definition, if there is one, and compares its schemas with those of the new
    /// one.
    pub fn of(object: &'a Value, old: Option<&'a Value>) -> Self {
        let Some(old) = old else { return Self::default() };
        let (mut stored, path) = (Self::default(), ["schema", "openAPIV3Schema"]);
        let before = old.list_at(&["spec", "versions"]);
        before.iter().for_each(|version| stored.note(version.at(&path)));
        for version in object.list_at(&["spec", "versions"]) {
            let name = version.str_at(&["name"]);
            let same = |old: &&Value| old.str_at(&["name"]) == name && old.at(&path) == version.at(&path);
            if before.iter().any(|old| same(&old)) {
                stored.unchanged.insert(name);
            }
        }
        stored
    }

    fn note(&mut self, schema: &'a Value) {
        for rule in parts::branches(schema, RULES) {
            self.rules.insert(rule.str_at(&["rule"]));
            self.messages.insert(rule.str_at(&["messageExpression"]));
        }
        parts::inside(schema).for_each(|inside| self.note(inside));
    }

    fn minor_of(&self, expression: Expression<'_>) -> u16 {
        let is_stored = match expression {
            Expression::Rule(text) => self.rules.contains(text),
            Expression::Message(text) => self.messages.contains(text),
        };
        if is_stored { STORED_MINOR } else { MINOR }
    }

    /// Compiles the rules in the schema of a version and estimates their cost. Rules at places with `faults`, errors
    /// that were found before, are skipped, since they could not be compiled sensibly.
    pub fn judge(&self, schema: &Value, version: &str, faults: &[FieldError], path: &Path<'_>) -> Errors {
        if !parts::any(schema, &|schema| parts::is_filled(schema, RULES)) {
            return Errors::default();
        }
        let mut faults: Vec<String> = faults.iter().map(|fault| fault.field.clone()).collect();
        faults.sort_unstable();
        let judgement = Judgement {
            minor_of: &|expression| self.minor_of(expression),
            is_unchanged: self.unchanged.contains(version),
            faults: &faults,
        };
        let (found, _) = with_room(|| definition::check(&Schema::of(schema), &path.to_string(), judgement));
        Errors::from(found.into_iter().map(FieldError::from).collect::<Vec<_>>())
    }
}

/// Checks the rules of one schema, except for the checks that need compilation.
pub fn validate(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    let is_path = |path: &str| !parts::is_expressible(schema) || field_path::find(path, schema, true).is_ok();
    for (index, rule) in parts::branches(schema, RULES).iter().enumerate() {
        let place = path.child(RULES).index(index).to_string();
        errors.append(definition::form(&Rule::of(rule), &place, &is_path).into_iter().map(FieldError::from));
    }
}
