//! Evaluates the CEL rules (`x-kubernetes-validations`) of a schema.

use std::sync::{Arc, OnceLock};

use flotilla_cel::schema::limits::OBJECT_COST;
use flotilla_cel::schema::structural::Schema;
use flotilla_cel::schema::{Findings, ValidatedObject, Validator, Violation, ViolationKind};
use flotilla_cel::with_room;
use flotilla_proto::structural::Structural;
use flotilla_proto::value::{ObjectText, Value};

use crate::field::{ErrorKind, Errors, FieldError, Path};

/// The CEL cost that all rules of one object may have together.
pub const BUDGET: i64 = OBJECT_COST.cast_signed();
const NOT_ASKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete \
     validation";

/// The rules of a version, compiled once. Clones share them.
#[derive(Debug, Default, Clone)]
pub struct CelRules(Arc<OnceLock<Option<Validator>>>);

impl CelRules {
    /// Returns the compiled rules of a schema. Compiles them on the first call. Returns `None` if the schema has no
    /// rules.
    pub fn compiled(&self, published: &ObjectText) -> Option<&Validator> {
        self.0.get_or_init(|| validator(&published.parse(), true)).as_ref()
    }

    /// Reports which rules an object breaks. `old` is the stored object, and `errors` holds the errors of other checks.
    /// Rules that an unchanged part breaks become warnings.
    pub fn validate(
        &self,
        published: &ObjectText,
        schema: &Structural,
        (object, old): (&Value, Option<&Value>),
        errors: &mut Errors,
        warnings: &mut Vec<String>,
    ) {
        let Some(validator) = self.compiled(published) else { return };
        if errors.0.iter().any(|error| is_blocking(error.kind)) {
            let (nothing, null) = (Path::root("<nil>"), "null");
            return errors.push(ErrorKind::Invalid, &nothing, null, NOT_ASKED);
        }
        let found = validator.validate_change(ValidatedObject { schema, new: object, old, at: "" }, BUDGET);
        errors.append(found.errors.into_iter().map(FieldError::from));
        warnings.extend(found.warnings.iter().map(ToString::to_string));
    }
}

/// Compiles the rules of a schema. `is_resource` says whether the schema describes a whole object or a value within
/// one.
fn validator(stated: &Value, is_resource: bool) -> Option<Validator> {
    with_room(|| Validator::at(&Schema::of(stated), is_resource))
}

/// Returns whether errors of this kind keep the rules from being evaluated.
fn is_blocking(kind: ErrorKind) -> bool {
    use ErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// Reports which rules the default of a schema breaks, in a new object and in one that already has it. Returns the
/// remaining budget, which is negative if it did not suffice for all rules.
pub fn validate_default(stated: &Value, is_resource: bool, at: &str, budget: i64, errors: &mut Errors) -> i64 {
    let Some(validator) = validator(stated, is_resource) else { return budget };
    let (schema, new) = (&Structural::of(stated), stated.at(&["default"]));
    let subject = ValidatedObject { schema, new, old: None, at };
    let mut tell = |found: Findings| {
        errors.append(found.errors.into_iter().map(FieldError::from));
        found.remaining
    };
    let found = validator.validate(ValidatedObject { old: Some(new), ..subject }, budget);
    if !found.errors.is_empty() {
        return tell(found);
    }
    found.remaining.min(tell(validator.validate(subject, budget)))
}

impl From<Violation> for FieldError {
    fn from(violation: Violation) -> Self {
        let kind = match violation.kind {
            ViolationKind::Invalid => ErrorKind::Invalid,
            ViolationKind::Forbidden => ErrorKind::Forbidden,
            ViolationKind::Required => ErrorKind::Required,
            ViolationKind::Duplicate => ErrorKind::Duplicate,
            ViolationKind::NotSupported => ErrorKind::NotSupported,
            ViolationKind::Internal => ErrorKind::Internal,
        };
        Self { kind, field: violation.field, shown: violation.shown, detail: violation.detail }
    }
}
