//! Checks a value against the schemas that a schema combines: `anyOf`, `oneOf`, `allOf` and `not`.

use flotilla_proto::structural::{Structural, ValueValidations};
use flotilla_proto::value::Value;

use super::check::{CheckOutcome, Walk};
use crate::field::quote;

impl Walk<'_> {
    /// Checks `anyOf`, `oneOf`, `allOf` and `not`. Their schemas check unchanged values as strictly as changed ones.
    pub(super) fn alternatives(&mut self, rules: &ValueValidations, value: &Value, out: &mut CheckOutcome) {
        if !rules.any_of().is_empty() {
            let found = self.best(rules.any_of(), value, true);
            if found.valid == 0 {
                self.tell_of_schemas(out, "must validate at least one schema (anyOf)");
            }
            out.merge(found.best);
        }
        if !rules.one_of().is_empty() {
            let found = self.best(rules.one_of(), value, false);
            match found.valid {
                1 => out.merge(found.best),
                valid => {
                    let why = if valid == 0 { "none valid".into() } else { format!("{valid} valid alternatives") };
                    self.tell_of_schemas(out, &format!("must validate one and only one schema (oneOf). Found {why}"));
                    match valid {
                        0 => out.merge(found.best),
                        _ => self.forget(found.best.errors),
                    }
                }
            }
        }
        let mut valid = 0;
        for schema in rules.all_of() {
            let outcome = self.value(schema, value, None);
            valid += usize::from(outcome.is_valid());
            out.merge(outcome);
        }
        if valid < rules.all_of().len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.tell_of_schemas(out, &format!("must validate all the schemas (allOf){none}"));
        }
        if let Some(schema) = rules.not() {
            let outcome = self.value(schema, value, None);
            let is_valid = outcome.is_valid();
            self.forget(outcome.errors);
            if is_valid {
                self.tell_of_schemas(out, "must not validate the schema (not)");
            }
        }
        out.matches += 1;
    }

    fn tell_of_schemas(&self, out: &mut CheckOutcome, why: &str) {
        self.tell(out, || self.remark(format!("{} {why}", quote(&self.path))));
    }

    /// Counts the alternatives that hold, up to the first one if `first_only`. Returns the count and the outcome of the
    /// first that holds. If none holds, returns the outcome of the one that passes the most checks.
    fn best(&mut self, schemas: &[Structural], value: &Value, first_only: bool) -> Alternatives {
        let mut found = Alternatives { valid: 0, best: CheckOutcome::default() };
        for (index, schema) in schemas.iter().enumerate() {
            let outcome = self.value(schema, value, None);
            if outcome.is_valid() {
                found.valid += 1;
                if found.valid == 1 {
                    self.forget(std::mem::replace(&mut found.best, outcome).errors);
                }
                if first_only {
                    break;
                }
            } else if found.valid == 0 && (index == 0 || outcome.matches > found.best.matches) {
                self.forget(std::mem::replace(&mut found.best, outcome).errors);
            } else {
                self.forget(outcome.errors);
            }
        }
        found
    }
}

struct Alternatives {
    valid: usize,
    best: CheckOutcome,
}
